"""`coordinator` and `python -m coordinator`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

_NEEDED = ("click", "rich")


def main() -> None:
    """Run the command line. Its libraries are an extra, so that the core stays small."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"the command line needs {' and '.join(missing)}; install them with the extra:\n"
            '    pip install "async-coordinator[cli]"\n'
            "or, in a clone:\n"
            '    pip install ".[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)

    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # whoever started it closed it: `>&-`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    from coordinator.surfaces.cli import command_line

    command_line(prog_name="coordinator")


if __name__ == "__main__":
    main()
