"""How many refusals of one actor are recorded, so that a loop that asks in vain cannot fill the log."""

from __future__ import annotations

from typing import NamedTuple

RECORDED_PER_SECOND = 8

_SECOND = 1_000_000
_ACTORS = 10_000


class _Recorded(NamedTuple):
    at: tuple[int, ...] = ()  # log times of the last few that were recorded
    left_out: int = 0  # since the last of them


class RefusalLimit:
    """Counts refusals per actor, within any second of log time.

    It lives in the writer and is no part of the derived state. What a batch admits counts once the batch is kept.
    """

    def __init__(self) -> None:
        self._actors: dict[str, _Recorded] = {}
        self._before: dict[str, _Recorded | None] = {}  # what this batch changed

    def admit(self, actor: str, now: int) -> int | None:
        """Whether this refusal is to be recorded: the number left out before it, or None if it is left out too."""
        known = self._actors.pop(actor, None)
        self._before.setdefault(actor, known)
        at, left_out = known or _Recorded()
        if len(at) == RECORDED_PER_SECOND and now - at[0] < _SECOND:
            self._actors[actor] = _Recorded(at, left_out + 1)
            return None
        self._actors[actor] = _Recorded((*at, now)[-RECORDED_PER_SECOND:])
        return left_out

    def keep(self) -> None:
        """The batch was committed."""
        self._before.clear()
        while len(self._actors) > _ACTORS:
            self._actors.pop(next(iter(self._actors)))  # whoever asked longest ago

    def undo(self) -> None:
        """The batch was not committed: its refusals are not recorded."""
        for actor, known in self._before.items():
            self._actors.pop(actor, None)
            if known is not None:
                self._actors[actor] = known
        self._before.clear()
