"""Units that wait for calls of their own give their slots to others, on the real path and on virtual time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from agentgate import Agent, CallFailed, Context
from agentgate.adapters.memory.store import MemoryStore
from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.slots import InstanceState, SlotOptions
from agentgate.model import Outcome, Skill
from agentgate.testing import local_gate, run_virtual
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

ASK = Skill(task_type="ask", rests=True)
SIGN = Skill(task_type="sign", rests=True, exclusive="business_key")
LOOK = Skill(task_type="look", rests=True, effect="read")
BLOCK = Skill(task_type="block")
SKILLS = (ASK, SIGN, LOOK, BLOCK)


def state_of(platform: Platform, agent: str) -> InstanceState:
    (shown,) = [shown for shown in platform.gateway.policies.slots.states(0.0) if shown.agent == agent]
    (instance,) = shown.instances
    return instance


def counts(platform: Platform, agent: str = "desk") -> tuple[int, int]:
    """How many units of its instance run, and rest."""
    shown = state_of(platform, agent)
    return shown.outstanding, shown.resting


def child(peer: WirePeer, unit: Invoked, key: str) -> asyncio.Future[Outcome]:
    """A call that this unit makes."""
    return peer.call("bank", "ask", key, token=unit.params.token)


def test_agents_that_call_one_another_need_one_slot_each() -> None:
    """D4, DESIGN 4.3: alpha.x calls beta.y, which calls alpha.z; with a concurrency of 1 everywhere all of it ends."""
    alpha, beta = Agent("alpha", concurrency=1), Agent("beta", concurrency=1)

    @alpha.handles("x")
    async def x(name: str, ctx: Context) -> str:
        return f"x({await ctx.call('beta', 'y', name, name)})"

    @beta.handles("y")
    async def y(name: str, ctx: Context) -> str:
        return f"y({await ctx.call('alpha', 'z', name, name)})"

    @alpha.handles("z")
    async def z(name: str) -> str:
        await asyncio.sleep(1)
        return f"z({name})"

    async def story() -> None:
        async with local_gate(alpha, beta) as gate:
            calls = [gate.call("alpha", "x", f"o{number}", f"o{number}") for number in range(4)]
            assert await asyncio.gather(*calls) == [f"x(y(z(o{number})))" for number in range(4)]
            assert [counts(gate.platform, name) for name in ("alpha", "beta")] == [(0, 0), (0, 0)]
            assert len(gate.platform.gateway.resting) == 0

    run_virtual(story)


def test_a_thread_that_waits_keeps_its_slot() -> None:
    """DESIGN 4.3: a skill that does not say that it rests waits in its slot, so a call back to its agent is refused."""

    async def story() -> None:
        async with gate() as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            root = WirePeer(platform, "shop").connect().call("desk", "block", "o1", timeout_ms=5000)
            unit = await desk.next()
            asked = child(desk, unit, "o1")
            below = await bank.next()
            back = await bank.call("desk", "ask", "o1", token=below.params.token)
            assert counts(platform) == (1, 0)
            assert counts(platform, "bank") == (1, 0)
            assert back.error is not None
            assert (back.code, back.error.sent) == ("deadlock", False)
            bank.answer(below, "in vain")
            await asked
            desk.answer(unit, "nothing")
            assert (await root).ok

    play(story)


def test_every_wait_has_to_end() -> None:
    """A unit with several calls under way rests until the last of them has ended, then it counts at once."""

    async def story() -> None:
        async with gate() as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            root, other = shop.call("desk", "ask", "o1"), shop.call("desk", "ask", "o2")
            unit = await desk.next()
            assert desk.invoked.empty()
            one, two = child(desk, unit, "a"), child(desk, unit, "b")
            below = {invoked.params.business_key: invoked for invoked in (await bank.next(), await bank.next())}
            second = await desk.next()
            assert counts(platform) == (1, 1)
            bank.answer(below["a"], "done")
            await one
            assert counts(platform) == (1, 1)
            bank.answer(below["b"], "done")
            await two
            assert counts(platform) == (2, 0)
            assert state_of(platform, "desk").over == 1
            desk.answer(unit, "done")
            desk.answer(second, "done")
            assert [(await call).value for call in (root, other)] == ["done", "done"]
            assert counts(platform) == (0, 0)

    play(story)


def test_a_call_that_is_refused_is_no_wait_any_more() -> None:
    """F104: what is turned away inside the gate lets its unit go on at once."""

    async def story() -> None:
        async with gate() as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            root = WirePeer(platform, "shop").connect().call("desk", "ask", "o1")
            unit = await desk.next()
            assert (await desk.call("nobody", "ask", "a", token=unit.params.token)).code == "no_route"
            assert counts(platform) == (1, 0)
            desk.answer(unit, "done")
            assert (await root).value == "done"
            assert (counts(platform), len(platform.gateway.resting)) == ((0, 0), 0)

    play(story)


@pytest.mark.parametrize("how", ["cancelled", "left alone"])
def test_a_wait_ends_however_its_call_ends(how: str) -> None:
    """F104: given up, or outlasting its unit: nobody rests for ever, nothing is kept."""

    async def story() -> None:
        async with gate() as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            root = WirePeer(platform, "shop").connect().call("desk", "ask", "o1")
            unit = await desk.next()
            asked = child(desk, unit, "a")
            below = await bank.next()
            assert counts(platform) == (0, 1)
            if how == "cancelled":
                desk.cancel_calls()
                await asked
                assert counts(platform) == (1, 0)
            desk.answer(unit, "done")
            assert (await root).value == "done"
            assert counts(platform) == (0, 0)
            bank.answer(below, "too late")
            await asked
            assert len(platform.gateway.resting) == 0

    play(story)


def test_a_unit_that_waits_keeps_its_exclusive_key() -> None:
    """DESIGN 4.3: another unit may have its slot, but not the object it is in the middle of."""

    async def story() -> None:
        async with gate() as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop, other = WirePeer(platform, "shop").connect(), WirePeer(platform, "other").connect()
            root = shop.call("desk", "sign", "o1")
            unit = await desk.next()
            asked = child(desk, unit, "a")
            below = await bank.next()
            same, free = other.call("desk", "sign", "o1"), other.call("desk", "sign", "o2")
            begun = await desk.next()
            assert begun.params.business_key == "o2"
            desk.answer(begun, "signed")
            assert (await free).ok
            assert desk.invoked.empty()
            bank.answer(below, "done")
            await asked
            desk.answer(unit, "signed")
            assert (await root).ok
            desk.answer(await desk.next(), "signed")
            assert (await same).ok

    play(story)


def test_a_unit_that_does_not_stop_while_it_waits_loses_its_place() -> None:
    """D5: told to stop and not ending, a resting unit is a zombie; the end of its wait changes nothing any more."""

    async def story() -> None:
        async with gate() as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=2).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            root = shop.read("desk")
            unit = await desk.next()
            asked = child(desk, unit, "a")
            below = await bank.next()
            shop.cancel_calls()
            await root
            assert counts(platform) == (0, 1)  # told to stop
            await asyncio.sleep(2)
            assert counts(platform) == (0, 0)
            bank.answer(below, "late")
            await asked
            assert counts(platform) == (0, 0)
            desk.answer(unit, error="cancelled")
            await asyncio.sleep(0.1)
            assert (counts(platform), len(platform.gateway.resting)) == ((0, 0), 0)

    play(story)


def test_open_units_have_a_bound() -> None:
    """DESIGN 4.3: when too many units wait, calls queue although nobody runs."""

    async def story() -> None:
        async with gate(settings=Settings(slots=SlotOptions(open_factor=2))) as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            roots = [shop.call("desk", "ask", f"o{number}") for number in range(3)]
            units = [await desk.next()]
            asked = [child(desk, units[0], "a")]
            units.append(await desk.next())
            asked.append(child(desk, units[1], "b"))
            below = [await bank.next(), await bank.next()]
            assert counts(platform) == (0, 2)
            assert platform.gateway.policies.slots.queued("desk") == 1
            assert platform.gateway.policies.slots.pool("desk").holders() == [unit.unit for unit in units]
            for invoked in below:
                bank.answer(invoked, "done")
            await asyncio.gather(*asked)
            for unit in units:
                desk.answer(unit, "done")
            desk.answer(await desk.next(), "done")
            assert [(await root).ok for root in roots] == [True] * 3

    play(story)


def test_a_lost_connection_does_not_end_a_wait() -> None:
    """DESIGN 4.5: the unit and its call are still there, so it rests on until the call has ended."""

    async def story() -> None:
        async with gate() as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            root = WirePeer(platform, "shop").connect().call("desk", "ask", "o1")
            unit = await desk.next()
            asked = child(desk, unit, "a")
            below = await bank.next()
            desk.leave()
            await asyncio.sleep(1)
            assert counts(platform) == (0, 1)
            desk.connect(units=(desk.running(unit),))
            desk.send_calls_again()
            await asyncio.sleep(1)
            assert counts(platform) == (0, 1)
            bank.answer(below, "done")
            await asked
            assert counts(platform) == (1, 0)
            desk.answer(unit, "done")
            assert (await root).ok

    play(story)


def test_a_unit_that_rejoins_rests_again_with_its_calls() -> None:
    """DESIGN 4.5: after a restart of the gate it counts at once; its pending call, sent again, lets it rest again."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            desk = WirePeer(platform, "desk", skills=SKILLS, concurrency=1).connect()
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            root = WirePeer(platform, "shop").connect().call("desk", "ask", "o1")
            unit = await desk.next()
            asked = child(desk, unit, "a")
            below = await bank.next()
            root.cancel()
            for peer in (desk, bank):
                peer.leave()
        async with gate(store, seed=2) as platform:
            desk.platform = bank.platform = platform
            bank.connect(units=(bank.running(below),))
            desk.connect(units=(desk.running(unit),))
            await asyncio.sleep(0.1)
            assert counts(platform) == (1, 0)
            desk.send_calls_again()
            await asyncio.sleep(0.1)
            assert counts(platform) == (0, 1)
            other = WirePeer(platform, "other").connect().call("desk", "ask", "o2")
            desk.answer(await desk.next(), "done")
            assert (await other).ok
            bank.answer(below, "done")
            await asked
            assert counts(platform) == (1, 0)
            desk.answer(unit, "done")
            await asyncio.sleep(0.1)
            assert counts(platform) == (0, 0)

    play(story)


