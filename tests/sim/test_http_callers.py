"""Who calls over HTTP: handlers without the SDK, tokens, and callers that open too many calls at once."""

from __future__ import annotations

from agentgate.config import Settings
from agentgate.gateway.options import CallOptions
from agentgate.model import Identity
from tests.sim.http_caller import CALL, READ, HttpCaller
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def test_a_handler_that_calls_back_is_known_by_its_units_token() -> None:
    """B8, H1: an agent without the SDK passes its token on, and its call belongs to the unit it was made in."""

    async def story() -> None:
        async with gate() as platform:
            bank, mint = (WirePeer(platform, name, skills=SKILLS).connect() for name in ("bank", "mint"))
            shop = HttpCaller(platform)
            outer = shop.pay("o1")
            unit = await bank.next()
            inner = shop.post({**CALL, "target": "mint"}, idempotency_key="o1", agentgate_unit_token=unit.params.token)
            below = await mint.next()
            assert (below.params.caller, below.params.key) == ("bank", "bank:pay:o1:run")
            assert below.params.remaining_ms < unit.params.remaining_ms
            mint.answer(below, "struck")
            assert (await inner).body["value"] == "struck"
            bank.answer(unit, "paid")
            assert (await inner).body["trace_id"] == (await outer).body["trace_id"]
            closed = await shop.post({**CALL, "caller": "bank", "business_key": "o2", "token": unit.params.token})
            assert (closed.status, closed.code, closed.headers["x-should-retry"]) == (409, "lease_lost", "false")

    play(story)


def test_a_trace_goes_on() -> None:
    """H1: a caller's own trace is continued; a header that is none begins a new one and harms nothing."""

    async def story() -> None:
        async with gate() as platform:
            shop = HttpCaller(platform)
            trace = "0af7651916cd43dd8448eb211c80319c"
            known = await shop.post(READ, traceparent=f"00-{trace}-b7ad6b7169203331-01")
            unknown = await shop.post(READ, traceparent="nonsense")
            assert known.body["trace_id"] == trace
            assert (unknown.code, len(unknown.body["trace_id"])) == ("no_route", 32)

    play(story)


def test_a_token_speaks_for_its_own_name_only() -> None:
    """I6: with a token its name is the caller, another one is refused, and so is a token that may not call."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = HttpCaller(platform, Identity(name="shop", scopes=frozenset({"submit"})))
            call = shop.pay("o1", caller="shop")
            unit = await bank.next()
            assert unit.params.caller == "shop"
            bank.answer(unit, "paid")
            name = (await call).body["id"]
            assert (await shop.pay("o1", caller="bank")).code == "forbidden"
            silent = HttpCaller(platform, Identity(name="eve", scopes=frozenset()))
            assert (await silent.pay("o1")).code == "forbidden"
            agent = HttpCaller(platform, Identity(name="mint", scopes=frozenset({"agent:mint"})))
            assert (await agent.post({**READ, "target": "nobody"})).code == "no_route"
            assert (await shop.look(name)).status == 200
            assert (await agent.look(name)).code == "forbidden"
            seer = HttpCaller(platform, Identity(name="eve", scopes=frozenset({"observe"})))
            assert (await seer.look(name)).status == 200
            stranger = HttpCaller(platform, Identity(tenant="other", name="shop", scopes=frozenset({"submit"})))
            assert (await stranger.look(name)).status == 404

    play(story)


def test_open_calls_are_bounded() -> None:
    """B14: so many of one caller, so many of all; the next is refused at once and nothing of it is left."""

    async def story() -> None:
        settings = Settings(calls=CallOptions(peer_calls_max=2, http_calls_max=3))
        async with gate(settings=settings) as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            calls = [shop.pay("o1"), shop.pay("o2")]
            third = await shop.pay("o3")
            assert (third.status, third.code, third.headers["x-should-retry"]) == (503, "overloaded", "true")
            calls.append(shop.pay("o4", caller="another"))
            assert (await shop.pay("o5", caller="a third")).code == "overloaded"
            for _ in range(3):
                bank.answer(await bank.next(), "paid")
            assert [(await call).status for call in calls] == [200, 200, 200]
            assert len(platform.gateway.front) == 0
            call = shop.pay("o5")
            bank.answer(await bank.next(), "paid")
            assert (await call).status == 200

    play(story)


def test_an_agent_at_work_that_forgets_the_unit_token_is_noticed() -> None:
    """A7, D1: what it calls cannot be assigned; with the token of its unit there is nothing to notice."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            caller = HttpCaller(platform, Identity(name="bank", scopes=frozenset({"agent:bank"})))
            await caller.post({**READ, "target": "nobody"})
            shop = WirePeer(platform, "shop").connect().call("bank", "pay", "o1")
            unit = await bank.next()
            await caller.post({**READ, "target": "nobody"}, agentgate_unit_token=unit.params.token)
            assert platform.gateway.findings.of("default") == []
            await caller.post({**READ, "target": "nobody"})
            [finding] = platform.gateway.findings.of("default")
            assert (finding.kind, finding.subject) == ("unlinked_calls", "bank")
            assert finding.evidence == {"target": "nobody", "task_type": "look"}
            bank.answer(unit, "paid")
            assert (await shop).ok

    play(story)
