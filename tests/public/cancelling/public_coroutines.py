"""Which public names there are that a caller awaits, iterates over with `async for` or enters with `async with`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args

from coordinator import Kind
from tests.test_public_names import MODULES, OURS

PROTOCOLS = ("__aenter__", "__aexit__", "__anext__", "__await__")
ASYNCHRONOUS = ("__aenter__", "__aiter__", "__anext__", "__await__")


def public_coroutines() -> set[str]:
    """Their names, such as "Agent.claim" and "Claims.__anext__": of all that is exported, and of what that returns."""
    found: set[str] = set()
    seen: set[type] = set()
    waiting = [thing for module in MODULES for thing in exported(importlib.import_module(module))]
    while waiting:
        thing = waiting.pop()
        if inspect.isclass(thing) and issubclass(thing, Kind):
            continue  # its methods are the caller's own
        if inspect.isclass(thing) and thing not in seen:
            seen.add(thing)
            functions = list(methods(thing))
        elif inspect.isfunction(thing):
            functions = [(thing.__name__, thing)]
        else:
            continue
        for name, function in functions:
            returned = list(classes(return_hint(function)))
            if is_asynchronous(function) or any(is_one_of(cls, ASYNCHRONOUS) for cls in returned):
                found.add(name)
            waiting += [cls for cls in returned if is_ours(cls)]
    return found


def exported(module: ModuleType) -> Iterator[Any]:
    for name in module.__all__:
        yield getattr(module, name)


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    for name in dir(cls):
        if name.startswith("_") and name not in PROTOCOLS:
            continue
        member = inspect.getattr_static(cls, name)
        function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
        if inspect.isfunction(function) and function.__module__.split(".")[0] in OURS:
            yield f"{cls.__name__}.{name}", function


def is_asynchronous(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def return_hint(function: Any) -> Any:
    """Only this one: parameters may be of types that are imported for type checkers alone."""
    hint = inspect.get_annotations(function).get("return")
    return eval(hint, function.__globals__) if isinstance(hint, str) else hint


def classes(hint: Any) -> Iterator[type]:
    """All that a hint such as `Claim | None` or `Callable[[], Awaitable[int]]` speaks of."""
    if inspect.isclass(hint):
        yield hint
    origin = getattr(hint, "__origin__", None)
    if inspect.isclass(origin):
        yield origin
    for inner in get_args(hint):
        yield from classes(inner)


def is_one_of(cls: type, protocols: tuple[str, ...]) -> bool:
    return any(hasattr(cls, name) for name in protocols)


def is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] in OURS
