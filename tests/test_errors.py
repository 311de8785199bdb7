"""Errors say the same wherever they travel."""

import copy
import pickle
from collections.abc import Iterator

import pytest

from coordinator import operation_refusals, refusals
from coordinator.clock import to_datetime
from coordinator.errors import BadPath, Busy, CoordinatorError, InvalidInput, OutcomeUnknown
from coordinator.refusals import Clash
from events.streams import in_words, reader_stream

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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (refusals.TokenUnknown("job/a/b"), "job 'a/b': this token"),
        (refusals.TokenSuperseded("operation/4711", attempt=1, current=2, holder="bob"), "operation '4711': this is"),
        (refusals.LeaseLapsed("job/parser", attempt=1, lease_until=5), "job 'parser': the lease"),
        (refusals.ClaimEnded("job/parser", attempt=1, how="revoked"), "job 'parser': attempt 1 was revoked"),
        (
            refusals.ReaderSuperseded(reader_stream("a/b", "50% of it"), attempt=1, current=2, holder="bob"),
            "reader '50% of it' of 'a/b': this is session 1",
        ),
        (refusals.TokenUnknown("the claim"), "the claim: this token"),
    ],
    ids=lambda value: value.code if isinstance(value, CoordinatorError) else "",
)
def test_a_refusal_names_what_it_is_about_in_words_and_keeps_the_stream_in_its_values(
    error: refusals.Refused, said: str
) -> None:
    assert str(error).startswith(said)
    assert said.split(":")[0] == in_words(str(error.values["subject"]))


WITHOUT_HINT = {
    "refused": "only its subclasses are raised",
    "claim_lost": "only its subclasses are raised",
    "job_open": "what was wanted is so already",
    "not_claimed": "what was wanted is so already",
}


def test_every_refusal_says_what_to_do_or_why_there_is_nothing_to_do() -> None:
    silent = {kind.code for kind in kinds_of(refusals.Refused) if not kind.hint}
    named = {kind.code for kind in kinds_of(refusals.Refused)}

    assert operation_refusals.OperationUnknown.code in named
    assert silent == set(WITHOUT_HINT)


def kinds_of(kind: type[refusals.Refused]) -> Iterator[type[refusals.Refused]]:
    yield kind
    for further in kind.__subclasses__():
        yield from kinds_of(further)
