"""Why a command was refused, in words: a sentence for each code, with the values that the log keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from coordinator.clock import local_text, to_datetime
from coordinator.printable import cut

Since = Callable[[int], str]
"""Since when an attempt is held, ` since 10:42:07`, or nothing if that is not known."""

_NAMED: Final = 3

_SENTENCES: Final[dict[str, str]] = {
    "receipt_conflict": "its receipt was used for another request, at position {first}",
    "job_exists": "there is a job {job} already",
    "job_unknown": "there is no job {job}",
    "version_changed": "it was seen at version {seen}, and is at version {current} now",
    "already_claimed": "{holder} holds it until {until_text}",
    "already_submitted": "it was submitted, and waits for a review",
    "job_closed": "it is {state}",
    "job_open": "it is not closed, it is {state}",
    "dependency_cycle": "it would wait for itself, through {through_text}",
    "dependencies_unaccepted": "it waits for {dependencies_text}",
    "attempts_exhausted": "{used} of {max_attempts} attempts are used up",
    "path_clash": "{clashes_text}",
    "too_many_paths": "the claim would hold more than {limit} paths",
    "not_submitted": "it is not submitted, it is {state}",
    "self_review": "{worker} submitted it, and may not review its own work",
    "not_claimed": "it is not claimed, it is {state}",
    "dependents_started": "others that build on it have started: {dependents_text}",
    "token_unknown": "the token belongs to no claim of this actor",
    "token_superseded": "this is attempt {attempt}'s token; attempt {current} is {holder}'s{since_text}",
    "lease_lapsed": "the lease of attempt {attempt} ran out at {lease_until_text}",
    "claim_ended": "attempt {attempt} was {how} already",
    "reader_superseded": "this is session {session}; session {current} is {holder}'s{since_text}",
    "not_delivered": "{reader} was handed messages up to {delivered}, not {number}",
    "page_unacknowledged": "{reader} has not acknowledged up to message {number}",
    "operation_unknown": "this actor has no operation {operation}",
    "operation_bound": "the id {operation} belongs to another operation, kind, operator or other arguments",
    "approval_unknown": "its approval is not known to this process",
    "approval_expired": "its approval has expired",
    "approval_mismatch": "its approval was for {approved_text}",
    "reconcile_first": "reconcile first, for of attempt {attempt} it was found: {finding}",
    "attempt_changed": "attempt {seen} was looked at, and attempt {current} has begun since",
    "operation_live": "it is {state}, so that there is nothing to reconcile",
}


def why_refused(code: str, values: Mapping[str, Any], at: int, since: Since) -> str:
    """The sentence of a refusal. What newer software or damage left is shown as it stands.

    Args:
        at: when it was refused, µs of log time.
    """
    try:
        return _SENTENCES[code].format_map(_Words(values, at, since))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        told = ", ".join(f"{key} {value}" for key, value in values.items())
        return cut(f"{code}: {told}" if told else code, 200)


def local_time(us: int, beside: int) -> str:
    """A moment of log time where the reader is; with its date if that is another than of the moment beside it."""
    return local_text(to_datetime(us), to_datetime(beside))


class _Words(dict[str, Any]):
    """The values by their names, and in words under `…_text`."""

    def __init__(self, values: Mapping[str, Any], at: int, since: Since) -> None:
        super().__init__(values)
        self._at = at
        self._since = since

    def __missing__(self, key: str) -> str:
        name = key.removesuffix("_text")
        match name:
            case "until" | "lease_until":
                return local_time(self[name], self._at)
            case "since":
                return self._since(self["current"])
            case "through":
                return " and ".join(_first(self[name], 0))
            case "dependencies" | "dependents":
                named = [f"{job} ({state})" for job, state in self[name].items()]
                return ", ".join(_first(named, self.get("more", 0)))
            case "clashes":
                return "; ".join(_first([self._clash(clash) for clash in self[name]], self.get("more", 0)))
            case "approved":
                approved = self["approved"]
                return (
                    "something else" if approved is None else f"attempt {approved}, and the next is {self['attempt']}"
                )
            case _:
                raise KeyError(key)

    def _clash(self, clash: Mapping[str, Any]) -> str:
        path, held = clash["path"], clash["held"]
        what = path if path == held else f"{path} clashes with {held}, which"
        return f"{what} is held by {clash['holder']} for {clash['job']} until {local_time(clash['until'], self._at)}"


def _first(items: list[str], more: int) -> list[str]:
    rest = len(items) - _NAMED + more
    return items[:_NAMED] + ([f"{rest} more"] if rest > 0 else [])
