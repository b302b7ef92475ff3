"""Waits and signals message by message: lost connections, restarts, repeats, and what no gate may take."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate.adapters.memory.store import MemoryStore
from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.rate import RateOptions
from agentgate.core.signals import SignalOptions
from agentgate.gateway.awaiting import ANY_OF_MAX, NAMED_MAX
from agentgate.model import AGENT_SCOPE, Identity, Outcome, Skill
from tests.sim.wire_peer import SKILLS, Invoked, WirePeer, gate, play

PROMISING = Skill(task_type="vet", promises=("vetted",))


class Bank:
    """An agent with one unit that runs, of a client that waits for it."""

    def __init__(self, platform: Platform, name: str = "bank", **more: Any) -> None:
        self.peer = WirePeer(platform, name, skills=(*SKILLS, PROMISING), **more)
        self.shop = WirePeer(platform, "shop", **more)
        self.unread: list[asyncio.Future[Outcome]] = []

    def asks(self, asked: asyncio.Future[Outcome]) -> None:
        """It asks, and this story does not look at the answer."""
        self.unread.append(asked)

    async def begin(self, key: str = "o1", task_type: str = "pay") -> Invoked:
        """One more unit."""
        if not hasattr(self.peer, "session"):
            self.peer.connect()
            self.shop.connect()
        self.asks(self.shop.call(self.peer.name, task_type, key))
        return await self.peer.next()

    def wait_for(self, unit: Invoked, about: str = "o1", request_id: str = "", **more: Any) -> asyncio.Future[Outcome]:
        return self.peer.ask(
            "wait_for", request_id, **{"name": "n", "about": about, "token": unit.params.token, **more}
        )

    def signal(self, unit: Invoked, value: Any = 1, request_id: str = "", **more: Any) -> asyncio.Future[Outcome]:
        params = {"name": "n", "about": "o1", "value": value, "token": unit.params.token, **more}
        return self.peer.ask("signal", request_id, **params)


async def turn() -> None:
    await asyncio.sleep(0.01)


def test_a_wait_outlives_its_connection() -> None:
    """4.5: what it came to meanwhile is told when it is sent again under its id, as often as that happens."""

    async def story() -> None:
        async with gate() as platform:
            bank, other = Bank(platform), Bank(platform, "stock")
            unit, sender = await bank.begin(), await other.begin()
            early, late, open_still = (bank.wait_for(unit, about, f"w-{about}") for about in ("o1", "o2", "o3"))
            await turn()
            bank.peer.leave()
            assert (await other.signal(sender, 7)).ok
            bank.peer.connect(units=(bank.peer.running(unit),))
            bank.asks(bank.wait_for(unit, "o1", "w-o1"))
            bank.asks(bank.wait_for(unit, "o2", "w-o2"))
            bank.asks(bank.wait_for(unit, "o3", "w-o3"))
            assert (await early).value == 7
            bank.asks(bank.wait_for(unit, "o1", "w-o1"))
            assert (await bank.wait_for(unit, "o1", "w-o1")).value == 7
            assert (await other.signal(sender, 8, about="o2")).ok
            assert (await late).value == 8
            book = platform.gateway.signals.book
            assert (book.waiting, book.kept, open_still.done()) == (1, 0, False)

    play(story)


def test_what_a_process_does_not_wait_for_any_more_is_forgotten() -> None:
    """4.5: by `cancel`, or because its hello does not name it; the signal is for the next who waits."""

    async def story() -> None:
        async with gate() as platform:
            bank = Bank(platform)
            unit = await bank.begin()
            for about in ("o1", "o2"):
                bank.asks(bank.wait_for(unit, about, f"w-{about}"))
            bank.peer.send(method="cancel", params={"id": "w-o1"})
            bank.peer.send(method="cancel", params={"id": "never heard of"})
            book = platform.gateway.signals.book
            assert [wait.about for wait in book.open_waits()] == ["o2"]
            bank.peer.leave()
            bank.peer._calls.clear()  # noqa: SLF001 - it has given up
            bank.peer.connect(units=(bank.peer.running(unit),))
            assert book.open_waits() == book.of_unit(unit.unit) == []
            assert (await bank.signal(unit, 5)).ok
            assert (await bank.wait_for(unit)).value == 5

    play(story)


def test_a_signal_that_is_sent_again_is_heard_once() -> None:
    """C5: over the same connection or the next; each time it is answered."""

    async def story() -> None:
        async with gate() as platform:
            bank = Bank(platform)
            unit = await bank.begin()
            first = bank.wait_for(unit)
            assert (await bank.signal(unit, 5, "s1")).ok
            assert (await bank.signal(unit, 5, "s1")).ok
            bank.peer.leave()
            bank.peer.connect(units=(bank.peer.running(unit),))
            assert (await bank.signal(unit, 5, "s1")).ok
            assert (await first).value == 5
            assert platform.gateway.signals.book.kept == 0
            assert platform.gateway.counters.signals == 1

    play(story)


def test_waits_come_again_after_a_restart_of_the_gate() -> None:
    """4.5, G1: they go on where they were, with the time that is left; a promise is known again, too."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            bank, vetter = Bank(platform), Bank(platform, "vetter")
            unit, vetting = await bank.begin(), await vetter.begin(task_type="vet")
            heard = bank.wait_for(unit, request_id="w1", name="vetted", from_agent="vetter", timeout_ms=20_000)
            other = bank.wait_for(unit, about="o2", request_id="w2", timeout_ms=9_000)
            await turn()
        async with gate(store, seed=2) as platform:
            for at_work, running in ((bank.peer, unit), (vetter.peer, vetting)):
                at_work.platform = platform
                at_work.connect(units=(at_work.running(running),))
            params = {"name": "vetted", "about": "o1", "from_agent": "vetter", "token": unit.params.token}
            bank.asks(bank.peer.ask("wait_for", "w1", **params, timeout_ms=19_000, age_ms=1_000))
            bank.asks(bank.wait_for(unit, about="o2", request_id="w2", timeout_ms=500, age_ms=8_500))
            vetter.peer.answer(vetting, "no verdict")
            assert (await heard).code == "promise_broken"
            assert (await other).code == "needs_human"

    play(story)


