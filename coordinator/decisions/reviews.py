"""Accepting and rejecting what was submitted."""

from __future__ import annotations

from coordinator.commands import AcceptJob, RejectJob
from coordinator.decisions.attempts import after_attempt
from coordinator.decisions.dependencies import unblocked_by
from coordinator.decisions.lookup import seen_job
from coordinator.decisions.moment import Moment
from coordinator.refusals import NothingToReview, SelfReview
from coordinator.views import Views
from events.jobs import JobAccepted, JobRejected
from events.union import AnyEvent
from projections.jobs import JobRow


def accept_job(command: AcceptJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job = _reviewable(command, views, moment)
    accepted = JobAccepted(job=job.id, version=job.version + 1, state="accepted", attempt=job.attempt)
    return [accepted, *unblocked_by(job.id, views)]


def reject_job(command: RejectJob, views: Views, moment: Moment) -> list[AnyEvent]:
    job = _reviewable(command, views, moment)
    return [
        JobRejected(
            job=job.id,
            version=job.version + 1,
            state=after_attempt(job),
            attempt=job.attempt,
            reason=command.reason,
        )
    ]


def _reviewable(command: AcceptJob | RejectJob, views: Views, moment: Moment) -> JobRow:
    job = seen_job(command, views)
    if job.state != "submitted":
        raise NothingToReview(job.id, job.state)
    if job.worker == moment.actor and job.review != "anyone":
        raise SelfReview(job.id, moment.actor)
    return job
