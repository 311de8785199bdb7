"""Who waits for whom: whoever is said to wait, or not to wait any more, does."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from coordinator.auditing.rule import Findings, spilled
from coordinator.auditing.spilled import Spill
from events.envelope import Envelope
from events.jobs import JobBlocked, JobUnblocked


class _Waiting(msgspec.Struct):
    depends_on: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()


class Dependencies:
    """What must hold for the states of jobs that depend on each other.

    Args:
        state_of: a job's state, as far as the log was read; "" for one that was never added.
    """

    def __init__(self, spill: Spill, findings: Findings, state_of: Callable[[str], str]) -> None:
        self._findings = findings
        self._state_of = state_of
        self._waiting = spilled(spill, "audit dependencies", _Waiting)
        self._owed: dict[tuple[type, str, str], int] = {}  # events that must follow within the command
        self._command = 0

    def command(self, position: int) -> None:
        """The events behind this are of another command: what the one before it owed is missing."""
        for (type_, job, by), at in self._owed.items():
            done = "unblocked" if type_ is JobUnblocked else "blocked"
            self._findings.add("dependency", at, f"job {job!r} was not {done} by {by!r}")
        self._owed.clear()

    def defined(self, job: str, depends_on: tuple[str, ...], envelope: Envelope) -> None:
        before = self._of(job)
        for name in depends_on:
            if not self._state_of(name) or name == job:
                self._findings.add("dependency", envelope.position, f"job {job!r} cannot depend on {name!r}")
        for name in set(before.depends_on) ^ set(depends_on):
            other = self._of(name)
            if name in depends_on:
                other.dependents = (*other.dependents, job)
            else:
                other.dependents = tuple(one for one in other.dependents if one != job)
            self._waiting.set(name, other)
        if before.depends_on != depends_on:
            before = self._of(job)
            before.depends_on = depends_on
            self._waiting.set(job, before)

    def open(self, job: str) -> list[str]:
        """The dependencies that are not accepted."""
        return [name for name in self._of(job).depends_on if self._state_of(name) != "accepted"]

    def state(self, job: str) -> str:
        return "blocked" if self.open(job) else "ready"

    def accepted(self, job: str, envelope: Envelope) -> None:
        for name in self._of(job).dependents:
            if self._state_of(name) == "blocked" and not self.open(name):
                self._owed[JobUnblocked, name, job] = envelope.position

    def reopened(self, job: str, envelope: Envelope) -> None:
        for name in self._of(job).dependents:
            state = self._state_of(name)
            if state in ("claimed", "submitted", "accepted"):
                problem = f"job {job!r} was reopened while {name!r}, which depends on it, was {state}"
                self._findings.add("dependency", envelope.position, problem)
            elif state == "ready":
                self._owed[JobBlocked, name, job] = envelope.position

    def told(self, event: JobUnblocked | JobBlocked, envelope: Envelope) -> None:
        if self._owed.pop((type(event), event.job, event.by), None) is None:
            done = "unblocked" if isinstance(event, JobUnblocked) else "blocked"
            problem = f"job {event.job!r} was {done} by {event.by!r}, which does not follow"
            self._findings.add("dependency", envelope.position, problem)

    def _of(self, job: str) -> _Waiting:
        return self._waiting.get(job) or _Waiting()
