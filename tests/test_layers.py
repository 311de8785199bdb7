"""Imports go only downwards, and files stay short enough to read."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from build_hook import PACKAGES, rewrite

ROOT = Path(__file__).parents[1]
MAX_LINES = 400

# Highest first. A module may import from its own layer and from the layers below it. Every module is named here once,
# by name or by folder (`….*`); a new module gets its place in the same change that adds it.
LAYERS: dict[str, list[str]] = {
    "surfaces": ["coordinator.__main__", "coordinator.surfaces", "coordinator.surfaces.*"],
    "front": ["coordinator"],
    "testing": ["coordinator.testing"],
    "audit": ["coordinator.auditing", "coordinator.auditing.*"],
    "handles": [
        "coordinator.agent",
        "coordinator.approving",
        "coordinator.attempt",
        "coordinator.claim",
        "coordinator.claims",
        "coordinator.coordinator",
        "coordinator.explanation",
        "coordinator.held",
        "coordinator.log",
        "coordinator.operating",
        "coordinator.operation",
        "coordinator.pages",
        "coordinator.past",
        "coordinator.planning",
        "coordinator.reader",
        "coordinator.reads",
        "coordinator.runner",
        "coordinator.session",
        "coordinator.timelines",
        "coordinator.working",
    ],
    "threads": [
        "coordinator.artifacts",
        "coordinator.calls",
        "coordinator.certain",
        "coordinator.children",
        "coordinator.deliveries",
        "coordinator.descriptors",
        "coordinator.grants",
        "coordinator.hosting",
        "coordinator.keeper",
        "coordinator.loops",
        "coordinator.pipes",
        "coordinator.poller",
        "coordinator.processes",
        "coordinator.program",
        "coordinator.progress",
        "coordinator.renewals",
        "coordinator.seekers",
        "coordinator.supervision",
        "coordinator.supervisor",
        "coordinator.threads",
        "coordinator.timers",
        "coordinator.waiting",
        "coordinator.writer",
    ],
    "journey": [
        "coordinator.causes",
        "coordinator.differences",
        "coordinator.envelopes",
        "coordinator.execute",
        "coordinator.holders",
        "coordinator.moments",
        "coordinator.rebuild",
        "coordinator.refusal_limit",
        "coordinator.request",
        "coordinator.resuming",
        "coordinator.search",
        "coordinator.seen",
        "coordinator.steps",
        "coordinator.why",
    ],
    "rules": ["coordinator.answers", "coordinator.decisions", "coordinator.decisions.*", "coordinator.views"],
    "vocabulary": [
        "coordinator.approval",
        "coordinator.arguments",
        "coordinator.clock",
        "coordinator.commands",
        "coordinator.jobs",
        "coordinator.kinds",
        "coordinator.limits",
        "coordinator.messages",
        "coordinator.operation_refusals",
        "coordinator.operations",
        "coordinator.paths",
        "coordinator.payloads",
        "coordinator.printable",
        "coordinator.randomness",
        "coordinator.reasons",
        "coordinator.receipts",
        "coordinator.refusals",
        "coordinator.refused",
        "coordinator.sentences",
        "coordinator.tokens",
    ],
    "stores": ["coordinator.stores", "coordinator.stores.*"],
    "errors": ["coordinator.errors", "coordinator.forks"],
    "projections": ["projections", "projections.*"],
    "events": ["events", "events.*"],
}

# What a program pays for only when it uses it.
NOT_LOADED_BY_IMPORT = ["aiosqlite", "anyio", "asyncio", "click", "rich", "sqlite3"]


class Import(NamedTuple):
    module: str
    line: int
    only_types: bool


def module_name(file: Path) -> str:
    name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


MODULES = {module_name(file): file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))}


def imported(tree: ast.Module) -> Iterator[Import]:
    """Our own modules that this one imports, wherever the statement stands."""
    type_checking = {
        id(inner)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for statement in block.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                named = [name.name for name in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                # `from coordinator import agent` imports a module, `from coordinator import Agent` the front.
                named = [inner if (inner := f"{module}.{name.name}") in MODULES else module for name in names]
            case _:
                continue
        for name in named:
            if name.split(".")[0] in PACKAGES:
                yield Import(name, node.lineno, id(node) in type_checking)


IMPORTS = {module: list(imported(ast.parse(file.read_text()))) for module, file in MODULES.items()}


def homes(module: str) -> list[str]:
    return [layer for layer, patterns in LAYERS.items() for pattern in patterns if fnmatch(module, pattern)]


def height(module: str) -> int:
    return -list(LAYERS).index(homes(module)[0])


def test_every_module_has_its_place_in_exactly_one_layer() -> None:
    misplaced = [
        f"{module} stands in {homes(module) or 'no layer'}: name it in one layer of LAYERS in tests/test_layers.py"
        for module in MODULES
        if len(homes(module)) != 1
    ]

    assert not misplaced, "\n".join(misplaced)


def test_every_line_of_the_table_names_a_module_that_exists() -> None:
    stale = [
        f"nothing is called {pattern}: strike it from LAYERS"
        for patterns in LAYERS.values()
        for pattern in patterns
        if not any(fnmatch(module, pattern) for module in MODULES)
    ]

    assert not stale, "\n".join(stale)


def test_a_module_imports_only_from_its_own_layer_and_from_those_below() -> None:
    upwards = [
        f"{MODULES[module].relative_to(ROOT)}:{line}: {homes(module)[0]} imports {name}, which is {homes(name)[0]}"
        for module, imports in IMPORTS.items()
        for name, line, _ in imports
        if homes(module) and homes(name) and height(name) > height(module)
    ]

    assert not upwards, "\n".join(upwards)


def test_no_module_needs_itself_to_be_imported_first() -> None:
    needs = {module: {name for name, _, typing in imports if not typing} for module, imports in IMPORTS.items()}

    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" is imported by ".join(error.args[1]))


def test_no_import_escapes_the_rewriting_for_the_wheel() -> None:
    """In the wheel `events` is somebody else's; build_hook.py rewrites lines of the form `from events… import …`."""
    foreign = ("events", "projections")

    escaped: list[str] = []
    for module, file in MODULES.items():
        tree = ast.parse(rewrite(file.read_text()))
        # A module's name in a string is an import too, in a table of names that are resolved late.
        names = [(name, line) for name, line, _ in imported(tree)]
        names += [
            (node.value, node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and node.value in MODULES and "." in node.value
        ]
        escaped += [f"{module}:{line}: {name}" for name, line in names if name.split(".")[0] in foreign]

    assert not escaped, "\n".join(escaped)


def test_every_file_is_short_enough_to_be_read_in_one_go() -> None:
    lines = {file.relative_to(ROOT): len(file.read_text().splitlines()) for file in MODULES.values()}

    assert not {str(file): count for file, count in lines.items() if count > MAX_LINES}


def test_importing_coordinator_loads_neither_an_event_loop_nor_an_engine_nor_a_surface() -> None:
    program = "import coordinator, sys; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()

    assert "coordinator" in loaded
    assert not set(loaded) & set(NOT_LOADED_BY_IMPORT)