def test_waits_and_promises_of_a_lost_instance_end() -> None:
    """A8, 4.4: it does not come back, so its waits are gone, and after the grace its promises are broken."""

    async def story() -> None:
        async with gate() as platform:
            bank, vetter = Bank(platform), Bank(platform, "vetter")
            unit, vetting = await bank.begin(), await vetter.begin(task_type="vet")
            bank_waits = bank.wait_for(unit, name="vetted", from_agent="vetter")
            vetter.asks(vetter.wait_for(vetting))
            vetter.peer.leave()
            lost_at = asyncio.get_running_loop().time() + 3.0
            assert (await bank_waits).code == "promise_broken"
            assert asyncio.get_running_loop().time() == pytest.approx(lost_at + 5.0, abs=0.1)
            assert platform.gateway.signals.book.waiting == 0

    play(story)


def test_only_an_open_unit_of_the_process_waits_and_signals() -> None:
    """4.3: its token says so; a closed one is refused, and so is one of somebody else, or none at all."""

    async def story() -> None:
        async with gate() as platform:
            bank, other = Bank(platform), Bank(platform, "stock")
            unit, foreign = await bank.begin(), await other.begin()
            assert (await bank.signal(unit, token="")).ok  # the only one that is open: it must have been this
            await bank.begin("o2")
            codes = [(await bank.signal(unit, token=token)).code for token in ("", "nonsense", foreign.params.token)]
            assert codes == ["bad_request", "lease_lost", "forbidden"]
            assert (await bank.wait_for(unit, token="")).code == "bad_request"
            assert (await bank.shop.ask("wait_for", name="n")).code == "bad_request"
            ended = bank.wait_for(unit, "o7")
            bank.peer.answer(unit, "paid")
            assert (await ended).code == "lease_lost"
            await turn()
            assert (await bank.signal(unit)).code == (await bank.wait_for(unit)).code == "lease_lost"

    play(story)


