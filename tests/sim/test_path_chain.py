"""Chains of calls: attribution, deadlines, loops and limits (A7, B8), on the real path and on virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agentgate.adapters.memory import MemorySpanStore, MemoryStore
from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.chain import ChainOptions
from agentgate.model import Span
from agentgate.model.link import UnitReport
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def test_a_child_ends_before_its_parent_and_belongs_to_its_trace() -> None:
    """B8, H1: deadlines shrink along a chain, and one query shows all of it."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            mint = WirePeer(platform, "mint", skills=SKILLS).connect()
            call = WirePeer(platform, "shop").connect().call("bank", "pay", "o1", timeout_ms=10_000)
            parent = await bank.next()
            below = bank.call("mint", "pay", "o1", None, token=parent.params.token, timeout_ms=60_000)
            unit = await mint.next()
            assert parent.params.remaining_ms == 10_000
            assert 9_000 < unit.params.remaining_ms <= 9_500
            assert unit.params.key == "bank:pay:o1:run"
            mint.answer(unit, "struck")
            await below
            bank.answer(parent, "paid")
            await call
            spans = await platform.spans.chain("o1")
            assert [(span.kind, span.caller) for span in spans].count(("call", "bank")) == 1
            by_id = {span.span_id: span for span in spans}
            top = next(span for span in spans if span.kind == "call" and span.caller == "shop")
            inner = next(span for span in spans if span.kind == "call" and span.caller == "bank")
            assert {span.trace_id for span in spans} == {top.trace_id}
            assert by_id[inner.parent_id].unit == parent.unit
            assert by_id[by_id[inner.parent_id].parent_id] is top

    play(story)


def test_the_user_of_a_root_is_that_of_its_chain() -> None:
    """B12: the root says on whose behalf; a child call's own word is ignored, also after the gate was started again."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            mint = WirePeer(platform, "mint", skills=SKILLS).connect()
            call = WirePeer(platform, "shop").connect().call("bank", "pay", "o1", user="carol")
            parent = await bank.next()
            below = bank.call("mint", "pay", "o1", None, token=parent.params.token, user="mallory")
            unit = await mint.next()
            mint.answer(unit, "struck")
            await below
            spans = {span.caller: span.user for span in await platform.spans.chain("o1") if span.kind == "call"}
            assert spans == {"bank": "carol"}
            call.cancel()
            bank.leave()
        async with gate(store, seed=2) as platform:
            bank.platform = platform
            bank.connect(units=(UnitReport(unit=parent.unit, token=parent.params.token, remaining_ms=9000),))
            mint = WirePeer(platform, "mint", skills=SKILLS).connect()
            await asyncio.sleep(0.1)
            below = bank.call("mint", "pay", "o2", None, token=parent.params.token)
            mint.answer(await mint.next(), "struck")
            assert (await below).value == "struck"
            [span] = [span for span in await platform.spans.chain("o2") if span.kind == "call"]
            assert span.user == "carol"

    play(story)


def test_without_a_user_it_is_the_caller() -> None:
    """B12: a root that says nothing counts for its caller, and a name that is no name is refused."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            call = shop.call("bank", "pay", "o1")
            unit = await bank.next()
            assert platform.gateway.units.get(unit.unit).call.user == "shop"  # type: ignore[union-attr]  # it is open
            bank.answer(unit, "paid")
            assert (await call).ok
            refused = await shop.call("bank", "pay", "o2", user="\u0007")
            assert (refused.code, refused.error is not None and "user" in refused.error.detail) == ("bad_request", True)

    play(story)


