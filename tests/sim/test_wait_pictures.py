"""What is shown of who waits for whom, on whole gates in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.policy import Mode
from agentgate.model import NEIGHBOUR, Identity, Party, Skill, Wait
from agentgate.server.wait_pictures import WaitPictures
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

BLOCK = Skill(task_type="block")
SIGN = Skill(task_type="sign", exclusive="business_key")
TELL = Skill(task_type="tell", promises=("told",))
SKILLS = (BLOCK, SIGN, TELL)


def of(tenant: str) -> Identity:
    return Identity(tenant=tenant, is_trusted=True) if tenant else NEIGHBOUR


def peer(platform: Platform, name: str, *, concurrency: int = 1, tenant: str = "") -> WirePeer:
    return WirePeer(platform, name, skills=SKILLS, concurrency=concurrency, identity=of(tenant)).connect()


def client(platform: Platform, tenant: str = "") -> WirePeer:
    return WirePeer(platform, "shop", identity=of(tenant)).connect()


def ask(asker: WirePeer, target: str, task_type: str, key: str, **more: Any) -> None:
    """Call, and do not wait for it here."""
    _ = asker.call(target, task_type, key, **more)


def pictures(platform: Platform) -> WaitPictures:
    return WaitPictures(platform.gateway, platform.clock)


def observed(mode: Mode) -> Settings:
    return Settings(mechanisms={**default_modes(), "wait_graph": mode})


def party(unit: Invoked, agent: str, key: str, task_type: str = "block") -> Party:
    return Party(unit=unit.unit, agent=agent, task_type=task_type, business_key=key)


def line(wait: Wait) -> tuple[str, str, str, str, list[str]]:
    """Who waits, how, for whom and what, and who could end it."""
    waiter = wait.waiter
    who = f"{waiter.agent}({waiter.business_key})" if waiter.unit else waiter.agent
    holders = [f"{held.agent}({held.business_key})" for held in wait.holders]
    return who, wait.kind, wait.target, wait.business_key, holders


def test_a_picture_names_who_waits_for_whom_and_since_when() -> None:
    """D1, H2: units and callers from outside, what they work on, what they wait for, and until when at the latest."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peer(platform, "a"), peer(platform, "b")
            shop = client(platform)
            ask(shop, "a", "block", "o1", timeout_ms=20_000)
            in_a = await a.next()
            await asyncio.sleep(1)
            ask(a, "b", "block", "o2", token=in_a.params.token)
            in_b = await b.next()
            ask(shop, "b", "block", "o3")
            await asyncio.sleep(2)
            picture = await pictures(platform).take("default")
            assert (picture.mode, picture.truncated, picture.knots) == ("enforce", False, ())
            assert [line(wait) for wait in picture.waits] == [
                ("a(o1)", "call", "b", "o2", ["b(o2)"]),
                ("shop", "call", "a", "o1", ["a(o1)"]),
                ("shop", "slot", "b", "o3", ["b(o2)"]),
            ]
            inner, outer, _ = picture.waits
            assert (inner.waiter, inner.holders) == (party(in_a, "a", "o1"), (party(in_b, "b", "o2"),))
            assert (inner.task_type, inner.key, inner.trace_id) == ("block", "a:block:o2:run", outer.trace_id)
            assert [round(picture.at - wait.since, 2) for wait in (inner, outer)] == [2.0, 3.0]
            assert (round(outer.deadline - outer.since), inner.deadline < outer.deadline) == (20, True)
            assert len({wait.id for wait in picture.waits}) == 3
            one = await pictures(platform).take("default", 1)
            assert (one.waits, one.truncated) == (picture.waits[:1], True)

    play(story)


