"""Who may say hello as whom: on the link a token is held against every name that a process gives itself."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import pytest

from agentgate.adapters.memory import MemoryStore
from agentgate.app import Platform
from agentgate.gateway.session import Session
from agentgate.model import NEIGHBOUR, NOBODY, OBSERVE, OPERATE, SUBMIT, Identity
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def token_of(name: str, *scopes: str, tenant: str = "default") -> Identity:
    return Identity(tenant=tenant, name=name, scopes=frozenset(scopes), token="0")


def peer_of(platform: Platform, name: str, identity: Identity, *, agent: bool = False, instance: str = "") -> WirePeer:
    return WirePeer(platform, name, skills=SKILLS if agent else (), identity=identity, instance=instance)


async def refusal(peer: WirePeer, **hello: Any) -> tuple[str, str]:
    """The code and the sentence with which its hello is refused; empty for a welcome."""
    peer.connect(**hello)
    await asyncio.sleep(0.1)
    answer = next(message for message in peer.messages if message.get("id") == "hello")
    peer.fall_silent()
    if "error" not in answer:
        return "", ""
    assert peer.closed_because
    return answer["error"]["data"]["code"], answer["error"]["message"]


@pytest.mark.parametrize(
    ("name", "agent", "identity", "code", "sentence"),
    [
        ("shop", False, NEIGHBOUR, "", ""),
        ("bank", True, NEIGHBOUR, "", ""),
        ("shop", False, token_of("shop", SUBMIT), "", ""),
        ("bank", False, token_of("shop", "agent:bank"), "", ""),
        ("bank", True, token_of("shop", "agent:bank"), "", ""),
        ("bank", True, token_of("bank", "agent:bank"), "", ""),
        ("shop", False, NOBODY, "forbidden", "this token is of None"),
        ("shop", False, token_of("shop", OBSERVE, OPERATE), "forbidden", "lacks the scope submit, or agent:shop"),
        (
            "desk",
            False,
            token_of("shop", SUBMIT),
            "forbidden",
            "of 'shop': speak as that, or use a token with the scope",
        ),
        ("bank", True, token_of("bank", SUBMIT), "forbidden", "this token lacks the scope agent:bank"),
        ("bank", True, token_of("bank", "agent:till"), "forbidden", "lacks the scope submit, or agent:bank"),
        ("bank", True, token_of("bank", "agent:*", SUBMIT), "forbidden", "this token lacks the scope agent:bank"),
    ],
)
def test_a_process_speaks_only_as_its_token_allows(
    name: str, agent: bool, identity: Identity, code: str, sentence: str
) -> None:
    """I6: an agent needs the scope of its name, a caller its own name; a refusal is final and names what is missing."""

    async def story() -> None:
        async with gate() as platform:
            found = await refusal(peer_of(platform, name, identity, agent=agent))
            assert found[0] == code
            assert sentence in found[1]
            assert (len(platform.gateway.peers) == 1) == (code == "")

    play(story)


def test_a_caller_without_a_name_is_called_as_its_token() -> None:
    """I6: a hello without a name gets the token's, in keys too, and is told so; without tokens it is `client`."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            for identity, name in ((token_of("shop", SUBMIT), "shop"), (NEIGHBOUR, "client")):
                peer = peer_of(platform, "", identity, instance=f"of {name}").connect()
                await asyncio.sleep(0.1)
                [welcome] = [message["result"] for message in peer.messages if message.get("id") == "hello"]
                assert welcome["agent"] == name
                call = peer.call("bank", "pay", "o1")
                invoked = await bank.next()
                assert (invoked.params.caller, invoked.params.key) == (name, f"{name}:pay:o1:run")
                bank.answer(invoked, "paid")
                assert (await call).value == "paid"

    play(story)


BANK = token_of("bank", "agent:bank")


@pytest.mark.parametrize("state", ["connected", "away", "restarted"])
@pytest.mark.parametrize(
    ("thief", "code"),
    [
        (token_of("bank", SUBMIT), "forbidden"),  # called as the agent is, and still only a caller
        (token_of("till", "agent:till"), "forbidden"),  # another agent that knows the instance
        (token_of("bank", "agent:bank", tenant="blue"), ""),  # to whom it is just a name of its own
        (BANK, ""),  # the agent itself
    ],
)
def test_nobody_takes_over_the_process_of_another(state: str, thief: Identity, code: str) -> None:
    """I6, D1: a known instance, its running units and its answers are its own agent's, whoever else knows its name."""

    async def story() -> None:
        store = MemoryStore()
        async with contextlib.AsyncExitStack() as stack:
            platform = await stack.enter_async_context(gate(store))
            bank = peer_of(platform, "bank", BANK, agent=True, instance="i1").connect()
            shop = WirePeer(platform, "shop").connect()
            call = shop.call("bank", "pay", "o1", timeout_ms=60_000)
            unit = await bank.next()
            if state != "connected":
                bank.leave()
            if state == "restarted":
                shop.leave()
                await stack.aclose()
                platform = bank.platform = shop.platform = await stack.enter_async_context(gate(store, seed=2))
                shop.connect()
                call = shop.call("bank", "pay", "o1", timeout_ms=60_000)
            name = thief.name or ""
            imposter = peer_of(platform, name, thief, agent=name == "till", instance="i1")
            stolen = imposter.finished(unit, "stolen")
            assert (await refusal(imposter, units=(stolen,)))[0] == code
            if thief is not BANK:
                await asyncio.sleep(0.5)
                assert not call.done()
                if state == "connected":
                    bank.answer(unit, "paid")
                else:
                    bank.connect(units=(bank.finished(unit, "paid"),))
            assert (await call).value == ("stolen" if thief is BANK else "paid")

    play(story)


def test_nothing_comes_before_the_hello() -> None:
    """I6: of every method of the link, and of those that there are not, the first message has to be the hello."""

    async def story() -> None:
        async with gate() as platform:
            for method in {*Session.METHODS, "unheard"} - {"hello"}:
                reasons: list[str] = []
                session = platform.gateway.connect(lambda _data: None, reasons.append)
                session.on_frame(msgspec.json.encode({"jsonrpc": "2.0", "id": "1", "method": method, "params": {}}))
                assert reasons == ["the first message has to be `hello`, as a request"]

    play(story)