def test_a_closed_unit_may_not_go_on() -> None:
    """F03, DESIGN 4.3: a handler that runs on after its unit has ended starts no new work in its name."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            call = WirePeer(platform, "shop").connect().call("bank", "pay", "o1", timeout_ms=1000)
            unit = await bank.next()
            assert (await call).code == "deadline_exceeded"
            await asyncio.sleep(2)
            outcome = await bank.call("bank", "ship", "o1", None, token=unit.params.token)
            assert (outcome.code, outcome.status) == ("lease_lost", "refused")
            forged = await bank.call("bank", "ship", "o1", None, token="x" + unit.params.token[1:])
            assert forged.code == "lease_lost"

    play(story)


def test_work_that_waits_for_itself_is_a_loop() -> None:
    """A7, F60: the same work further up the chain is refused at once, and the refusal names the chain."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            mint = WirePeer(platform, "mint", skills=SKILLS).connect()
            WirePeer(platform, "shop").connect().call("bank", "pay", "o1").add_done_callback(lambda _: None)
            top = await bank.next()
            bank.call("mint", "pay", "o1", None, token=top.params.token).add_done_callback(lambda _: None)
            below = await mint.next()
            outcome = await mint.call("bank", "pay", "o1", None, token=below.params.token)
            assert outcome.error is not None
            assert (outcome.code, outcome.error.retry, outcome.error.sent) == ("loop", "never", False)
            assert "bank" in outcome.error.detail
            assert "mint" in outcome.error.detail
            other = mint.call("bank", "pay", "o2", None, token=below.params.token)
            mint_asked = await bank.next()
            bank.answer(mint_asked, "fine")
            assert (await other).ok

    play(story)


def test_depth_fan_out_and_calls_have_limits() -> None:
    """A7: each limit stops exactly at its number, and says which it was."""

    async def story() -> None:
        options = ChainOptions(depth_max=2, fan_out_max=3, calls_max=5)
        async with gate(settings=replace(Settings(), chain=options)) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS, concurrency=20).connect()
            WirePeer(platform, "shop").connect().call("bank", "pay", "o1").add_done_callback(lambda _: None)
            top = await bank.next()
            units = []
            for number in range(3):
                bank.call("bank", "pay", f"a{number}", None, token=top.params.token).add_done_callback(lambda _: None)
                units.append(await bank.next())
            wide = await bank.call("bank", "pay", "a3", None, token=top.params.token)
            assert wide.error is not None
            assert (wide.code, wide.error.fault) == ("chain_limit", "refused")
            assert "3" in wide.error.detail
            bank.call("bank", "pay", "b0", None, token=units[0].params.token).add_done_callback(lambda _: None)
            deepest = await bank.next()
            deep = await bank.call("bank", "pay", "c0", None, token=deepest.params.token)
            assert deep.error is not None
            assert "depth" in deep.error.detail
            long = await bank.call("bank", "pay", "d0", None, token=units[1].params.token)
            assert long.error is not None
            assert "chain" in long.error.detail

    play(story)


def test_a_call_without_a_token_is_attributed_or_marked() -> None:
    """DESIGN 4.3: the only open unit is the parent; with several, the call is unlinked and shown as such."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            mint = WirePeer(platform, "mint", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            shop.call("bank", "pay", "o1").add_done_callback(lambda _: None)
            first = await bank.next()
            bank.read("mint").add_done_callback(lambda _: None)
            mint.answer(await mint.next(), 1)
            shop.call("bank", "pay", "o2").add_done_callback(lambda _: None)
            await bank.next()
            await bank.read("nobody")
            bank.answer(first, "paid")
            await asyncio.sleep(0.1)
            linked = [span for span in await platform.spans.chain("o1") if (span.caller, span.kind) == ("bank", "call")]
            assert [(span.unit, span.linked) for span in linked] == [(first.unit, True)]
            [unlinked] = [span for span in await _all_spans(platform) if span.target == "nobody"]
            assert (unlinked.unit, unlinked.linked) == ("", False)
            [finding] = platform.gateway.findings.of("default")
            assert (finding.kind, finding.subject, finding.count) == ("unlinked_calls", "bank", 1)

    play(story)


async def _all_spans(platform: Platform) -> list[Span]:
    spans = platform.ports.spans
    assert isinstance(spans, MemorySpanStore)
    return list(spans.spans)