def test_a_wait_says_how_it_waits_now() -> None:
    """D4: in the queue, for an exclusive key, joined, and, once it runs, as a call like any other."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peer(platform, "a", concurrency=4), peer(platform, "b", concurrency=2)
            shop = client(platform)
            ask(shop, "a", "block", "o1")
            in_a = await a.next()
            ask(shop, "b", "sign", "o2")
            signs = await b.next()
            token = in_a.params.token
            ask(a, "b", "sign", "o2", token=token)
            ask(client(platform), "b", "sign", "o2")
            await asyncio.sleep(0.1)

            async def kinds() -> list[tuple[str, str]]:
                waits = (await pictures(platform).take("default")).waits
                return [(wait.waiter.agent, wait.kind) for wait in waits if wait.target == "b"]

            assert sorted(await kinds()) == [("a", "exclusive"), ("shop", "call"), ("shop", "join")]
            ask(shop, "b", "block", "o3")
            await b.next()
            ask(a, "b", "block", "o4", token=token)
            await asyncio.sleep(0.1)
            assert ("a", "slot") in await kinds()
            b.answer(signs, "signed")
            await b.next()
            await asyncio.sleep(0.1)
            ask(b, "a", "block", "o5")
            assert await kinds() == [("a", "call"), ("a", "slot"), ("shop", "call")]

    play(story)


def test_what_was_begun_earlier_is_shown_while_it_is_waited_for() -> None:
    """D4, 4.4: a started call by how it waits now; news by who may send them; the first of several by all of those."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peer(platform, "a"), peer(platform, "b")
            shop = client(platform)
            ask(shop, "a", "block", "o1")
            ask(shop, "b", "tell", "o1")
            in_a, in_b = await a.next(), await b.next()
            token = in_a.params.token
            _ = a.ask("call", "c1", target="b", task_type="block", business_key="o2", token=token, awaited=False)
            _ = a.ask("wait_for", "n1", name="told", about="o1", from_agent="b", token=token, awaited=False)

            async def lines(*any_of: str) -> list[Any]:
                await asyncio.sleep(0.1)
                a.send(method="wait", params={"id": "w1", "any_of": any_of})
                waits = (await pictures(platform).take("default")).waits
                a.send(method="unwait", params={"id": "w1"})
                return [(line(wait), wait.key, wait.certain) for wait in waits if wait.waiter.unit]

            queued = ("a(o1)", "slot", "b", "o2", ["b(o1)"])
            assert await lines("over") == []
            assert await lines("c1") == [(queued, "a:block:o2:run", True)]
            assert await lines("n1") == [(("a(o1)", "signal", "b", "o1", ["b(o1)"]), "", False)]
            assert await lines("c1", "n1") == [(("a(o1)", "first", "b", "o2, o1", ["b(o1)"]), "", False)]
            b.answer(in_b, "told")
            await b.next()
            assert await lines("c1") == [(("a(o1)", "call", "b", "o2", ["b(o2)"]), "a:block:o2:run", True)]

    play(story)


def test_who_waits_for_a_lock_waits_for_its_holder() -> None:
    """D4, D8: locks are named as they were asked for, with the unit that has them."""

    async def story() -> None:
        async with gate() as platform:
            a = peer(platform, "a", concurrency=2)
            shop = client(platform)
            ask(shop, "a", "block", "o1")
            ask(shop, "a", "block", "o2")
            one, two = await a.next(), await a.next()
            assert (await a.lock("stock", "paper", token=one.params.token)).ok
            _ = a.lock("stock", "paper", token=two.params.token)
            await asyncio.sleep(0.1)
            waits = [wait for wait in (await pictures(platform).take("default")).waits if wait.waiter.unit]
            assert [line(wait) for wait in waits] == [("a(o2)", "lock", "paper, stock", "", ["a(o1)"])]
            a.answer(one, "done")
            await asyncio.sleep(0.1)
            assert all(not wait.waiter.unit for wait in (await pictures(platform).take("default")).waits)

    play(story)


class Hurried:
    """A clock by which every slice of a picture is over at once, so that the gate goes on after each wait."""

    def __init__(self, platform: Platform) -> None:
        self._clock = platform.clock
        self._looks = 0

    def now(self) -> float:
        self._looks += 1
        return self._clock.now() + self._looks * 0.01

    def wall(self) -> float:
        return self._clock.wall()


def begin(asker: WirePeer, unit: Invoked, kind: str, number: int) -> None:
    token = unit.params.token
    if kind == "lock":
        _ = asker.lock("stock", token=token)
    elif kind == "signal":
        _ = asker.ask("wait_for", name="told", about=str(number), token=token)
    else:
        names = [f"c{number}.{part}" for part in range(2)]
        for name in names:
            awaited = kind == "call"
            params = {"target": "b", "task_type": "block", "business_key": name, "token": token, "awaited": awaited}
            _ = asker.ask("call", name, **params)
        if kind == "first":
            asker.send(method="wait", params={"id": f"w{number}", "any_of": names})


