"""Places `events` and `projections` beneath `coordinator` in the wheel, so that it owns one import name only.

A foreign `events` (PyPI's Events, which opensearch-py needs, or a user's own `events.py`) would otherwise hide ours or
be overwritten by it. What the rewriting relies on, `tests/test_layers.py` checks: these two packages are imported by
`from events… import …` alone, each on a line of its own.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("coordinator", "events", "projections")
IMPORT = re.compile(r"^([ \t]*from )((?:events|projections)(?:\.[\w.]+)? import )", re.MULTILINE)


def rewrite(source: str) -> str:
    """The source as it stands in the wheel: line by line, so that line numbers in tracebacks stay right."""
    return IMPORT.sub(r"\1coordinator.\2", source)


class OneImportName(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # the tree itself is imported, as it is

        # Removed by `finalize`; where the build fails before that, by the object's own finalizer.
        self.staging = tempfile.TemporaryDirectory(prefix="coordinator-wheel-")
        for package in PACKAGES:
            self.stage(Path(self.root, package), Path(self.staging.name, "" if package == "coordinator" else package))
        build_data["force_include"][self.staging.name] = "coordinator"

    def stage(self, package: Path, destination: Path) -> None:
        for source in sorted(package.rglob("*")):
            within = source.relative_to(package)
            if source.is_dir() or any(part == "__pycache__" or part.startswith(".") for part in within.parts):
                continue
            target = destination / within
            target.parent.mkdir(parents=True, exist_ok=True)
            data = source.read_bytes()
            target.write_bytes(rewrite(data.decode()).encode() if source.suffix == ".py" else data)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.staging.cleanup()
