"""Payloads and results: what goes in (mappings, dataclasses, structs, models), and the one JSON text that is stored.

Equal payloads have equal bytes: UTF-8, keys sorted at every level. What JSON engines read differently is refused: NaN,
integers beyond 64 bits, NUL, lone surrogates, keys that are not text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypeVar, Union, cast

import msgspec

from coordinator import limits
from coordinator.errors import InvalidInput

T = TypeVar("T")

JsonValue: TypeAlias = Union[bool, int, float, str, "Sequence[JsonValue]", "Mapping[str, JsonValue]", None]


class SupportsModelDump(Protocol):
    """A pydantic model, or what looks like one."""

    def model_dump(self) -> Any: ...


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Payload: TypeAlias = Mapping[str, object] | msgspec.Struct | DataclassInstance | SupportsModelDump

_HINT: Final = (
    "JSON values, dataclasses, msgspec structs, pydantic models, datetime, UUID, Decimal, Enum and bytes can be stored"
)
_UNFIT: Final = "\x00unfit\x00"
_sorted_json: Final = msgspec.json.Encoder(order="sorted").encode


def encode(field: str, value: object) -> bytes:
    """The canonical JSON of a payload; None is an empty one.

    Raises:
        InvalidInput: names the way in, `payload.tables[3]`.
    """
    if value is None:
        return b"{}"
    if type(value) is dict and _is_ordinary(cast("dict[object, object]", value), limits.PAYLOAD_DEPTH):
        try:
            data = _sorted_json(value)
        except UnicodeEncodeError:  # a lone surrogate: the long way finds where
            data = b"\\u0000"
        if b"\\u0000" not in data:
            return _within_size(field, data)
    return _within_size(field, _sorted_json(_plain_object(field, cast("object", value))))


def decode(raw: bytes | str | msgspec.Raw) -> Mapping[str, JsonValue]:
    """A stored payload, to read."""
    return _decode_object(raw)


def decode_as(raw: bytes | str | msgspec.Raw, type_: type[T], field: str = "payload") -> T:
    """A stored payload as a dataclass, struct, TypedDict or model; raises `InvalidInput` if it does not fit."""
    validate: Callable[[object], T] | None = getattr(type_, "model_validate", None)
    try:
        if validate is not None:
            return validate(_decode_object(raw))
        return msgspec.json.decode(raw, type=type_)
    except (msgspec.ValidationError, ValueError) as error:  # ours since msgspec 0.20, and pydantic's, are ValueErrors
        raise InvalidInput(field, f"does not fit {getattr(type_, '__name__', type_)}: {error}") from error


_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode


def _within_size(field: str, data: bytes) -> bytes:
    if len(data) > limits.PAYLOAD_BYTES:
        problem = f"is {len(data):,} bytes as JSON; {limits.PAYLOAD_BYTES:,} are allowed"
        raise InvalidInput(field, problem, hint="keep large content in a file, and its path and digest in the payload")
    return data


def _is_ordinary(value: dict[object, object], depth: int) -> bool:
    """Whether it holds only what JSON knows, of the exact types, so that msgspec's output can be taken as it is.

    Strings are not looked at: NUL shows in the output, and a lone surrogate makes msgspec raise.
    """
    for key in value:
        if type(key) is not str:
            return False
    return _are_ordinary(value.values(), depth)


def _are_ordinary(items: Iterable[object], depth: int) -> bool:
    for item in items:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if not limits.INTEGER_MIN <= cast("int", item) <= limits.INTEGER_MAX:
                return False
        elif kind is float:
            if not math.isfinite(cast("float", item)):
                return False
        elif depth <= 1:
            return False
        elif kind is dict:
            if not _is_ordinary(cast("dict[object, object]", item), depth - 1):
                return False
        elif kind is list or kind is tuple:
            if not _are_ordinary(cast("Sequence[object]", item), depth - 1):
                return False
        else:
            return False
    return True


# The long way: everything as plain JSON values, or the exact place of what cannot be one.


class _Unfit(Exception):
    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.steps: list[str] = []  # the way in, innermost first


def _plain_object(field: str, value: object) -> dict[str, object]:
    try:
        plain = _plain(value, limits.PAYLOAD_DEPTH)
    except _Unfit as unfit:
        steps = unfit.steps[::-1]
        way = "".join(steps) if len(steps) <= 12 else "".join(steps[:12]) + "…"
        raise InvalidInput(field + way, unfit.problem, hint=unfit.hint) from unfit.__cause__
    if not isinstance(plain, dict):
        problem = f"must be an object (a mapping, dataclass, struct or model), not {limits.kind(value)}"
        raise InvalidInput(field, problem, hint='wrap it: {"value": …}')
    return cast("dict[str, object]", plain)


def _plain(value: object, depth: int) -> object:
    if value is None or isinstance(value, bool):
        return value
    kind = type(value)
    if kind is str:
        return _plain_text(cast("str", value))
    if kind is int:
        if limits.INTEGER_MIN <= cast("int", value) <= limits.INTEGER_MAX:
            return value
        raise _Unfit("is an integer beyond 64 bits", "store it as text")
    if kind is float:
        if math.isfinite(cast("float", value)):
            return value
        raise _Unfit("is NaN or infinite, which JSON does not have", "use None")
    if isinstance(value, (list, tuple)):
        return _plain_list(cast("Sequence[object]", value), depth)
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[object, object]", value), depth)
    if isinstance(value, (set, frozenset)):
        return sorted(_plain_list(list(cast("set[object]", value)), depth), key=_sorted_json)
    return _plain(_builtins(value), depth)


def _plain_text(text: str) -> str:
    if "\x00" in text:
        if text.startswith(_UNFIT):
            raise _Unfit(f"is of type {text.removeprefix(_UNFIT)}, which has no JSON form", _HINT)
        raise _Unfit("holds NUL")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _Unfit("holds a lone surrogate, which has no UTF-8 form", "store bytes, or decode them") from None
    return text


def _plain_list(values: Sequence[object], depth: int) -> list[object]:
    _refuse_depth(depth)
    plain: list[object] = []
    for item in values:
        try:
            plain.append(_plain(item, depth - 1))
        except _Unfit as unfit:
            unfit.steps.append(f"[{len(plain)}]")
            raise
    return plain


def _plain_mapping(values: Mapping[object, object], depth: int) -> dict[str, object]:
    _refuse_depth(depth)
    plain: dict[str, object] = {}
    for key, item in values.items():
        if not isinstance(key, str):
            raise _Unfit(f"has a key that is not text but {limits.kind(key)}", "use str keys")
        key = str.__str__(key)
        try:
            plain[_plain_text(key)] = _plain(item, depth - 1)
        except _Unfit as unfit:
            unfit.steps.append(f".{key}" if key.isidentifier() and len(key) <= 40 else f"[{key[:40]!a}]")
            raise
    return plain


def _refuse_depth(depth: int) -> None:
    if depth < 1:
        raise _Unfit(f"is nested deeper than {limits.PAYLOAD_DEPTH} levels, or contains itself")


def _builtins(value: object, order: Literal["sorted"] | None = "sorted") -> object:
    """A struct, dataclass, model, datetime, … as msgspec does it, still to be checked like everything else."""
    try:
        return msgspec.to_builtins(value, str_keys=False, order=order, enc_hook=_rest)
    except RecursionError:
        raise _Unfit(f"is nested deeper than {limits.PAYLOAD_DEPTH} levels, or contains itself") from None
    except (TypeError, ValueError) as error:  # what cannot be sorted, an odd enum, a model that refuses
        if order:
            _plain(_builtins(value, None), limits.PAYLOAD_DEPTH)  # finds the place, if more than the order is wrong
        raise _Unfit(f"of type {limits.kind(value)} cannot be stored: {error}", _HINT) from error


def _rest(value: object) -> object:
    """What msgspec does not know. What nobody knows becomes a text that `_plain_text` refuses where it stands."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if not isinstance(value, type) and callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json") if _takes_mode(type(value)) else dump()
    return _UNFIT + type(value).__name__


@lru_cache(maxsize=1_024)
def _takes_mode(model: type[SupportsModelDump]) -> bool:
    import inspect  # slow to load, and seldom needed

    parameters = inspect.signature(model.model_dump).parameters
    return "mode" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
