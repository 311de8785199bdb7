"""Whatever several actors ask, in whatever order: the library and a simple model of the rules say the same.

MODEL_EXAMPLES=5000 pytest tests/model tries more; a failure prints the steps and a blob to repeat it with.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw

from coordinator import commands as ask
from coordinator.answers import ClaimGranted, LeaseRenewed, NoteTaken, PathsReserved
from coordinator.clock import ManualClock
from coordinator.commands import AnyCommand, Shown
from coordinator.jobs import JobRef
from coordinator.paths import normalise
from coordinator.refusals import Refused
from coordinator.request import Outcome, Request
from coordinator.stores.interface import Store
from coordinator.stores.memory import MemoryStore
from coordinator.stores.sqlite import SqliteStore
from projections.jobs import JOBS
from projections.leases import LEASES
from projections.reservations import RESERVATIONS
from tests.model.reference import Expected, Reference, clash, components
from tests.support import Workspace

ACTORS = st.sampled_from(["ada", "bob", "eve"])
FOUR = ("a", "b", "c", "d")
NAMES = st.sampled_from([*FOUR, "e"])
PATHS = st.sampled_from(
    [
        normalise("paths", paths)
        for paths in ([], ["src"], ["src/a"], ["src/a", "doc"], ["src/b/x"], ["SRC/A/y"], ["docs"])
    ]
    + [(".",)]
)
NEEDS = st.sampled_from([(), (), (), ("a",), ("b",), ("a", "b"), ("c", "a"), ("d",)])
REVIEWS = st.sampled_from(["other", "anyone", "none"])
PRIORITIES = st.integers(-1, 1)
ATTEMPTS = st.integers(1, 3)
LEASES_US = st.sampled_from([20_000_000, 60_000_000, 100_000_000])
PICK = st.integers(0, 7)  # which one of those that fit; of claims 0 is the newest
FITTING = st.sampled_from([True, True, True, True, False])  # or any
OFF = st.sampled_from([0, 0, 0, 0, 0, 0, -1, 1])  # by how much a version is wrong
WHEN = st.sampled_from(["now", "now", "now", "by the other writer", "later"])  # later: with what is asked next


FITTING_STATES = {
    "accept": "submitted",
    "reject": "submitted",
    "revoke": "claimed",
    "cancel": "blocked ready claimed submitted failed",
    "reopen": "accepted failed cancelled",
}


class Machine(RuleBasedStateMachine):
    """Two writers take turns on one store; each remembers rows that the other may have changed."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.stores = self.open()
        self.writers = [Workspace(store, self.clock) for store in self.stores]
        self.model = Reference()
        self.waiting: list[Request] = []
        self.asked: list[tuple[str, str, AnyCommand]] = []
        self.claims: list[tuple[str, str, str]] = []  # job, actor, digest of every claim ever granted
        self.first: dict[tuple[str, str], Outcome] = {}
        self.writer = 0

    def open(self) -> list[Store]:
        raise NotImplementedError

    # What can happen

    @initialize(described=st.tuples(*[st.tuples(PATHS, NEEDS, PRIORITIES, ATTEMPTS, REVIEWS) for _ in FOUR]))
    def there_are_four_jobs(self, described: Any) -> None:
        for job, (paths, needs, *rest) in zip(FOUR, described, strict=True):
            earlier = tuple(needed for needed in needs if needed < job)
            self.ask("ada", _add(job, paths, earlier, *rest), when="now")

    @rule(seconds=st.sampled_from([1, 5, 20, 60]))
    def time_passes(self, seconds: int) -> None:
        self.commit()
        self.clock.advance(seconds)

    @rule(
        actor=ACTORS,
        job=NAMES,
        paths=PATHS,
        needs=NEEDS,
        review=REVIEWS,
        under_a_claim=st.booleans(),
        pick=PICK,
        when=WHEN,
    )
    def add(
        self, actor: str, job: str, paths: Any, needs: Any, review: Any, under_a_claim: bool, pick: int, when: str
    ) -> None:
        command = _add(job, paths, needs, 0, 2, review)
        if under_a_claim and self.claims:
            held, holder, digest = self.a_claim(pick, fitting=pick < 4)
            command = msgspec.structs.replace(command, shown=Shown(job=held, token_digest=digest))
            actor = actor if pick == 0 else holder
        self.ask(actor, command, when)

    @rule(
        actor=ACTORS,
        pick=PICK,
        fitting=FITTING,
        off=OFF,
        fields=st.fixed_dictionaries(
            {},
            optional={
                "payload": st.just(Raw(b"{}")),
                "paths": PATHS,
                "depends_on": NEEDS,
                "priority": PRIORITIES,
                "max_attempts": ATTEMPTS,
                "review": REVIEWS,
            },
        ),
        when=WHEN,
    )
    def revise(self, actor: str, pick: int, fitting: bool, off: int, fields: Any, when: str) -> None:
        job = self.a_job(pick, "blocked ready" if fitting else "")
        self.ask(actor, ask.ReviseJob(job=job, version=self.version(job, off), **fields), when)

    @rule(actor=ACTORS, pick=PICK, fitting=FITTING, off=OFF, lease=LEASES_US, when=WHEN)
    def claim(self, actor: str, pick: int, fitting: bool, off: int, lease: int, when: str) -> None:
        job = self.a_job(pick, "ready" if fitting else "")
        self.ask(actor, ask.ClaimJob(job=job, version=self.version(job, off), lease_us=lease), when)

    @rule(actor=ACTORS, lease=LEASES_US, when=WHEN)
    def claim_next(self, actor: str, lease: int, when: str) -> None:
        self.ask(actor, ask.ClaimNext(lease_us=lease), when)

    @precondition(lambda self: self.claims)
    @rule(pick=PICK, fitting=FITTING, when=WHEN)
    def submit(self, pick: int, fitting: bool, when: str) -> None:
        job, actor, digest = self.a_claim(pick, fitting)
        self.ask(actor, _write("submit", job, digest, None, ()), when)

    @precondition(lambda self: self.claims)
    @rule(
        write=st.sampled_from(["renew", "note", "reserve", "reserve", "submit", "fail", "release"]),
        pick=PICK,
        fitting=FITTING,
        foreign=st.sampled_from(["", "", "", "", "", "", "actor", "job"]),
        lease=st.one_of(st.none(), LEASES_US),
        paths=PATHS,
        when=WHEN,
    )
    def write_under_a_claim(
        self, write: str, pick: int, fitting: bool, foreign: str, lease: int | None, paths: Any, when: str
    ) -> None:
        """Not fitting are the claims of late workers."""
        job, actor, digest = self.a_claim(pick, fitting)
        if foreign == "actor":
            actor = "eve" if actor != "eve" else "ada"
        elif foreign == "job":
            job = "a" if job != "a" else "b"
        self.ask(actor, _write(write, job, digest, lease, paths), when)

    @rule(actor=ACTORS, pick=PICK, fitting=FITTING, off=OFF, when=WHEN)
    def accept(self, actor: str, pick: int, fitting: bool, off: int, when: str) -> None:
        self.act(actor, "accept", pick, fitting, off, when)

    @rule(
        acts=st.permutations(["reject", "revoke", "cancel", "reopen"]),
        actor=ACTORS,
        pick=PICK,
        fitting=FITTING,
        off=OFF,
        when=WHEN,
    )
    def act_on_a_job(self, acts: list[str], actor: str, pick: int, fitting: bool, off: int, when: str) -> None:
        possible = [act for act in acts if self.jobs_in(FITTING_STATES[act])] if fitting else []
        self.act(actor, (possible or acts)[0], pick, fitting, off, when)

    @precondition(lambda self: self.asked)
    @rule(pick=st.integers(0, 30), how=st.sampled_from(["", "", "other request", "other actor"]), when=WHEN)
    def ask_again(self, pick: int, how: str, when: str) -> None:
        actor, receipt, command = self.asked[-1 - pick % len(self.asked)]
        if how:
            command = _add("f", (), (), -1, 1, "anyone")
        self.ask("mallory" if how == "other actor" else actor, command, when, receipt)

    # Which one

    def jobs_in(self, states: str) -> list[str]:
        return [job.id for job in self.model.jobs.values() if job.state in states.split()]

    def a_job(self, pick: int, states: str) -> str:
        """A job in one of these states if there is one, else any."""
        names = self.jobs_in(states) or [*FOUR, "e", "f"]
        return names[pick % len(names)]

    def a_claim(self, pick: int, fitting: bool) -> tuple[str, str, str]:
        """Job, actor and token of a claim: one that is live if there is one, else any that ever was."""
        live = [claim for claim in self.claims if self.model.is_live(claim[2])] if fitting else []
        claims = live or self.claims
        return claims[-1 - pick % len(claims)]

    def act(self, actor: str, act: str, pick: int, fitting: bool, off: int, when: str) -> None:
        job = self.a_job(pick, FITTING_STATES[act] if fitting else "")
        self.ask(actor, _act(act, job, self.version(job, off)), when)

    # How it is asked

    def version(self, job: str, off: int) -> int:
        known = self.model.jobs.get(job)
        return off + (1 if known is None else known.version)

    def ask(self, actor: str, command: AnyCommand, when: str, receipt: str | None = None) -> None:
        request = self.writers[self.writer].request(actor, command, receipt or f"receipt {len(self.asked)}")
        if receipt is None:
            self.asked.append((actor, request.receipt, command))
        self.waiting.append(request)
        if when != "later":
            self.commit()
        if when == "by the other writer":
            self.writer = 1 - self.writer

    def commit(self) -> None:
        """Have all that waits run in one batch, and hear from the model what must come of it."""
        requests, self.waiting = self.waiting, []
        before = len(self.writers[self.writer].log())
        lapsed = self.model.lapse(self.clock.wall())

        outcomes = self.writers[self.writer].batch(*requests)

        expected = [self.model.ask(request.actor, request.receipt, request.command) for request in requests]
        assert [told(outcome) for outcome in outcomes] == expected
        for request, outcome in zip(requests, outcomes, strict=True):
            self.remember(request, outcome)
        if all(outcome.repeated or outcome == Outcome() for outcome in outcomes):
            assert len(self.writers[self.writer].log()) == before + lapsed

    def remember(self, request: Request, outcome: Outcome) -> None:
        if outcome.answer is None:
            return
        first = self.first.setdefault((request.actor, request.receipt), outcome)
        assert (outcome.answer, outcome.position) == (first.answer, first.position)  # with the same token
        if isinstance(outcome.answer, ClaimGranted) and not outcome.repeated:
            claim = outcome.answer.job.id, request.actor, outcome.answer.token.digest
            self.claims.append(claim)
            self.model.granted(claim[2], claim[0], claim[1], outcome.answer.attempt)

    # What always holds

    @invariant()
    def the_log_explains_every_row(self) -> None:
        if not self.waiting:
            self.writers[1 - self.writer].check()

    @invariant()
    def jobs_and_claims_are_as_the_model_says(self) -> None:
        if self.waiting:
            return
        rows = self.writers[self.writer].rows()
        jobs = {key: JOBS.decode(body) for (view, key), (_, _, body) in rows.items() if view == "jobs"}
        leases = [LEASES.decode(body) for (view, _), (_, _, body) in rows.items() if view == "leases"]
        reservations = [RESERVATIONS.decode(body) for (view, _), (_, _, body) in rows.items() if view == "reservations"]

        assert {key: (job.state, job.version, job.attempt, job.used) for key, job in jobs.items()} == {
            job.id: (job.state, job.version, job.attempts, job.used) for job in self.model.jobs.values()
        }
        live = sorted(lease.subject for lease in leases if lease.ended is None)
        assert live == sorted(f"job/{job.id}" for job in jobs.values() if job.state == "claimed")
        held = [(row.job, path) for row in reservations for path in components((row.path,))]
        assert sorted(held) == sorted(
            (job.id, path) for job in self.model.jobs.values() if (claim := job.live()) for path in claim.paths
        )
        assert not any(clash(one[1], other[1]) for one, other in combinations(held, 2))

    def teardown(self) -> None:
        try:
            self.commit()
            self.the_log_explains_every_row()
        finally:
            for store in self.stores:
                store.close()


