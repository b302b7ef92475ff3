"""The schemas of a card: which are refused, and that what is accepted is enforced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest
from msgspec.structs import replace

from agentgate.gateway.schemas import Schemas
from agentgate.model import Card, Skill
from agentgate.sdk.typed import Shape
from tests.sim.wire_peer import WirePeer, gate, play


@dataclass
class Line:
    sku: str
    count: int


@dataclass
class Order:
    lines: list[Line]
    note: str | None = None


UNUSABLE: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "no type": ({"type": "nonsense"}, "at ['type']"),
    "deep inside": ({"properties": {"a": {"minLength": -1}}}, "at ['properties']['a']['minLength']"),
    "in what is not used": ({"$defs": {"a": {"type": 1}}}, "at ['$defs']['a']['type']"),
    "a pattern that is none": ({"pattern": "("}, "regex"),
    "a pattern that is too large": ({"pattern": "(((a{1,1000}){1,1000}){1,1000})"}, "regex"),
    "a file": ({"$ref": "file:///etc/passwd"}, "Retrieval is disabled"),
    "a page": ({"properties": {"a": {"$ref": "http://127.0.0.1/a"}}}, "Retrieval is disabled"),
    "nowhere": ({"$ref": "#/$defs/nowhere"}, "does not exist"),
    "no anchor": ({"$dynamicRef": "#x"}, "does not exist"),
    "another language": ({"$schema": "http://nonsense"}, "Unknown meta-schema"),
    "no address": ({"$id": "http://[bad"}, "Invalid URI"),
}


@pytest.mark.parametrize("which", ["input_schema", "output_schema"])
@pytest.mark.parametrize("case", UNUSABLE)
def test_a_schema_that_cannot_be_used_is_refused(which: str, case: str) -> None:
    """B4, A1: what would not be enforced is not accepted; the refusal names the skill, which schema, and why."""
    schema, why = UNUSABLE[case]
    skills = (Skill(task_type="look"), replace(Skill(task_type="pay"), **{which: schema}))

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=skills).connect()
            assert bank.closed_because.startswith(f"the {which} of 'pay' cannot be used: ")
            [refused] = [message["error"] for message in bank.messages if "error" in message]
            assert (refused["data"]["code"], why in refused["message"]) == ("bad_request", True)
            assert platform.directory.agents() == []

    play(story)


def test_what_is_accepted_is_enforced() -> None:
    """B4: on the way in and on the way out, with references inside the schema."""
    number = {"$ref": "#/$defs/number", "$defs": {"number": {"type": "integer", "minimum": 1}}}

    async def story() -> None:
        async with gate() as platform:
            skill = Skill(task_type="pay", input_schema=number, output_schema=number)
            bank = WirePeer(platform, "bank", skills=(skill,)).connect()
            client = WirePeer(platform, "shop").connect()
            assert (await client.call("bank", "pay", "o1", 0)).code == "bad_request"
            call = client.call("bank", "pay", "o2", 1)
            bank.answer(await bank.next(), 0)
            assert (await call).code == "malformed_output"

    play(story)


def test_a_schema_is_compiled_once() -> None:
    """A3: however many instances say it, and however often they come."""
    schemas = Schemas()
    for number in range(200):
        schema = {"type": "object", "required": ["sku"]}
        card = Card(agent="a", skills=(Skill(task_type="pay", input_schema=schema, output_schema={"type": "string"}),))
        assert schemas.flaw(card) is None
        assert schemas.finding(schema, {"sku": number}) is None
    assert len(schemas) == 2


def test_what_the_sdk_publishes_can_be_used() -> None:
    """A1: the schemas of typed handlers, with the types that they are made of."""
    schema = Shape(Order, "here").schema
    assert schema is not None
    assert Schemas().flaw(Card(agent="a", skills=(Skill(task_type="pay", input_schema=schema),))) is None
