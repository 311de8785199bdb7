"""Writes under a receipt of the caller's, cancelled at any step."""

from __future__ import annotations

from typing import Any

from tests.public.cancelling.row import (
    Ask,
    Given,
    Row,
    accepted,
    claimed,
    claimed_job,
    handed_out,
    losing_the_answer,
    nothing,
    ready,
    submitted,
    told,
)
from tests.public.cancelling.stepping import Ended
from tests.public.cancelling.world import World


def write(covers: str, given: Given, event: str, ask: Ask) -> Row:
    """Applied once or never; the receipt tells which, and asking again with it comes to the same."""

    async def afterwards(world: World, given: Any, ended: Ended) -> None:
        applied, recalled = await world.since(event), await world.ada.recall(world.receipt)
        assert len(applied) == {"undrawn": 0, "applied": 1}.get(ended.command or "", len(applied))
        assert len(applied) == (0 if recalled is None else 1)
        if not ended.cancelled:
            assert told(recalled) == told(ended.answer)

        again = await ask(world, given)

        assert len(await world.since(event)) == 1
        assert recalled is None or told(recalled) == told(again)
        assert told(await world.ada.recall(world.receipt)) == told(again)

    return Row(covers=covers.split(), given=given, ask=ask, afterwards=afterwards)


async def opened(world: World) -> int:
    async with world.ada.reader(world.id, receipt=world.receipt) as reader:
        return reader.acknowledged


WRITES = {
    "add a job": write("Agent.add_job", nothing, "job.added", lambda w, _: w.ada.add_job(w.id, receipt=w.receipt)),
    "revise a job": write(
        "Agent.revise_job", ready, "job.revised", lambda w, job: w.ada.revise_job(job, priority=3, receipt=w.receipt)
    ),
    "cancel a job": write(
        "Agent.cancel_job", claimed_job, "job.cancelled", lambda w, job: w.ada.cancel_job(job, receipt=w.receipt)
    ),
    "reopen a job": write(
        "Agent.reopen_job", accepted, "job.reopened", lambda w, job: w.ada.reopen_job(job, receipt=w.receipt)
    ),
    "revoke": write(
        "Agent.revoke", claimed_job, "job.revoked", lambda w, job: w.ada.revoke(job, "why", receipt=w.receipt)
    ),
    "accept": write("Agent.accept", submitted, "job.accepted", lambda w, job: w.ada.accept(job, receipt=w.receipt)),
    "reject": write(
        "Agent.reject", submitted, "job.rejected", lambda w, job: w.ada.reject(job, "why", receipt=w.receipt)
    ),
    "claim by a receipt": write(
        "Agent.claim", ready, "job.claimed", lambda w, job: w.ada.claim(job, receipt=w.receipt)
    ),
    "claim next by a receipt": write(
        "Agent.claim_next", ready, "job.claimed", lambda w, _: w.ada.claim_next(receipt=w.receipt)
    ),
    "renew": write("Claim.renew", claimed, "job.renewed", lambda w, claim: claim.renew(90, receipt=w.receipt)),
    "note": write("Claim.note", claimed, "job.noted", lambda w, claim: claim.note({"at": 1}, receipt=w.receipt)),
    "reserve": write(
        "Claim.reserve", claimed, "job.reserved", lambda w, claim: claim.reserve([f"{w.id}-b"], receipt=w.receipt)
    ),
    "submit": write("Claim.submit", claimed, "job.submitted", lambda w, claim: claim.submit(receipt=w.receipt)),
    "submit whose answer is lost": write(
        "Claim.submit",
        claimed,
        "job.submitted",
        lambda w, claim: losing_the_answer(w, claim.submit(receipt=w.receipt)),
    ),
    "fail": write("Claim.fail", claimed, "job.failed", lambda w, claim: claim.fail("why", receipt=w.receipt)),
    "release": write("Claim.release", claimed, "job.released", lambda w, claim: claim.release(receipt=w.receipt)),
    "add a job under a claim": write(
        "Claim.add_job", claimed, "job.added", lambda w, claim: claim.add_job(f"{w.id}-b", receipt=w.receipt)
    ),
    "send": write("Agent.send", nothing, "message.sent", lambda w, _: w.ada.send(w.id, {"n": 1}, receipt=w.receipt)),
    "send under a claim": write(
        "Claim.send", claimed, "message.sent", lambda w, claim: claim.send(w.id, {"n": 1}, receipt=w.receipt)
    ),
    "open a reader": write(
        "Agent.reader Reader.__aenter__ Reader.__aexit__", nothing, "reader.opened", lambda w, _: opened(w)
    ),
    "acknowledge": write(
        "Reader.acknowledge",
        handed_out,
        "messages.acknowledged",
        lambda w, reader: reader.acknowledge(2, receipt=w.receipt),
    ),
}