def told(outcome: Outcome) -> Expected:
    """An outcome in the words of the model."""
    match outcome:
        case Outcome(error=Refused() as refusal):
            return Expected(code=refusal.code)
        case Outcome(error=None, answer=None):
            return Expected()
        case Outcome(answer=ClaimGranted() as claim):
            paths = frozenset(components(claim.paths))
            answer = "claim", claim.job.id, claim.job.version, claim.attempt, claim.lease_until, paths
        case Outcome(answer=JobRef() as job):
            answer = "job", job.id, job.state, job.version
        case Outcome(answer=LeaseRenewed() as renewed):
            answer = "renewed", renewed.lease_until
        case Outcome(answer=PathsReserved() as reserved):
            answer = "reserved", frozenset(components(reserved.paths))
        case Outcome(answer=NoteTaken()):
            answer = ("noted",)
        case _:
            raise AssertionError(f"nobody foretold {outcome}")
    return Expected(answer=answer, repeated=outcome.repeated)


def _add(job: str, paths: Any, needs: Any, priority: int, max_attempts: int, review: Any) -> ask.AddJob:
    return ask.AddJob(
        job=job,
        payload=Raw(b"{}"),
        paths=paths,
        depends_on=needs,
        priority=priority,
        max_attempts=max_attempts,
        review=review,
    )


