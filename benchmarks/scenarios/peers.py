"""Ours beside other libraries that keep jobs in SQLite."""

from __future__ import annotations

from benchmarks.apart import call_apart
from benchmarks.peers.dbos import DBOS
from benchmarks.peers.huey import HUEY
from benchmarks.peers.litequeue import LITEQUEUE
from benchmarks.peers.ours import OURS
from benchmarks.peers.peer import Peer
from benchmarks.peers.persist_queue import PERSIST_QUEUE
from benchmarks.peers.threads import Cycles
from benchmarks.raw import rows_per_second
from benchmarks.scenario import Bench, Figure, Sample, Scenario, Table

_PEERS = (DBOS, HUEY, LITEQUEUE, PERSIST_QUEUE)
_WORKERS = {1: "one worker", 8: "8 workers"}
_MANY = 64
"""So many agents share each commit where ours is at its best."""


def _cycles(bench: Bench, peer: Peer, workers: int) -> float | None:
    """Jobs/s; None if this library can't be measured here."""
    if not peer.is_installed:
        bench.skip(f"{peer.name} is not installed: pip install '.[bench]'")
        return None
    with bench.scratch() as folder:
        arguments = {"folder": str(folder), "workers": workers, "seconds": bench.seconds}
        try:
            found: Cycles = call_apart(peer.cycles_per_second, **arguments)
        except RuntimeError as error:
            if peer is OURS:
                raise
            bench.skip(f"{peer.name} does not work here: {error}")
            return None
    if found["failed"]:
        bench.note(f"{peer.name}, {workers} at once: some cycles failed ({found['error'][:120]})")
    return found["per_s"]


def _sample(bench: Bench) -> Sample:
    with bench.scratch() as folder:
        sample: Sample = {"raw_commits_per_s": rows_per_second(folder / "raw.db", 1, bench.seconds / 2)}
    for peer in (OURS, *_PEERS):
        for workers in (*_WORKERS, _MANY) if peer is OURS else _WORKERS:
            found = _cycles(bench, peer, workers)
            if found:
                sample[f"{peer.key}_{workers}"] = found
    for peer in _PEERS:
        best = 0.0
        for workers in _WORKERS:
            if (key := f"{peer.key}_{workers}") in sample:
                sample[f"ours_to_{key}"] = sample[f"{OURS.key}_{workers}"] / sample[key]
                best = max(best, sample[key])
        if best:
            sample[f"many_to_{peer.key}"] = sample[f"{OURS.key}_{_MANY}"] / best
    return sample


PEERS = Scenario(
    name="peers",
    title="Other libraries on SQLite",
    how="Jobs that do nothing, with a payload of 220 characters: enqueue, claim, complete, again and again, by one"
    " worker and by 8, each library at its own defaults in a process of its own; one after another in each sample, on"
    f" the same disk. Ours also by {_MANY} agents, because commands that wait share a commit.",
    figures=(
        *(
            Figure(f"ours_to_{peer.key}_{workers}", f"jobs/s against {peer.name}, {who}", "times", at_least=1.0)
            for workers, who in _WORKERS.items()
            for peer in _PEERS
        ),
        *(
            Figure(f"many_to_{peer.key}", f"jobs/s of {_MANY} agents against the best of {peer.name}", "times")
            for peer in _PEERS
        ),
        Figure(f"{OURS.key}_{_MANY}", f"{OURS.name}, {_MANY} agents: jobs", "per_s"),
        *(
            Figure(f"{peer.key}_{workers}", f"{peer.name}, {who}: jobs", "per_s")
            for workers, who in _WORKERS.items()
            for peer in (OURS, *_PEERS)
        ),
        Figure("raw_commits_per_s", "raw commits of one row", "per_s"),
    ),
    sample=_sample,
    beside=Table(
        ("library", "cycle", "at its defaults", "does more", "does less"),
        tuple((peer.name, peer.cycle, peer.durability, peer.more, peer.less) for peer in (OURS, *_PEERS)),
    ),
)
