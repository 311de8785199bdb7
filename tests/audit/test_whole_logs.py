"""What the library wrote passes, wherever it lies and whoever writes on."""

from __future__ import annotations

from pathlib import Path

from tests.audit.story import found


def test_what_the_library_wrote_passes(database: Path) -> None:
    assert found(database) == []
