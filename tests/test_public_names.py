"""docs/api.txt is what users can rely on: every public name with its signature, as written. `make api` writes it.

A change of that file is a change for users, so it is read in review and told in the changelog.
"""

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

API = Path(__file__).parents[1] / "docs" / "api.txt"
MODULES = ("coordinator", "coordinator.testing")
OURS = ("coordinator", "events", "projections")

# Besides names without an underscore: what makes an object fit for `async with`, `async for` and their like.
PROTOCOLS = {f"__{name}__" for name in ("aenter", "aiter", "anext", "await", "enter", "iter", "len")}


def public_api() -> str:
    exported = [(module, name) for module in MODULES for name in importlib.import_module(module).__all__]
    lines = [
        line
        for module, name in exported
        if not name.startswith("__")
        for line in described(f"{module}.{name}", getattr(importlib.import_module(module), name))
    ]
    return "\n".join(sorted(lines)) + "\n"


def described(path: str, thing: Any) -> Iterator[str]:
    if inspect.isclass(thing):
        yield f"{path}: class({', '.join(base.__name__ for base in thing.__bases__ if is_public(base))})"
        yield from (path + member for member in members(thing).values())
    elif inspect.isfunction(thing):
        yield path + function(source(thing))
    else:
        yield f"{path} = {assigned(path.rpartition('.')[2], thing)}"


def members(cls: type) -> dict[str, str]:
    """What the class defines itself or inherits from a class that has no entry of its own."""
    told_elsewhere = {above for base in cls.__mro__[1:] if is_public(base) for above in base.__mro__} | {object}
    found: dict[str, str] = {}
    for base in (base for base in cls.__mro__ if base not in told_elsewhere):
        for statement in source(base).body:
            for name, line in member(statement):
                if not name.startswith("_") or name in PROTOCOLS:
                    found.setdefault(name, line)
    return found


def assigned(name: str, thing: object) -> str:
    """What an alias or a constant stands for."""
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] in OURS]:
        if getattr(module, name, None) is thing:
            for statement in ast.parse(inspect.getsource(module)).body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)):
                        if target == name and isinstance(statement.value, ast.Name):
                            return assigned(statement.value.id, thing)
                        if target == name and statement.value:
                            return ast.unparse(statement.value)
                    case _:
                        pass
    raise LookupError(name)


def is_public(cls: type) -> bool:
    """Exported by us, or not ours at all (`ValueError`)."""
    if cls.__module__.split(".")[0] not in OURS:
        return cls is not object
    return any(getattr(importlib.import_module(module), cls.__name__, None) is cls for module in MODULES)


def member(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            yield name, f".{ast.unparse(statement)}"
        case ast.FunctionDef(name="__init__"):
            # Attributes that only the constructor names: `self.field = field`.
            parameters = {node.arg: node.annotation for node in ast.walk(statement.args) if isinstance(node, ast.arg)}
            for inner in ast.walk(statement):
                match inner:
                    case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                        yield name, f".{name}{typed(inner.annotation, ': ')}"
                    case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
                        yield name, f".{name}{typed(parameters.get(ast.unparse(inner.value)), ': ')}"
        case ast.FunctionDef(name=name, decorator_list=[ast.Name(id="property")]):
            yield name, f".{name}{typed(statement.returns, ': ')}  [property]"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, f".{name}{function(statement)}"
        case _:
            pass


def typed(annotation: ast.expr | None, sign: str) -> str:
    return f"{sign}{ast.unparse(annotation)}" if annotation else ""


def function(node: Any) -> str:
    kinds = ["async"] * isinstance(node, ast.AsyncFunctionDef) + [ast.unparse(name) for name in node.decorator_list]
    return f"({ast.unparse(node.args)}){typed(node.returns, ' -> ')}" + (f"  [{', '.join(kinds)}]" if kinds else "")


def source(thing: Any) -> Any:
    node = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    for arguments in (inner for inner in ast.walk(node) if isinstance(inner, ast.arguments)):
        lists: list[list[Any]] = [arguments.defaults, arguments.kw_defaults]
        for defaults in lists:
            defaults[:] = [default and by_value(default, sys.modules[thing.__module__]) for default in defaults]
    return node


def by_value(default: ast.expr, module: ModuleType) -> ast.expr:
    """Callers rely on the 60 behind `limits.LEASE_DEFAULT_S`."""
    if isinstance(default, ast.Attribute | ast.Name):
        value = eval(ast.unparse(default), vars(module))
        if isinstance(value, int | float | str):
            return ast.Constant(value)
    return default


def test_public_names_and_signatures_are_those_of_docs_api_txt() -> None:
    assert public_api() == API.read_text(), "the public API changed: run `make api` and look at the diff"


if __name__ == "__main__":
    API.write_text(public_api())