@pytest.mark.parametrize(
    ("wrong", "code", "says"),
    [
        ({"name": ""}, "bad_request", "`name` of the signal is empty"),
        ({"name": "n\n"}, "bad_request", "U+000A"),
        ({"about": "x" * 201}, "bad_request", "`about` of the signal has 201 characters"),
        ({"to": " "}, "bad_request", "`to` of the signal is empty"),
        ({"name": 7}, "bad_request", "Expected `str`"),
        (
            {"value": "x" * 101},
            "too_large",
            "the value of the signal has 103 bytes; at most 100 are allowed (`signals.value_bytes_max`)",
        ),
    ],
)
def test_what_is_no_proper_signal_is_refused(wrong: dict[str, Any], code: str, says: str) -> None:
    """4.5: with one clear error; the connection and the wait for anything else are not harmed."""

    async def story() -> None:
        async with gate(settings=Settings(signals=SignalOptions(value_bytes_max=100))) as platform:
            bank = Bank(platform)
            unit = await bank.begin()
            outcomes = [await bank.signal(unit, **wrong)]
            if "value" not in wrong:
                named = {"from_agent" if name == "to" else name: value for name, value in wrong.items()}
                outcomes.append(await bank.wait_for(unit, **named))
            assert {outcome.code for outcome in outcomes} == {code}
            assert says in (outcomes[0].error.detail if outcomes[0].error else "")
            assert (await bank.signal(unit)).ok

    play(story)


@pytest.mark.parametrize("mode", ["enforce", "observe", "off"])
def test_signals_count_in_the_rate_of_their_sender(mode: Any) -> None:
    """B1: what comes too fast is refused with a time, and may be sent again; waits of others are not disturbed."""

    async def story() -> None:
        rate = RateOptions(rate_per_s=1.0, burst=2, parked_max=0 if mode == "enforce" else 100)
        mechanisms = {**Settings().mechanisms, "rate_limit": mode}
        async with gate(settings=Settings(rate=rate, mechanisms=mechanisms)) as platform:
            bank = Bank(platform)
            unit = await bank.begin()
            outcomes = [await bank.signal(unit, number) for number in range(3)]
            refused = outcomes[-1].error
            if mode == "enforce":
                assert refused is not None
                assert (refused.code, refused.retry_after_ms) == ("rate_limited", 1000)
            else:
                assert refused is None
            assert platform.gateway.counters.would["would_pace"] == (mode == "observe")

    play(story)


def test_a_signal_does_not_queue_for_its_turn() -> None:
    """B1: where a call would be parked, a signal is refused and takes no place."""

    async def story() -> None:
        async with gate(settings=Settings(rate=RateOptions(rate_per_s=1.0, burst=1))) as platform:
            bank = Bank(platform)
            unit = await bank.begin()
            assert (await bank.signal(unit)).ok
            assert [(await bank.signal(unit)).code for _ in range(2)] == ["rate_limited"] * 2
            await asyncio.sleep(1)
            assert (await bank.signal(unit)).ok

    play(story)


def test_tenants_do_not_hear_one_another() -> None:
    """I6: the same agents, keys and names of signals; each hears its own news only."""

    async def story() -> None:
        async with gate() as platform:
            teams = [
                Bank(platform, identity=Identity(tenant=tenant, name="", scopes=ALL, token="0"), instance="")
                for tenant in ("default", "blue")
            ]
            ours, theirs = teams
            unit, other = await ours.begin(), await theirs.begin()
            waits = [ours.wait_for(unit), theirs.wait_for(other)]
            assert (await theirs.signal(other, "blue")).ok
            assert (await waits[1]).value == "blue"
            await turn()
            assert not waits[0].done()

    play(story)


ALL = frozenset({"submit", f"{AGENT_SCOPE}bank", f"{AGENT_SCOPE}shop"})


