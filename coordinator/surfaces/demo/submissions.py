"""The topic by which the reviewer learns what there is to review.

A worker sends its message under its claim, and only then submits. If it dies between the two, the reviewer hears of a
submission that never comes, sees that the attempt is over, and goes on. The other way round the claim would have ended
with the submit, and a worker that died before it sent would leave a submission that nobody ever hears of.
"""

from __future__ import annotations

import msgspec

SUBMISSIONS = "submissions"


class Submission(msgspec.Struct, frozen=True, omit_defaults=True):
    """The job that is about to be submitted; None as the last message of all: nothing more will come."""

    job: str | None = None