def test_what_the_sdk_says_of_a_handler() -> None:
    """DESIGN 4.3: async handlers and checks rest; any other function holds a thread and does not."""
    agent = Agent("desk")

    @agent.handles("ask")
    async def ask(name: str) -> str:
        return name

    @agent.handles("block")
    def block(name: str) -> str:
        return name

    @agent.check("block")
    async def blocked(name: str) -> str | None:
        return name

    assert {skill.task_type: skill.rests for skill in agent.card().skills} == {
        "ask": True,
        "block": False,
        "check:block": True,
    }
    assert b"rests" not in msgspec.json.encode(agent.card().skill("block"))


def test_a_failed_child_wakes_its_parent_at_once() -> None:
    """The parent goes on with what its child came to, whoever has its slot meanwhile."""
    alpha, beta = Agent("alpha", concurrency=1), Agent("beta", concurrency=1)

    @alpha.handles("x")
    async def x(name: str, ctx: Context) -> str:
        try:
            return str(await ctx.call("beta", "y", name, name))
        except CallFailed as failed:
            return failed.code

    @alpha.handles("long", effect="read")
    async def long(name: str) -> str:
        await asyncio.sleep(20)
        return name

    @beta.handles("y")
    async def y(name: str) -> str:
        await asyncio.sleep(1)
        raise RuntimeError(name)

    async def story() -> None:
        async with local_gate(alpha, beta) as gate:
            first = asyncio.ensure_future(gate.call("alpha", "x", "o1", "o1"))
            await asyncio.sleep(0.5)
            second = asyncio.ensure_future(gate.call("alpha", "long", "", "o2", effect="read"))
            assert await first == "handler_error"
            assert asyncio.get_running_loop().time() < 2
            second.cancel()

    run_virtual(story)
