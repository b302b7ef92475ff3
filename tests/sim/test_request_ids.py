"""One id of a process stands for one request, and what is wrong with one waiter keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from itertools import permutations
from typing import Any

import pytest

from agentgate.app import Platform
from agentgate.gateway.units import Unit
from agentgate.model import Outcome, Skill
from tests.sim.news_kit import left_over
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

ASK = Skill(task_type="ask", rests=True)
REVIEW = Skill(task_type="review", rests=True, promises=("finished",))
KINDS = ("call", "lock", "wait_for", "signal", "wait")


class Team:
    """An agent whose unit has made a call without waiting for it, and one that knows nothing of that."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.bank = WirePeer(platform, "bank", skills=(ASK,)).connect()
        self.stock = WirePeer(platform, "stock", skills=(ASK, REVIEW)).connect()
        self.shop = WirePeer(platform, "shop").connect()

    async def begin(self) -> None:
        self.roots = [self.shop.call("bank", "ask", "o1"), self.shop.call("stock", "review", "o1")]
        self.unit, self.other = await self.bank.next(), await self.stock.next()
        self.started = self.bank.ask("call", "started", **self.params("call"))
        self.child = await self.bank.next()

    def params(self, kind: str) -> dict[str, Any]:
        token = self.unit.params.token
        if kind == "call":
            return {"target": "bank", "task_type": "ask", "business_key": "x", "token": token, "awaited": False}
        if kind == "lock":
            return {"names": ["stock"], "token": token}
        return {"name": "n", "about": kind, "token": token}

    def say(self, kind: str) -> asyncio.Future[Outcome] | None:
        """Something of this kind under the id `x`."""
        if kind == "wait":
            self.bank.send(method="wait", params={"id": "x", "any_of": ["started"]})
            return None
        return self.bank.ask(kind, "x", **self.params(kind))

    async def end(self) -> None:
        """Everything ends as it should, for everybody."""
        news = self.stock.ask("wait_for", name="never", about="o1", token=self.other.params.token, timeout_ms=2000)
        self.bank.answer(self.child, "done")
        assert (await self.started).value == "done"
        assert (await news).code == "needs_human"
        while not self.bank.invoked.empty():
            self.bank.answer(await self.bank.next(), "done")
        self.bank.answer(self.unit, "done")
        self.stock.answer(self.other, "done")
        assert [(await root).value for root in self.roots] == ["done", "done"]
        await asyncio.sleep(10)
        assert left_over(self.platform.gateway) == [0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("first", "second"), list(permutations(KINDS, 2)))
def test_an_id_is_not_given_to_a_request_of_another_kind(first: str, second: str) -> None:
    """B14, I6: in whatever order; the second is refused (a `wait`, which has no answer, ignored), the first goes on."""

    async def story() -> None:
        async with gate() as platform:
            team = Team(platform)
            await team.begin()
            asked = team.say(first)
            await asyncio.sleep(0.01)
            was_open = platform.gateway.awaiting.open_waits()
            if asked is not None and asked.done():
                assert asked.result().ok
            again = team.say(second)
            await asyncio.sleep(0.01)
            assert platform.gateway.awaiting.open_waits() == was_open
            if again is not None:
                error = again.result().error
                assert error is not None
                assert (error.code, f"belongs to a `{first}`" in error.detail) == ("bad_request", True)
            await team.end()

    play(story)


class Grumbler:
    """A listener that takes no news well."""

    def unit_opened(self, unit: Unit) -> None:
        raise KeyError(unit.id)

    unit_ended = unit_overstays = unit_opened


def test_a_listener_that_fails_keeps_no_unit_from_its_end() -> None:
    """I6: units open and end, whoever of those who hear of it has a flaw; the others are told."""

    async def story() -> None:
        async with gate() as platform:
            units = platform.gateway.units
            units.listen(Grumbler())
            units._listeners.reverse()  # noqa: SLF001 - it hears of everything first
            await complete(platform)

    play(story)


async def complete(platform: Platform) -> None:
    team = Team(platform)
    await team.begin()
    await team.end()


def test_a_waiter_that_fails_keeps_no_other_waiting() -> None:
    """4.3, 4.4: several waits end at one instant, by a signal or by time; all but the broken one are answered."""

    async def story() -> None:
        async with gate() as platform:
            team = Team(platform)
            await team.begin()
            signals = platform.gateway.signals
            on_end = signals.on_end
            broken: set[str] = {"w0", "w3"}

            def fail_for_some(wait: Any) -> None:
                on_end(wait)
                if wait.id[1] in broken:
                    raise KeyError(wait.id)

            signals.on_end = fail_for_some
            waits = [wait_of(team, f"w{number}", "soon", timeout_ms=500) for number in range(3)]
            waits += [wait_of(team, f"w{number}", "said") for number in range(3, 6)]
            said = team.stock.ask("signal", name="n", about="said", value=7, token=team.other.params.token)
            assert (await said).ok
            assert [(await wait).value for wait in waits[3:]] == [7, 7, 7]
            assert [(await wait).code for wait in waits[:3]] == ["needs_human"] * 3
            await team.end()

    play(story)


def wait_of(team: Team, request_id: str, about: str, **more: Any) -> asyncio.Future[Outcome]:
    return team.bank.ask("wait_for", request_id, name="n", about=about, token=team.unit.params.token, **more)


def test_news_of_a_lock_that_cannot_be_told_keeps_nobody_else_waiting() -> None:
    """4.3: two requests for shared locks are granted at one instant; the one whose wait is not in the book, too."""

    async def story() -> None:
        async with gate() as platform:
            team = Team(platform)
            await team.begin()
            assert (await team.stock.lock("l", token=team.other.params.token)).ok
            held = team.stock.last_lock
            first, second = (shared(team.bank, unit) for unit in (team.unit, team.child))
            await asyncio.sleep(0.01)
            service = platform.gateway._link.locks  # noqa: SLF001 - a flaw that nobody knows of yet
            wait = next(iter(service._open.values()))  # noqa: SLF001 - the same
            platform.gateway.waits.close(wait)
            del wait.unit
            team.stock.unlock(held)
            assert (await second).ok
            assert not first.done()
            await asyncio.sleep(60)

    play(story)


def shared(peer: WirePeer, unit: Invoked) -> asyncio.Future[Outcome]:
    return peer.lock("l", token=unit.params.token, mode="shared", timeout_ms=20_000)
