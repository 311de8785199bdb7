"""From what callers pass to commands: checked, normalised, or refused naming the argument."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from msgspec import UNSET, Raw, UnsetType

from coordinator import limits
from coordinator.commands import AddJob, ReviseJob, SendMessage, Shown
from coordinator.errors import InvalidInput
from coordinator.jobs import JobRef
from coordinator.paths import normalise
from coordinator.payloads import Payload, encode
from events.jobs import Review

REVIEWS: tuple[Review, ...] = ("other", "anyone", "none")


def add_job(
    id: str,
    payload: Payload | None,
    *,
    paths: Iterable[str | PathLike[str]],
    depends_on: Iterable[str | JobRef],
    priority: int,
    max_attempts: int,
    review: Review,
    shown: Shown | None = None,
) -> AddJob:
    return AddJob(
        job=limits.name("id", id),
        payload=Raw(encode("payload", payload)),
        paths=normalise("paths", paths),
        depends_on=_ids(depends_on),
        priority=_priority(priority),
        max_attempts=_max_attempts(max_attempts),
        review=limits.choice("review", review, REVIEWS),
        shown=shown,
    )


def revise_job(
    job: JobRef | str,
    version: int | None,
    *,
    payload: Payload | None | UnsetType,
    paths: Iterable[str | PathLike[str]] | UnsetType,
    depends_on: Iterable[str | JobRef] | UnsetType,
    priority: int | UnsetType,
    max_attempts: int | UnsetType,
    review: Review | UnsetType,
) -> ReviseJob:
    id, version = seen_version(job, version)
    return ReviseJob(
        job=id,
        version=version,
        payload=UNSET if payload is UNSET else Raw(encode("payload", payload)),
        paths=UNSET if paths is UNSET else normalise("paths", paths),
        depends_on=UNSET if depends_on is UNSET else _ids(depends_on),
        priority=UNSET if priority is UNSET else _priority(priority),
        max_attempts=UNSET if max_attempts is UNSET else _max_attempts(max_attempts),
        review=UNSET if review is UNSET else limits.choice("review", review, REVIEWS),
    )


def send_message(topic: str, body: Payload, shown: Shown | None = None) -> SendMessage:
    return SendMessage(topic=limits.name("topic", topic), body=Raw(encode("body", body)), shown=shown)


def seen_version(job: object, version: object) -> tuple[str, int]:
    """Id and version of a job as its caller saw it."""
    if isinstance(job, JobRef):
        if version is not None:
            raise InvalidInput("version", "is known from the job", hint="pass an id with a version, or a job alone")
        job, version = job.id, job.version  # which anybody may have made, of anything
    id = limits.name("job", job)
    if version is None:
        raise InvalidInput("version", "is required with an id", hint="pass the job as you read it, or its version")
    return id, limits.whole("version", version, 1, limits.INTEGER_MAX)


def _ids(depends_on: Iterable[str | JobRef]) -> tuple[str, ...]:
    listed = limits.listed("depends_on", depends_on)
    return limits.names("depends_on", (item.id if isinstance(item, JobRef) else item for item in listed))


def _priority(value: int) -> int:
    return limits.whole("priority", value, limits.PRIORITY_MIN, limits.PRIORITY_MAX)


def _max_attempts(value: int) -> int:
    return limits.whole("max_attempts", value, limits.ATTEMPTS_MIN, limits.ATTEMPTS_MAX)
