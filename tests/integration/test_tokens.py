"""Tokens from end to end inside one process: the SDK shows them, the gate knows tenants by them, and ends links."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentgate import Agent, CallFailed, Context, Gate
from agentgate.errors import ConfigError
from agentgate.model import OBSERVE, SUBMIT, Identity
from agentgate.sdk.greeting import LinkRefused
from agentgate.sdk.link import Link
from agentgate.sdk.websocket import websocket
from agentgate.server import doorkeeper
from agentgate.server.token_file import change
from tests.integration.real_gate import RunningGate, bearer, make_token, running_agent, running_gate
from tests.integration.realtime import realtime

TENANTS = ("default", "blue")


def stock(shelf: str) -> Agent:
    agent = Agent("stock")

    @agent.handles("reserve")
    async def reserve(sku: str, ctx: Context) -> str:
        if sku == "never":
            raise ValueError("no such thing")
        return f"{shelf} {sku}"

    return agent


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Show:
    return Show(monkeypatch)


class Show:
    """Which token this process shows from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, token: str) -> None:
        self._monkeypatch.setenv("AGENTGATE_TOKEN", token)


@contextlib.asynccontextmanager
async def agent_with(gate: RunningGate, show: Show, token: str, agent: Agent) -> AsyncIterator[Link]:
    """The agent, connected with this token."""
    show(token)
    async with running_agent(gate, agent) as link:
        await gate.until(lambda: link._is_up)  # noqa: SLF001 - of two links of the same name, this one
        yield link


@realtime
async def test_two_tenants_of_one_gate(file: Path, show: Show) -> None:
    """I6: same agent, instance, caller and key in two tenants: own answers, own listings, own chains, own breakers."""
    agents = {tenant: make_token(file, "stock", "agent:stock", tenant=tenant) for tenant in TENANTS}
    shops = {tenant: make_token(file, "shop", SUBMIT, OBSERVE, tenant=tenant) for tenant in TENANTS}
    async with (
        running_gate("sqlite:" + str(file.with_name("gate.sqlite")), tokens=str(file)) as gate,
        agent_with(gate, show, agents["default"], stock("left")),
        agent_with(gate, show, agents["blue"], stock("right")),
    ):
        for tenant, shelf in zip(TENANTS, ("left", "right"), strict=True):
            show(shops[tenant])
            async with Gate(gate.url) as shop:
                assert shop.name == "shop"
                assert await shop.call("stock", "reserve", "order_1", "A-7") == f"{shelf} A-7"
                if tenant == "blue":
                    with pytest.raises(CallFailed):
                        await shop.call("stock", "reserve", "order_2", "never")
        for tenant in TENANTS:
            mine = bearer(shops[tenant])
            [agent] = (await gate.get("/v1/agents", headers=mine)).json["agents"]
            assert (agent["agent"], agent["tenant"], agent["instances"][0]["instance"]) == ("stock", tenant, "i1")
            spans = (await gate.get("/v1/chains/order_1", headers=mine)).json["spans"]
            assert {(span.get("tenant", "default"), span["agent"]) for span in spans} == {(tenant, "stock")}
            assert {span.get("instance", "i1") for span in spans} == {"i1"}
            elsewhere = await gate.get(f"/v1/chains/{spans[0]['trace_id']}", headers=bearer(shops[other(tenant)]))
            assert elsewhere.status == 404
            counted = (await gate.get("/v1/breakers", headers=mine)).json["breakers"]
            assert {(b["agent"], b["task_type"], b["ok"], b["faults"]) for b in counted} == {
                ("stock", None, 1 + (tenant == "blue"), 0),
                ("stock", "reserve", 1, int(tenant == "blue")),
            }
        assert (await gate.get("/metrics", headers=bearer(shops["default"]))).status == 200
        refused = await gate.get("/metrics", headers=bearer(shops["blue"]))
        assert (refused.status, "of all tenants together" in refused.json["detail"]) == (403, True)


def other(tenant: str) -> str:
    return TENANTS[1 - TENANTS.index(tenant)]


