"""Errors say the same wherever they travel."""

import copy
import pickle

import pytest

from coordinator import refusals
from coordinator.clock import to_datetime
from coordinator.errors import BadPath, Busy, CoordinatorError, InvalidInput, OutcomeUnknown
from coordinator.refusals import Clash

CLASH = Clash(path="src", held="src/a", holder="bob", job="parser", until=to_datetime(5))
ERRORS: list[CoordinatorError] = [
    InvalidInput("payload.a", "is NaN", hint="leave it out"),
    BadPath("paths[0]", "is absolute"),
    Busy("the turn was held"),
    OutcomeUnknown("nobody knows", receipt="r1"),
    refusals.JobUnknown("parser"),
    refusals.VersionChanged("parser", seen=1, current=2),
    refusals.AlreadyClaimed("parser", holder="bob", until=5),
    refusals.PathClash("parser", [CLASH]),
    refusals.TokenSuperseded("job/parser", attempt=1, current=2, holder="bob"),
    refusals.LeaseLapsed("job/parser", attempt=1, lease_until=5),
    refusals.ClaimEnded("job/parser", attempt=1, how="submitted"),
    refusals.ReceiptConflict("r1", 7),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
@pytest.mark.parametrize("travel", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"])
def test_an_error_survives_being_copied_and_pickled(error: CoordinatorError, travel) -> None:
    error.add_note("a note")

    arrived = travel(error)

    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
