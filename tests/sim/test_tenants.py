"""Two tenants that use the same names for everything, in one gate: neither can tell that the other is there."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any, Final, Self

from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.adapters.memory import MemoryStore
from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.backoff import BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.model import AGENT_SCOPE, SUBMIT, Identity, KeyId
from agentgate.model.names import SEPARATOR
from agentgate.server.view import GateView
from tests.sim.wire_peer import SKILLS, Invoked, WirePeer, gate, play

TENANTS: Final = ("default", "blue")
TRACE: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNIT: Final = re.compile(r"\bu[0-9a-f]{8,}\b")
STEP_S: Final = 12.0  # what a tenant does in one step is over by then
TIMEOUT_MS: Final = 5_000

# What an agent says to a payload that asks for it: an error of this code, and what belongs to it. Nothing: silence.
SAYS: Final[dict[str, dict[str, Any]]] = {
    "raise": {"error": "handler_error", "detail": "it broke"},
    "refuse": {"error": "rejected", "detail": "no"},
    "later": {"error": "overloaded", "sent": False},
    "cool": {"error": "rate_limited", "sent": False, "retry_after_s": 20.0},
}
DEEDS: Final = ("ok", *SAYS, "hang", "nobody", "conflict", "nested", "round", "declined", "drain", "vanish", "return")
# Two faults open a breaker, and nothing is drawn by chance: the draws of one tenant would be another's.
SETTINGS: Final = Settings(
    breaker=BreakerOptions(faults_in_a_row=2, open_spread=0.0), retry=BackoffOptions(jitter_s=0.0)
)


def tenant_identity(tenant: str, name: str, *scopes: str) -> Identity:
    return Identity(tenant=tenant, name=name, scopes=frozenset(scopes), token="0")


class Team:
    """One tenant: a client `shop` and an agent `bank`, named as those of every other tenant, down to their call ids."""

    def __init__(self, platform: Platform, tenant: str) -> None:
        self.platform = platform
        self.tenant = tenant
        self.seen: list[Any] = []  # everything that the tenant can see, without what is random or a time
        shop = tenant_identity(tenant, "shop", SUBMIT)
        bank = tenant_identity(tenant, "bank", f"{AGENT_SCOPE}bank")
        self.shop = WirePeer(platform, "shop", identity=shop, instance="i1")
        self.bank = WirePeer(platform, "bank", skills=SKILLS, concurrency=1, identity=bank, instance="i2")
        self._numbers = itertools.count()

    async def __aenter__(self) -> Self:
        self.shop.connect()
        self.bank.connect()
        self._work = asyncio.get_running_loop().create_task(self._serve())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._work.cancel()

    async def do(self, deed: str) -> None:
        """One step; what comes of it is kept."""
        match deed:
            case "drain":
                self.bank.send(method="drain", params={"reason": "deploy"})
            case "vanish":
                self.bank.leave()
            case "return":
                self.bank.connect()
            case "nobody":
                await self._ask("bnak", "look", "", effect="read")
            case "round":
                await self._ask("skill:look", "look", "", {"do": "nested"}, effect="read")
            case "declined":
                first = self.shop.call("bank", "pay", "order_declined", {"do": "hang"}, timeout_ms=TIMEOUT_MS)
                await self._ask("bank", "pay", "order_declined", {"do": "hang"}, join=False)
                key = KeyId(self.tenant, "bank", "shop", "pay", "order_declined", "run")
                known = await self.platform.gateway.known_calls.find(key, self.platform.clock.now())
                self.seen.append(None if known is None else UNIT.sub("some unit", known.state))
                await first
            case "conflict":
                await self._ask("bank", "pay", "order_1", {"do": "ok", "n": next(self._numbers)})
            case _:
                await self._ask("bank", "look", "", {"do": deed}, effect="read")
                await self._ask("bank", "pay", f"order_{deed}", {"do": deed, "n": 0})
        await self._look_around()

    async def _ask(self, target: str, task_type: str, key: str, payload: Any = None, **more: Any) -> None:
        outcome = await self.shop.call(
            target, task_type, key, payload, timeout_ms=TIMEOUT_MS, traceparent=TRACE, **more
        )
        self.seen.append((task_type, key, outcome.value, outcome.code, outcome.replayed))
        if outcome.error is not None and " s " not in outcome.error.detail:  # a time is another one each time
            self.seen.append(UNIT.sub("some unit", outcome.error.detail))

    async def _look_around(self) -> None:
        """What there is to ask for: agents, breakers, routes, and what happened in the trace they all share."""
        directory = self.platform.directory
        view = GateView(
            gateway=self.platform.gateway,
            directory=directory,
            spans=self.platform.spans,
            clock=self.platform.clock,
        )
        agents = [
            (a.agent, a.tenant, [(i.instance, i.state) for i in a.instances]) for a in directory.agents(self.tenant)
        ]
        counted = ("agent", "task_type", "state", "ok", "faults", "rejected", "opened")
        breakers = [tuple(breaker[name] for name in counted) for breaker in view.breakers(self.tenant)]
        spans = await self.platform.spans.chain(TRACE.split("-")[1], 1000, self.tenant)
        told = [(span.kind, span.caller, span.agent, span.instance, span.business_key, span.code) for span in spans]
        found = self.platform.gateway.findings.of(self.tenant)
        findings = sorted((finding.kind, finding.subject, finding.count, finding.tenant) for finding in found)
        self.seen += [agents, breakers, findings, sorted(told), {span.tenant for span in spans}]

    async def _serve(self) -> None:
        while True:
            invoked = await self.bank.next()
            params = invoked.params
            self.seen.append((params.caller, params.task_type, params.key, params.business_key, params.attempt))
            await self._answer(invoked, params.payload["do"])

    async def _answer(self, invoked: Invoked, deed: str) -> None:
        if deed == "nested":
            same = {name: getattr(invoked.params, name) for name in ("payload", "effect", "token")}
            again = await self.bank.call("bank", invoked.params.task_type, invoked.params.business_key, **same)
            self.seen.append((again.code, "" if again.error is None else again.error.detail))
            self.bank.answer(invoked, "nested")
        elif deed in SAYS:
            self.bank.answer(invoked, **SAYS[deed])
        elif deed != "hang":
            self.bank.answer(invoked, f"done by {self.tenant}")


async def story(steps: list[tuple[str, str]], *, only: str | None = None) -> dict[str, list[Any]]:
    """What each tenant saw of these steps; `only`: as if the other had never been there."""
    async with gate(settings=SETTINGS) as platform:
        teams = {tenant: Team(platform, tenant) for tenant in TENANTS if only in (None, tenant)}
        for team in teams.values():
            await team.__aenter__()
        for tenant, deed in steps:
            began = asyncio.get_running_loop().time()
            if tenant in teams:
                await teams[tenant].do(deed)
            await asyncio.sleep(began + STEP_S - asyncio.get_running_loop().time())
        for team in teams.values():
            await team.__aexit__()
        return {tenant: team.seen for tenant, team in teams.items()}


def seen(steps: list[tuple[str, str]], *, only: str | None = None) -> dict[str, list[Any]]:
    """The story, played."""
    found: dict[str, list[Any]] = {}

    async def played() -> None:
        found.update(await story(steps, only=only))

    play(played, seconds=len(steps) * STEP_S * 2)
    return found


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(TENANTS), st.sampled_from(DEEDS)), min_size=2, max_size=10))
def test_what_a_tenant_sees_does_not_depend_on_the_other(steps: list[tuple[str, str]]) -> None:
    """I6: same agents, processes, callers, call ids, keys and traces; alone or together, a tenant sees the same."""
    both = seen(steps)
    for tenant in TENANTS:
        assert both[tenant] == seen(steps, only=tenant)[tenant]
        assert repr(SEPARATOR)[1:-1] not in repr(both[tenant])


@settings(max_examples=30)
@given(st.lists(st.sampled_from(DEEDS), min_size=1, max_size=6))
def test_every_tenant_is_served_alike(deeds: list[str]) -> None:
    """I6: another tenant meets the same rules, in the same words, as the default one."""
    texts = set()
    for tenant in TENANTS:
        found = seen([(tenant, deed) for deed in deeds], only=tenant)
        texts.add(repr(found[tenant]).replace(tenant, "some tenant"))
    assert len(texts) == 1


def test_a_restarted_gate_finds_what_each_tenant_was_running() -> None:
    """D1, I6: both run the same key in processes of the same name when the gate dies; each goes on with its own."""

    async def restarted() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            teams = [Team(platform, tenant) for tenant in TENANTS]
            for team in teams:
                team.shop.connect()
                team.bank.connect()
                team.shop.call("bank", "pay", "order_1", {"n": 1}, timeout_ms=30_000).add_done_callback(lambda _: None)
            units = [await team.bank.next() for team in teams]
            for team in teams:
                team.bank.fall_silent()
                team.shop.fall_silent()
        async with gate(store, seed=2) as platform:
            for team, unit in zip(teams, units, strict=True):
                team.platform = team.shop.platform = team.bank.platform = platform
                team.shop.connect()
                queued = team.shop.read("bank")
                repeat = team.shop.call("bank", "pay", "order_1", {"n": 1}, timeout_ms=30_000)
                await asyncio.sleep(1)
                assert not queued.done()  # its bank is expected, whatever the bank of the other does
                team.bank.connect(units=(team.bank.running(unit),))
                team.bank.answer(unit, f"paid by {team.tenant}")
                assert (await repeat).value == f"paid by {team.tenant}"
                team.bank.answer(await team.bank.next(), "read")
                assert (await queued).value == "read"
            assert platform.gateway.counters.rejoined_units == len(TENANTS)
            agents = {(record.key.tenant, record.agent) for record in (await store.dump()).records}
            assert agents == {(tenant, "bank") for tenant in TENANTS}

    play(restarted)


def test_a_unit_token_is_worth_nothing_to_another_tenant() -> None:
    """I6: whoever has got hold of a unit token of another tenant learns nothing of whose it is."""

    async def stolen() -> None:
        async with gate(settings=SETTINGS) as platform:
            ours, theirs = (Team(platform, tenant) for tenant in TENANTS)
            for team in (ours, theirs):
                team.shop.connect()
                team.bank.connect()
            theirs.shop.call("bank", "pay", "order_1").add_done_callback(lambda _: None)
            token = (await theirs.bank.next()).params.token
            refused = await ours.bank.call("bank", "look", "", effect="read", token=token)
            assert refused.error is not None
            assert (refused.code, refused.error.detail.endswith("is closed")) == ("lease_lost", True)

    play(stolen)