@realtime
async def test_a_wrong_token_is_refused_for_good(file: Path, show: Show) -> None:
    """I6: the SDK says at once what the gate says, does not try again, and shows no part of the token."""
    token = make_token(file, "shop", OBSERVE)
    async with running_gate(tokens=str(file)) as gate:
        for shown, sentence in (
            ("", "unauthorized: there is no token: send `Authorization: Bearer TOKEN` (AGENTGATE_TOKEN)"),
            ("agt_" + "5" * 77, "unauthorized: this token is unknown, revoked or expired"),
            (token, "this token lacks the scope submit, or agent:shop"),
        ):
            show(shown)
            with pytest.raises(LinkRefused) as refused:
                async with Gate(gate.url, name="shop"):
                    pass
            assert str(refused.value).startswith(sentence)
            assert "5555" not in repr(refused.value)
            assert token not in repr(refused.value)
        assert gate.server.links.refused == 2
        show(make_token(file, "shop", SUBMIT))


@realtime
async def test_a_gate_answers_to_its_names(file: Path) -> None:
    """I6: by a name that it does not have, a gate refuses and says which setting is missing; configured, it works."""
    token = make_token(file, "shop", OBSERVE)
    for hosts, status in ((None, 403), ("gate.example.com", 200)):
        async with running_gate(tokens=str(file), hosts=hosts) as gate:
            asked = bearer(token) | {"Host": "gate.example.com:7070"}
            answer = await gate.get("/v1/agents", headers=asked)
            assert answer.status == status
            assert ("add it to server.hosts, or use an address" in answer.body.decode()) == (status == 403)
            page = asked | {"Origin": "https://evil.example"}
            assert (await gate.get("/healthz", headers=page)).status == 403
            assert (await gate.get("/v1/agents", headers=bearer(token) | {"Host": "10.1.2.3:7070"})).status == 200


@pytest.mark.parametrize("how", ["revoked", "expired"])
@realtime
async def test_a_token_that_ends_ends_its_links(
    how: str, file: Path, show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: an open link ends with its token; what it waits for fails, nobody else is disturbed, and it is not let in."""
    monkeypatch.setattr(doorkeeper, "LOOK_S", 0.05)
    agents = make_token(file, "stock", "agent:stock")
    async with running_gate(tokens=str(file)) as gate:
        door, wall = gate.server.links.doorkeeper, gate.platform.clock.wall()
        shop_token = make_token(file, "shop", SUBMIT, expires_at=wall + 3600.0)
        await gate.until(lambda: isinstance(door.admit(["localhost"], [], [f"Bearer {shop_token}"]), Identity))
        agent = Agent("stock")

        @agent.handles("reserve")
        async def reserve(sku: str, ctx: Context) -> str:
            await asyncio.sleep(30)
            return sku

        async with agent_with(gate, show, agents, agent):
            show(shop_token)
            async with Gate(gate.url) as shop:
                waiting = asyncio.get_running_loop().create_task(shop.call("stock", "reserve", "order_1", "A-7"))
                await gate.until(lambda: len(gate.platform.gateway.units) == 1)
                if how == "revoked":
                    change(file, lambda tokens: tuple(token for token in tokens if token.name != "shop"))
                else:
                    monkeypatch.setattr(door, "_wall", lambda: wall + 3600.0)
                with pytest.raises(CallFailed, match="unauthorized: this token is unknown, revoked or expired"):
                    await waiting
            assert [link.identity.name for link in gate.server.links.open if link.identity] == ["stock"]


@pytest.mark.parametrize("token", ["agt_ä", "two words", "a\x07b", "line\nbreak"])
def test_what_cannot_be_a_token_is_not_sent(token: str, show: Show) -> None:
    """I6: a value with characters that no header carries is refused before it is sent, and not shown."""
    show(token)
    with pytest.raises(ConfigError) as refused:
        websocket("http://127.0.0.1:7070")
    assert str(refused.value).startswith("AGENTGATE_TOKEN holds characters that no token has")
    assert token not in str(refused.value)


@realtime
async def test_no_log_shows_a_token(file: Path, show: Show, caplog: pytest.LogCaptureFixture) -> None:
    """I6: with every log at its lowest level, on both sides, no line holds the secret or the header's value."""
    token = make_token(file, "shop", SUBMIT)
    caplog.set_level(logging.DEBUG)
    logging.getLogger("websockets").setLevel(logging.DEBUG)
    async with running_gate(tokens=str(file)) as gate:
        show(token)
        async with Gate(gate.url) as shop:
            with pytest.raises(CallFailed):
                await shop.call("nobody", "reserve", "order_1")
            assert token not in repr(vars(shop)) + repr(vars(shop._link))  # noqa: SLF001 - what a debugger would show
        await gate.get("/v1/agents", headers=bearer(token))
    assert caplog.text
    assert token.rpartition("_")[2] not in caplog.text
    assert "Bearer agt" not in caplog.text
