"""What goes in as a payload, a result, a note, and how it comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypedDict

import msgspec
import pytest

from coordinator import Agent, Coordinator, InvalidInput, JsonValue, Payload
from tests.public.support import claimed, entries

pytestmark = pytest.mark.both_stores


@dataclass
class Table:
    name: str
    columns: list[str] = field(default_factory=list)


class Schema(msgspec.Struct):
    tables: list[Table]
    version: int = 1


class Options(TypedDict):
    strict: bool


class Model:
    """What pydantic's models look like from outside."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def model_dump(self, *, mode: str = "python") -> dict[str, Any]:
        return {**self.values, "mode": mode}

    @classmethod
    def model_validate(cls, values: Mapping[str, Any]) -> Model:
        if "tables" not in values:
            raise ValueError("tables: field required")
        return cls(**values)


class OldModel:
    def model_dump(self) -> dict[str, Any]:
        return {"tables": 3}


SHAPES: dict[str, tuple[Payload | None, dict[str, JsonValue]]] = {
    "nothing": (None, {}),
    "dict": ({"b": True, "a": 0.5, "n": None}, {"a": 0.5, "b": True, "n": None}),
    "mapping": (MappingProxyType({"tables": (1, 2)}), {"tables": [1, 2]}),
    "dataclass": (Table("users", ["id"]), {"name": "users", "columns": ["id"]}),
    "struct": (Schema([Table("users")]), {"tables": [{"name": "users", "columns": []}], "version": 1}),
    "model": (Model(tables=1), {"tables": 1, "mode": "json"}),
    "model whose dump takes no mode": (OldModel(), {"tables": 3}),
    "nested": ({"schema": Schema([])}, {"schema": {"tables": [], "version": 1}}),
    "time": ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, {"at": "2026-01-01T00:00:00Z"}),
    "beyond ASCII": ({"name": "Ä 作業 👩‍💻"}, {"name": "Ä 作業 👩‍💻"}),
    "64 bits": ({"low": -(2**63), "high": 2**63 - 1}, {"low": -(2**63), "high": 2**63 - 1}),
}


@pytest.mark.parametrize(("given", "stored"), SHAPES.values(), ids=SHAPES)
async def test_what_goes_in_comes_out_as_a_mapping_of_json_values(
    given: Payload | None, stored: dict[str, JsonValue], coordinator: Coordinator, ada: Agent
):
    claim = await claimed(ada, payload=given)
    await claim.note(given or {})
    assert (await coordinator.job("parser")).note == stored

    await claim.submit(given)

    job = await coordinator.job("parser")
    assert job.payload == claim.job.payload == stored
    assert job.result == stored
    assert (await coordinator.at(2).job("parser")).payload == stored


async def test_a_payload_comes_out_as_a_type_of_the_callers_choice(coordinator: Coordinator, ada: Agent):
    await ada.add_job("schema", Schema([Table("users", ["id"])], version=2))
    await ada.add_job("options", {"strict": True})

    schema, options = await coordinator.job("schema"), await coordinator.job("options")

    assert schema.payload_as(Schema) == Schema([Table("users", ["id"])], version=2)
    assert schema.payload_as(Model).values == dict(schema.payload)
    assert schema.payload_as(dict[str, Any]) == schema.payload
    assert options.payload_as(Options) == {"strict": True}


async def test_a_result_comes_out_as_a_type_of_the_callers_choice(coordinator: Coordinator, ada: Agent):
    await (await claimed(ada, review="none")).submit(Table("users"))

    job = await coordinator.job("parser")

    assert job.result_as(Table) == Table("users")


async def test_a_payload_that_does_not_fit_is_refused_naming_where(coordinator: Coordinator, ada: Agent):
    await ada.add_job("schema", {"tables": [{"name": 7}]})
    await ada.add_job("empty")

    with pytest.raises(InvalidInput, match=r"does not fit Schema: .*\$\.tables\[0\]\.name") as refused:
        (await coordinator.job("schema")).payload_as(Schema)
    with pytest.raises(InvalidInput, match="field required"):
        (await coordinator.job("empty")).payload_as(Model)

    assert refused.value.field == "payload"


async def test_a_result_that_does_not_fit_is_named_as_the_result(coordinator: Coordinator, ada: Agent):
    await (await claimed(ada, review="none")).submit({"name": 7})

    with pytest.raises(InvalidInput) as refused:
        (await coordinator.job("parser")).result_as(Table)

    assert refused.value.field == "result"


async def test_a_job_without_a_result_has_none_and_as_a_type_the_empty_object(coordinator: Coordinator, ada: Agent):
    await ada.add_job("parser")

    job = await coordinator.job("parser")

    assert job.result is None
    assert job.result_as(dict[str, Any]) == {}
    with pytest.raises(InvalidInput):
        job.result_as(Table)


async def test_a_payload_stays_what_it_was_when_it_was_given(coordinator: Coordinator, ada: Agent):
    given: dict[str, Any] = {"tables": [1]}
    await ada.add_job("parser", given)

    given["tables"].append(2)

    job = await coordinator.job("parser")
    assert job.payload == {"tables": [1]}
    job.payload["tables"].append(3)  # type: ignore[union-attr, index]
    assert job.payload == {"tables": [1]}


async def test_the_log_shows_a_body_as_it_was_stored(coordinator: Coordinator, ada: Agent):
    await (await claimed(ada, payload={"b": 1, "a": [Table("t")]})).submit({"z": None})

    added, _, submitted = await entries(coordinator)

    assert added.body["payload"] == {"a": [{"columns": [], "name": "t"}], "b": 1}
    assert submitted.body["result"] == {"z": None}