@pytest.mark.parametrize("kind", ["lock", "signal", "call", "first"])
def test_what_ends_while_a_picture_is_taken_waits_for_nobody(kind: str) -> None:
    """H2: a picture is read in slices; of a wait that ended in between is shown what is left, and nothing fails."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peer(platform, "a", concurrency=9), peer(platform, "b")
            shop = client(platform)
            for number in range(9):
                ask(shop, "a", "block", f"o{number}")
            holder, *units = [await a.next() for _ in range(9)]
            assert (await a.lock("stock", token=holder.params.token)).ok
            for number, unit in enumerate(units):
                begin(a, unit, kind, number)
            await asyncio.sleep(0.1)
            picture = asyncio.create_task(WaitPictures(platform.gateway, Hurried(platform)).take("default"))
            await asyncio.sleep(0)
            for lock_id in [*a.locks][::-1]:
                a.unlock(lock_id)
            a.cancel_calls()
            b.leave()
            assert len((await picture).waits) > len(units)

    play(story)


def test_a_knot_that_stands_is_on_top_with_who_is_behind_it() -> None:
    """D3, H3: observed only, the circle stands: it is told as a line and by steps; who is behind it is marked."""

    async def story() -> None:
        async with gate(settings=observed("observe")) as platform:
            a, b, c = peer(platform, "a"), peer(platform, "b"), peer(platform, "c")
            shop = client(platform)
            ask(shop, "a", "block", "o1")
            in_a = await a.next()
            ask(a, "b", "block", "o2", token=in_a.params.token)
            in_b = await b.next()
            ask(b, "a", "block", "o3", token=in_b.params.token)
            ask(shop, "c", "block", "o4")
            in_c = await c.next()
            ask(c, "b", "block", "o5", token=in_c.params.token)
            ask(shop, "b", "block", "o6")
            await asyncio.sleep(0.1)
            picture = await pictures(platform).take("default")
            [knot] = picture.knots
            steps = ["a.block(o1)", "b.block(o2)"]
            assert sorted(step.split(": ")[0] for step in knot.text.split(" > ")[:2]) == steps
            assert "queues for a slot" in knot.text
            assert "async def" in knot.advice
            assert (len(knot.cycle), knot.cycle_count, knot.units, knot.certain) == (2, 2, 2, True)
            assert {step.unit for step in knot.cycle} == {in_a.unit, in_b.unit}
            assert "async def" in knot.advice
            behind = {(wait.waiter.agent, wait.business_key): wait.behind for wait in picture.waits}
            assert behind == {
                ("a", "o2"): False,
                ("b", "o3"): False,
                ("c", "o5"): True,
                ("shop", "o1"): True,
                ("shop", "o4"): True,
                ("shop", "o6"): True,
            }

    play(story)


@pytest.mark.parametrize("tenant", ["", "acme"])
def test_tenants_see_nothing_of_one_another(tenant: str) -> None:
    """I6: waits, callers and knots of a tenant are its own, and its names are plain."""

    async def story() -> None:
        async with gate(settings=observed("observe")) as platform:
            a, b = peer(platform, "a", tenant=tenant), peer(platform, "b", tenant=tenant)
            shop = client(platform, tenant=tenant)
            ask(shop, "a", "block", "o1")
            in_a = await a.next()
            ask(a, "b", "block", "o2", token=in_a.params.token)
            in_b = await b.next()
            ask(b, "a", "block", "o3", token=in_b.params.token)
            await asyncio.sleep(0.1)
            mine, other = tenant or "default", "default" if tenant else "acme"
            picture = await pictures(platform).take(mine)
            assert (len(picture.waits), len(picture.knots)) == (3, 1)
            assert "\x1f" not in str(picture)
            assert {held.agent for wait in picture.waits for held in wait.holders} == {"a", "b"}
            assert {step.agent for step in picture.knots[0].cycle} == {"a", "b"}
            stranger = await pictures(platform).take(other)
            assert (stranger.waits, stranger.knots) == ((), ())
            trace = picture.waits[0].trace_id
            for asked in (trace, "o1", "shop:block:o1:run"):
                assert len(await pictures(platform).of_chain(asked, set(), mine)) == 3
                assert await pictures(platform).of_chain(asked, set(), other) == ()

    play(story)


def test_switched_off_only_callers_from_outside_are_seen() -> None:
    """I2: with nobody who needs the graph (the watchdog does) nothing is known of units, and the picture says so."""

    async def story() -> None:
        modes = {**default_modes(), "wait_graph": "off", "watchdog": "off"}
        async with gate(settings=Settings(mechanisms=modes)) as platform:
            a, _ = peer(platform, "a"), peer(platform, "b")
            ask(client(platform), "a", "block", "o1")
            in_a = await a.next()
            ask(a, "b", "block", "o2", token=in_a.params.token)
            await asyncio.sleep(0.1)
            picture = await pictures(platform).take("default")
            assert picture.mode == "off"
            assert [line(wait) for wait in picture.waits] == [("shop", "call", "a", "o1", ["a(o1)"])]

    play(story)


def test_a_busy_agent_is_named_by_its_first_units() -> None:
    """B14: who queues at an agent with many slots waits for any of its units; some are named, all are counted."""

    async def story() -> None:
        async with gate() as platform:
            b = peer(platform, "b", concurrency=40)
            shop = client(platform)
            for number in range(41):
                ask(shop, "b", "block", f"o{number}")
            for _ in range(40):
                await b.next()
            waits = (await pictures(platform).take("default")).waits
            [queued] = [wait for wait in waits if wait.kind == "slot"]
            assert (len(queued.holders), queued.holders_count) == (8, 40)

    play(story)


def test_a_wait_that_ends_is_gone() -> None:
    """D1: whatever ended, nothing of it is shown."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peer(platform, "a"), peer(platform, "b")
            root = client(platform).call("a", "block", "o1")
            in_a = await a.next()
            below = a.call("b", "block", "o2", token=in_a.params.token)
            in_b = await b.next()
            assert platform.gateway.policies.graph.edges == 1
            b.answer(in_b, "done")
            assert (await below).ok
            a.answer(in_a, "done")
            assert (await root).ok
            assert (await pictures(platform).take("default")).waits == ()
            assert platform.gateway.policies.graph.edges == 0

    play(story)
