"""Prints constraints.txt with all that users install, core and `cli`, at the lowest version pyproject.toml allows.

The tools that run the tests stay at their pins.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lowest_constraints() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = dict(
        requirement.split(">=", 1) for requirement in project["dependencies"] + project["optional-dependencies"]["cli"]
    )
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    return [f"{name}=={version}" for name, version in sorted({**pins, **lowest}.items())]


if __name__ == "__main__":
    print("\n".join(lowest_constraints()))