def _write(write: str, job: str, digest: str, lease: int | None, paths: Any) -> AnyCommand:
    held: dict[str, Any] = {"job": job, "token_digest": digest}
    writes: dict[str, Callable[[], AnyCommand]] = {
        "renew": lambda: ask.RenewClaim(**held, lease_us=lease),
        "note": lambda: ask.NoteProgress(**held, note=Raw(b"{}")),
        "reserve": lambda: ask.ReservePaths(**held, paths=paths),
        "submit": lambda: ask.SubmitJob(**held, result=Raw(b"{}")),
        "fail": lambda: ask.FailJob(**held, reason="no luck"),
        "release": lambda: ask.ReleaseJob(**held),
    }
    return writes[write]()


def _act(act: str, job: str, version: int) -> AnyCommand:
    seen: dict[str, Any] = {"job": job, "version": version}
    acts: dict[str, Callable[[], AnyCommand]] = {
        "accept": lambda: ask.AcceptJob(**seen),
        "reject": lambda: ask.RejectJob(**seen, reason="incomplete"),
        "revoke": lambda: ask.RevokeClaim(**seen, reason="too slow"),
        "cancel": lambda: ask.CancelJob(**seen),
        "reopen": lambda: ask.ReopenJob(**seen),
    }
    return acts[act]()


class InMemory(Machine):
    def open(self) -> list[Store]:
        store = MemoryStore()
        return [store, store]


class OnSqlite(Machine):
    def open(self) -> list[Store]:
        self.folder = tempfile.mkdtemp(prefix="model-")
        path = Path(self.folder, "work.db")
        return [SqliteStore.open(path), SqliteStore.open(path)]

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.folder)


def examples(number: int) -> settings:
    return settings(
        max_examples=int(os.environ.get("MODEL_EXAMPLES", "0")) or number,
        stateful_step_count=50,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


TestInMemory = InMemory.TestCase
TestInMemory.settings = examples(300)

TestOnSqlite = OnSqlite.TestCase
TestOnSqlite.settings = examples(40)