def test_a_unit_stands_still_for_the_first_of_what_it_names() -> None:
    """4.4: one wait; it is over at the first end, at an `unwait`, and with the connection; a repeat changes nothing."""

    async def story() -> None:
        async with gate() as platform:
            bank, stock = Bank(platform), Bank(platform, "stock")
            unit, sender = await bank.begin(), await stock.begin()
            awaiting = platform.gateway.awaiting
            call = bank.peer.call("stock", "pay", "o9", awaited=False, token=unit.params.token)
            call_id = f"{bank.peer.instance}-call-1"
            bank.asks(bank.wait_for(unit, request_id="w1", awaited=False))
            for wait_id in ("a", "a", "b"):
                bank.peer.send(method="wait", params={"id": wait_id, "any_of": [call_id, "w1", call_id]})
            assert [(first.id[1], first.unit) for first in awaiting.open_waits()] == [
                ("a", unit.unit),
                ("b", unit.unit),
            ]
            bank.peer.send(method="unwait", params={"id": "a"})
            bank.peer.send(method="unwait", params={"id": "a"})
            assert [first.id[1] for first in awaiting.open_waits()] == ["b"]
            await stock.signal(sender)
            assert awaiting.open_waits() == []
            bank.peer.send(method="wait", params={"id": "c", "any_of": [call_id]})
            bank.peer.leave()
            bank.peer.connect(units=(bank.peer.running(unit),))
            assert awaiting.open_waits() == []
            bank.peer.send(method="wait", params={"id": "c", "any_of": [call_id]})
            assert [first.id[1] for first in awaiting.open_waits()] == ["c"]
            stock.peer.answer(await stock.peer.next(), "sold")
            assert (await call).value == "sold"
            assert awaiting.open_waits() == []

    play(story)


def test_a_wait_that_cannot_be_one_is_left_out() -> None:
    """Something of it has ended, it is of two units or of none, it names nothing or too much."""

    async def story() -> None:
        async with gate() as platform:
            bank = Bank(platform)
            unit, second = await bank.begin(), await bank.begin("o2")
            bank.asks(bank.wait_for(unit, request_id="w1", awaited=False))
            bank.asks(bank.wait_for(second, request_id="w2", awaited=False))
            bank.asks(bank.shop.call("bank", "pay", "o3"))
            root = f"{bank.shop.instance}-call-3"
            for named in (["w1", "over"], ["w1", "w2"], [], ["w1"] * (ANY_OF_MAX + 1)):
                bank.peer.send(method="wait", params={"id": "x", "any_of": named})
            bank.shop.send(method="wait", params={"id": "x", "any_of": [root]})
            assert platform.gateway.awaiting.open_waits() == []

    play(story)


def test_what_the_waits_of_a_unit_name_is_bounded_for_each_unit() -> None:
    """I10, 4.4: beyond the bound all that the new wait names is refused; other units of the process have their own."""

    async def story() -> None:
        async with gate() as platform:
            bank, awaiting = Bank(platform), platform.gateway.awaiting
            unit, second = await bank.begin(), await bank.begin("o2")
            held, news, other = (
                bank.wait_for(of, request_id=name, awaited=False, timeout_ms=20_000)
                for of, name in ((unit, "w1"), (unit, "w2"), (second, "w3"))
            )
            for number in range(NAMED_MAX):
                bank.peer.send(method="wait", params={"id": f"x{number}", "any_of": ["w1"]})
            token = unit.params.token
            calls = [bank.peer.call("bank", "pay", key, awaited=False, token=token) for key in ("k1", "k2")]
            begun = f"{bank.peer.instance}-call-1"
            bank.peer.send(method="wait", params={"id": "y", "any_of": ["w2", begun]})
            assert ((await news).code, (await calls[0]).code) == ("overloaded", "overloaded")
            bank.peer.send(method="wait", params={"id": "z", "any_of": ["w3"]})
            assert len(awaiting.open_waits()) == NAMED_MAX + 1
            assert [wait.unit for wait in awaiting.open_waits()][-1] == second.unit
            assert len(platform.gateway.resting) == 2
            bank.peer.send(method="cancel", params={"id": "w1"})
            assert [wait.id[1] for wait in awaiting.open_waits()] == ["z"]
            running = await bank.peer.next()
            bank.peer.send(method="wait", params={"id": "u", "any_of": [f"{bank.peer.instance}-call-2"]})
            assert len(platform.gateway.resting) == 2
            bank.peer.answer(running, "paid")
            assert (await calls[1]).value == "paid"
            assert not held.done()
            assert (await other).code == "needs_human"
            assert (len(platform.gateway.resting), awaiting._named) == (0, {})  # noqa: SLF001 - nothing is left

    play(story)
