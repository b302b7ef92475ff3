"""An agent before it runs: what it declares, what it refuses, and what its card says."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import msgspec
import pytest

from agentgate import Agent, Context, SyncContext
from agentgate.errors import ConfigError
from agentgate.model import Card
from agentgate.sdk.greeting import Identity
from agentgate.sdk.host import AgentHost
from agentgate.sdk.link import Link
from tests.integration.sdk_gate import Order, Receipt, ScriptedGate, hosted, virtual


def order_agent() -> Agent:
    agent = Agent("order_agent", tier="core", concurrency=4, version="1.2")

    @agent.check("confirm", timeout_s=3)
    async def was_confirmed(order: Order) -> Receipt | None:
        return None

    @agent.handles("confirm", compensate="unconfirm", grade="urgent", timeout_s=20)
    async def confirm(order: Order, ctx: Context) -> Receipt:
        return Receipt(order.id, "s")

    @agent.handles("unconfirm", repeatable=True)
    def unconfirm(order: Order, ctx: SyncContext) -> None: ...

    @agent.handles("look", effect="read", grade="optional")
    async def look(payload):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as people write it at first
        return payload

    return agent


def test_the_card_says_what_was_declared() -> None:
    """A1: task types with effect, repeatability, time-out, grade, compensation, check and schemas, as one value."""
    card = order_agent().card()
    assert (card.agent, card.tier, card.concurrency, card.version) == ("order_agent", "core", 4, "1.2")
    declared = {
        skill.task_type: (skill.effect, skill.repeatable, skill.timeout_s, skill.grade, skill.compensate, skill.check)
        for skill in card.skills
    }
    assert declared == {
        "check:confirm": ("read", False, 3, "required", None, False),
        "confirm": ("write", False, 20, "urgent", "unconfirm", True),
        "unconfirm": ("write", True, None, "required", None, False),
        "look": ("read", False, None, "optional", None, False),
    }


def test_a_check_takes_what_the_write_takes() -> None:
    """4.2: the check gets the payload of the write, so it has the same input schema, wherever it is declared."""
    card = order_agent().card()
    confirm, check = card.skill("confirm"), card.skill("check:confirm")
    assert confirm is not None
    assert check is not None
    assert confirm.input_schema == check.input_schema
    assert confirm.input_schema is not None
    assert confirm.input_schema["$defs"]["Order"]["required"] == ["id"]
    assert check.output_schema is not None
    assert {"type": "null"} in check.output_schema["anyOf"]


def test_a_degraded_handler_is_published_with_the_types_of_its_skill() -> None:
    """F6, F9: the skill says that it has one, and what is called by that name takes and returns what the skill does."""
    agent = order_agent()

    @agent.degraded("confirm", timeout_s=2)
    async def come_back_later(order):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as people write it at first
        return Receipt(order["id"], "none")

    card = agent.card()
    confirm, stand_in = card.skill("confirm"), card.skill("degraded:confirm")
    assert confirm is not None
    assert stand_in is not None
    assert (confirm.degraded, stand_in.degraded, stand_in.effect, stand_in.timeout_s) == (True, False, "read", 2)
    assert (stand_in.input_schema, stand_in.output_schema) == (confirm.input_schema, confirm.output_schema)


def test_a_degraded_handler_with_other_types_is_refused_where_it_is_declared() -> None:
    """F9: interface-compatible, or it is no replacement; whichever of the two is declared later says so."""
    agent = order_agent()

    async def other_result(order: Order) -> str:
        return order.id

    async def other_payload(order: str) -> Receipt:
        return Receipt(order, "none")

    with pytest.raises(
        ConfigError, match=r"degraded handler of `confirm` returns .*str.*, the handler itself .*Receipt"
    ):
        agent.degraded("confirm")(other_result)
    late = Agent("late")
    late.degraded("confirm")(other_payload)
    with pytest.raises(ConfigError, match=r"degraded handler of `confirm` takes .*str.*, the handler itself .*Order"):

        @late.handles("confirm")
        async def confirm(order: Order) -> Receipt:
            return Receipt(order.id, "s")


def test_a_degraded_handler_of_nothing_is_refused() -> None:
    """F6: as with a check: the skill that it stands in for has to be there."""
    agent = Agent("a")
    agent.degraded("confirm")(Doubler())
    with pytest.raises(ConfigError, match="answers for `confirm`, but has no handler for it"):
        agent.card()


def test_a_card_survives_the_wire() -> None:
    """The card is JSON and comes back as it was."""
    card = order_agent().card()
    assert msgspec.json.decode(msgspec.json.encode(card), type=Card) == card


def test_a_handler_without_annotations_takes_anything() -> None:
    """No schema is published for what is not declared."""
    skill = order_agent().card().skill("look")
    assert skill is not None
    assert (skill.input_schema, skill.output_schema) == (None, None)


def test_annotations_may_name_local_types() -> None:
    """A handler declared inside a function may use the types declared beside it."""

    class Local(TypedDict):
        n: int

    agent = Agent("a")

    @agent.handles("t")
    async def handle(payload: Local) -> Local:
        return payload

    skill = agent.card().skill("t")
    assert skill is not None
    assert skill.input_schema is not None
    assert "Local" in skill.input_schema["$defs"]


def test_handlers_stay_ordinary_functions() -> None:
    """Decorating does not change what a test can call directly."""
    agent = Agent("a")

    @agent.handles("double")
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8


class Doubler:
    """A handler may be an object that can be called."""

    async def __call__(self, n: int) -> int:
        return 2 * n


@virtual
async def test_an_object_may_be_a_handler() -> None:
    """Callables of all kinds are handlers; async ones stay on the loop."""
    agent = Agent("a")
    agent.handles("double")(Doubler())
    gate = ScriptedGate()
    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "double", 4)
        assert (await gate.answer("u1")).value == 8


def declares_twice(agent: Agent) -> None:
    agent.handles("t")(lambda payload: payload)
    agent.handles("t")(lambda payload: payload)


def checks_nothing(agent: Agent) -> None:
    agent.check("t")(lambda payload: payload)
    agent.card()


def wrong_context(agent: Agent) -> None:
    @agent.handles("t")
    async def handle(payload: Any, ctx: SyncContext) -> None: ...


def wrong_sync_context(agent: Agent) -> None:
    @agent.handles("t")
    def handle(payload: Any, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (declares_twice, "agent `a` has two handlers for `t`"),
        (checks_nothing, "agent `a` checks `t`, but has no handler for it"),
        (wrong_context, "is async: its second parameter is a Context, not a SyncContext"),
        (wrong_sync_context, "is not async: its second parameter is a SyncContext, not a Context"),
        (lambda agent: agent.handles("a:b"), "a task type is up to 128 letters"),
        (lambda agent: agent.check("a b"), "not 'a b'"),
        (lambda agent: agent.handles("t", timeout_s=0), "timeout_s is more than 0 seconds"),
        (lambda agent: agent.handles("t", cost=-1), "cost is at least 0 units"),
        (lambda agent: agent.handles("t", exclusive="order"), 'exclusive is "business_key", and for writes'),
        (lambda agent: agent.handles("t", effect="read", exclusive="business_key"), "and for writes"),
        (lambda _: Agent("a:b"), "the name of an agent is up to 128 letters"),
        (lambda _: Agent("a", concurrency=0), "concurrency is at least 1, not 0"),
        (lambda _: Agent("a", tier="vital"), "tier is core, standard or optional, not 'vital'"),  # type: ignore[arg-type]  # the mistake
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_sentences_at_import(mistake: Any, says: str) -> None:
    """What can be known when an agent is declared is said then, with the name of the place."""
    with pytest.raises(ConfigError) as error:
        mistake(Agent("a"))
    assert says in str(error.value)


@virtual
async def test_a_host_that_was_left_takes_nothing() -> None:
    """After the host is gone a unit is answered as not sent."""
    gate = ScriptedGate()
    agent = order_agent()
    link = Link(gate.connect, Identity(agent="order_agent", instance="i", card=agent.card()), draw=lambda: 0.5)
    async with AgentHost(agent, link):
        pass
    running = asyncio.get_running_loop().create_task(link.run())
    await gate.hello()
    gate.invoke("u1", "look", key="", effect="read")
    answer = await gate.answer("u1")
    assert answer.error is not None
    assert answer.error.sent is False
    running.cancel()
