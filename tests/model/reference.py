"""The rules of jobs, paths and receipts once more, on plain dicts: slow, small, and written apart from the decisions.

It knows no events, rows or transactions. Where it and the library disagree, one of them is wrong about the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from msgspec import UNSET

from coordinator import commands as ask
from coordinator.commands import AnyCommand


class No(Exception):
    """A refusal; only its code is foretold."""


class Expected(NamedTuple):
    """What a request must be told: a refusal's code, or an answer (None: nothing happens)."""

    code: str | None = None
    answer: tuple[Any, ...] | None = None
    repeated: bool = False


@dataclass
class Claim:
    actor: str
    attempt: int
    lease: int
    until: int
    paths: set[tuple[str, ...]]
    ended: str | None = None


@dataclass
class Job:
    id: str
    state: str
    max_attempts: int
    review: str
    priority: int
    paths: set[tuple[str, ...]]
    needs: tuple[str, ...]
    version: int = 1
    attempts: int = 0
    used: int = 0
    ready_since: int = 0
    worker: str | None = None
    claim: Claim | None = None  # the latest

    def live(self) -> Claim | None:
        return self.claim if self.claim is not None and self.claim.ended is None else None


@dataclass
class Reference:
    jobs: dict[str, Job] = field(default_factory=dict)
    tokens: dict[str, tuple[str, str, int]] = field(default_factory=dict)  # digest -> job, actor, attempt
    receipts: dict[tuple[str, str], tuple[AnyCommand, Expected]] = field(default_factory=dict)
    now: int = 0
    _turns: Iterator[int] = field(default_factory=lambda: count(1))

    def lapse(self, now: int) -> int:
        """Let time pass; returns how many leases ran out."""
        self.now = now
        due = [job for job in self.jobs.values() if (claim := job.live()) is not None and claim.until <= now]
        for job in sorted(due, key=lambda job: (job.claim.until, job.id)):  # pyright: ignore[reportOptionalMemberAccess]
            self._end(job, "lapsed")
        return len(due)

    def ask(self, actor: str, receipt: str, command: AnyCommand) -> Expected:
        used = self.receipts.get((actor, receipt))
        if used is not None:
            return used[1]._replace(repeated=True) if used[0] == command else Expected("receipt_conflict")
        try:
            answer = self._decide(actor, command)
        except No as no:
            return Expected(str(no))
        if answer is None:
            return Expected()
        self.receipts[actor, receipt] = command, Expected(answer=answer)
        return Expected(answer=answer)

    def granted(self, digest: str, job: str, actor: str, attempt: int) -> None:
        self.tokens[digest] = job, actor, attempt

    def is_live(self, digest: str) -> bool:
        job, _, attempt = self.tokens[digest]
        claim = self.jobs[job].live()
        return claim is not None and claim.attempt == attempt

    def _decide(self, actor: str, command: AnyCommand) -> tuple[Any, ...] | None:
        match command:
            case ask.AddJob():
                return self._add(actor, command)
            case ask.ReviseJob():
                return self._revise(command)
            case ask.ClaimJob():
                return self._claim_seen(actor, command)
            case ask.ClaimNext():
                return self._claim_next(actor, command)
            case ask.AcceptJob() | ask.RejectJob():
                return self._review(actor, command)
            case ask.RevokeClaim():
                job = self._seen(command)
                if job.state != "claimed":
                    raise No("not_claimed")
                return self._end(job, "revoked")
            case ask.CancelJob():
                job = self._seen(command)
                if job.state in ("accepted", "cancelled"):
                    raise No("job_closed")
                if (claim := job.live()) is not None:
                    claim.ended = "cancelled"
                return self._becomes(job, "cancelled")
            case ask.ReopenJob():
                return self._reopen(command)
            case ask.RenewClaim():
                job, claim = self._held(actor, command.job, command.token_digest)
                claim.lease = claim.lease if command.lease_us is None else command.lease_us
                claim.until = self.now + claim.lease
                return "renewed", claim.until
            case ask.NoteProgress():
                self._held(actor, command.job, command.token_digest)
                return ("noted",)
            case ask.ReservePaths():
                return self._reserve(actor, command)
            case ask.SubmitJob():
                return self._submit(actor, command)
            case ask.FailJob():
                job, _ = self._held(actor, command.job, command.token_digest)
                return self._end(job, "failed")
            case ask.ReleaseJob():
                job, _ = self._held(actor, command.job, command.token_digest)
                job.used -= 1
                return self._end(job, "released")

    # Describing jobs

    def _add(self, actor: str, command: ask.AddJob) -> tuple[Any, ...]:
        if command.shown is not None:
            self._held(actor, command.shown.job, command.shown.token_digest)
        if command.job in self.jobs:
            raise No("job_exists")
        if command.job in command.depends_on:
            raise No("dependency_cycle")
        if any(needed not in self.jobs for needed in command.depends_on):
            raise No("job_unknown")
        job = Job(
            command.job,
            "new",
            command.max_attempts,
            command.review,
            command.priority,
            components(command.paths),
            command.depends_on,
            version=0,
        )
        self.jobs[job.id] = job
        return self._becomes(job, self._open_state(job))

    def _revise(self, command: ask.ReviseJob) -> tuple[Any, ...]:
        job = self._seen(command)
        if job.state == "claimed":
            raise No("already_claimed")
        if job.state == "submitted":
            raise No("already_submitted")
        if job.state not in ("blocked", "ready"):
            raise No("job_closed")
        needs = job.needs if command.depends_on is UNSET else command.depends_on
        self._refuse_cycle(job.id, needs)
        job.needs = needs
        if command.paths is not UNSET:
            job.paths = components(command.paths)
        if command.priority is not UNSET:
            job.priority = command.priority
        if command.review is not UNSET:
            job.review = command.review
        if command.max_attempts is not UNSET:
            job.max_attempts = command.max_attempts
        return self._becomes(job, "failed" if job.used >= job.max_attempts else self._open_state(job))

    def _refuse_cycle(self, job: str, needs: tuple[str, ...]) -> None:
        if any(needed not in self.jobs for needed in needs):
            raise No("job_unknown")
        reached, more = set[str](), set(needs)
        while more:
            reached |= more
            more = {needed for name in more for needed in self.jobs[name].needs} - reached
        if job in reached:
            raise No("dependency_cycle")

    def _reopen(self, command: ask.ReopenJob) -> tuple[Any, ...]:
        job = self._seen(command)
        if job.state not in ("accepted", "failed", "cancelled"):
            raise No("job_open")
        dependents = [other for other in self.jobs.values() if job.id in other.needs]
        if any(other.state in ("claimed", "submitted", "accepted") for other in dependents):
            raise No("dependents_started")
        job.used = 0
        answer = self._becomes(job, self._open_state(job))
        for other in dependents:
            if other.state == "ready":
                other.state = "blocked"
        return answer

    # Claiming

    def _claim_seen(self, actor: str, command: ask.ClaimJob) -> tuple[Any, ...]:
        job = self._seen(command)
        refusals = {
            "claimed": "already_claimed",
            "submitted": "already_submitted",
            "blocked": "dependencies_unaccepted",
            "failed": "attempts_exhausted",
            "accepted": "job_closed",
            "cancelled": "job_closed",
        }
        if job.state in refusals:
            raise No(refusals[job.state])
        if self._clashes(job.paths):
            raise No("path_clash")
        return self._claim(job, actor, command.lease_us)

    def _claim_next(self, actor: str, command: ask.ClaimNext) -> tuple[Any, ...] | None:
        skipped: list[Job] = []
        ready = [job for job in self.jobs.values() if job.state == "ready"]
        for job in sorted(ready, key=lambda job: (-job.priority, job.ready_since)):
            above = {path for other in skipped if other.priority > job.priority for path in other.paths}
            if not self._clashes(job.paths) and not any(clash(a, b) for a in job.paths for b in above):
                return self._claim(job, actor, command.lease_us)
            skipped.append(job)
        return None

    def _claim(self, job: Job, actor: str, lease: int) -> tuple[Any, ...]:
        job.attempts += 1
        job.used += 1
        job.claim = Claim(actor, job.attempts, lease, self.now + lease, set(job.paths))
        self._becomes(job, "claimed")
        job.worker = actor
        return "claim", job.id, job.version, job.attempts, job.claim.until, frozenset(job.paths)

    def _reserve(self, actor: str, command: ask.ReservePaths) -> tuple[Any, ...] | None:
        job, claim = self._held(actor, command.job, command.token_digest)
        wanted = components(command.paths)
        if self._clashes(wanted, but=job):
            raise No("path_clash")
        held = {path for path in claim.paths | wanted if not _is_below_any(path, claim.paths | wanted)}
        if held == claim.paths:
            return None
        claim.paths = held
        return "reserved", frozenset(held)

    def _clashes(self, paths: set[tuple[str, ...]], but: Job | None = None) -> bool:
        held = [claim for job in self.jobs.values() if job is not but and (claim := job.live()) is not None]
        return any(clash(mine, theirs) for mine in paths for claim in held for theirs in claim.paths)

    def _held(self, actor: str, name: str, digest: str) -> tuple[Job, Claim]:
        job, claimant, attempt = self.tokens.get(digest, ("", "", 0))
        if (job, claimant) != (name, actor):
            raise No("token_unknown")
        claim = self.jobs[name].claim
        assert claim is not None
        if claim.attempt != attempt:
            raise No("token_superseded")
        if claim.ended is not None:
            raise No("lease_lapsed" if claim.ended == "lapsed" else "claim_ended")
        return self.jobs[name], claim

    # Ending

    def _submit(self, actor: str, command: ask.SubmitJob) -> tuple[Any, ...]:
        job, claim = self._held(actor, command.job, command.token_digest)
        claim.ended = "submitted"
        answer = self._becomes(job, "submitted")
        job.worker = actor
        return self._accepted(job) if job.review == "none" else answer

    def _review(self, actor: str, command: ask.AcceptJob | ask.RejectJob) -> tuple[Any, ...]:
        job = self._seen(command)
        if job.state != "submitted":
            raise No("not_submitted")
        if job.worker == actor and job.review != "anyone":
            raise No("self_review")
        return self._accepted(job) if isinstance(command, ask.AcceptJob) else self._back(job)

    def _accepted(self, job: Job) -> tuple[Any, ...]:
        answer = self._becomes(job, "accepted")
        for other in sorted(self.jobs.values(), key=lambda other: other.id):
            if other.state == "blocked" and job.id in other.needs and self._open_state(other) == "ready":
                other.state = "ready"
                other.ready_since = next(self._turns)
        return answer

    def _end(self, job: Job, how: str) -> tuple[Any, ...]:
        claim = job.live()
        assert claim is not None
        claim.ended = how
        return self._back(job)

    def _back(self, job: Job) -> tuple[Any, ...]:
        return self._becomes(job, "failed" if job.used >= job.max_attempts else "ready")

    # Both

    def _seen(self, command: ask.VersionedCommand) -> Job:
        job = self.jobs.get(command.job)
        if job is None:
            raise No("job_unknown")
        if job.version != command.version:
            raise No("version_changed")
        return job

    def _open_state(self, job: Job) -> str:
        return "ready" if all(self.jobs[needed].state == "accepted" for needed in job.needs) else "blocked"

    def _becomes(self, job: Job, state: str) -> tuple[Any, ...]:
        if state == "ready" and job.state != "ready":
            job.ready_since = next(self._turns)
        job.state = state
        job.version += 1
        return "job", job.id, state, job.version


def components(paths: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Paths as tuples of names; everything is ()."""
    return {() if path == "." else tuple(path.lower().split("/")) for path in paths}


def clash(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _is_below_any(path: tuple[str, ...], paths: set[tuple[str, ...]]) -> bool:
    return any(path[: len(other)] == other and path != other for other in paths)
