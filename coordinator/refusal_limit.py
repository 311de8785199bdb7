"""How many refusals of one actor are recorded, so that a loop that asks in vain cannot fill the log."""

from __future__ import annotations

RECORDED_PER_SECOND = 8

_SECOND = 1_000_000
_ACTORS = 10_000


class RefusalLimit:
    """Counts refusals per actor and second of log time. Lives in the writer; it is no part of the derived state."""

    def __init__(self) -> None:
        self._actors: dict[str, tuple[int, int, int]] = {}  # actor -> second, recorded in it, left out so far

    def admit(self, actor: str, now: int) -> int | None:
        """Whether this refusal is to be recorded: the number left out before it, or None if it is left out too."""
        second = now // _SECOND
        last, recorded, left_out = self._actors.pop(actor, (second, 0, 0))
        if last != second:
            recorded = 0
        if recorded == RECORDED_PER_SECOND:
            self._actors[actor] = second, recorded, left_out + 1
            return None
        self._actors[actor] = second, recorded + 1, 0
        if len(self._actors) > _ACTORS:
            self._actors.pop(next(iter(self._actors)))  # whoever asked longest ago
        return left_out
