"""`Gate`: a client that connects, calls, and says plainly when there is no gate."""

from __future__ import annotations

import asyncio

import pytest

from agentgate import CallFailed, Gate
from agentgate.errors import ConfigError, LinkDown
from agentgate.model import Outcome
from tests.integration.sdk_gate import Order, Receipt, ScriptedGate, virtual


@virtual
async def test_a_client_calls() -> None:
    """EXPERIENCE: `Gate.call` sends a hello without a card, then the call, and returns the value."""
    gate = ScriptedGate()
    async with Gate(name="shop", connect=gate.connect) as client:
        hello = await gate.hello()
        assert hello["agent"] == "shop"
        assert "card" not in hello
        waiting = asyncio.get_running_loop().create_task(
            client.call("order_agent", "confirm", "o1", Order("o1"), timeout=5, returns=Receipt)
        )
        call = await gate.call()
        assert call["params"]["timeout_ms"] == 5000
        assert "token" not in call["params"]
        gate.settle(call, Outcome(value={"order": "o1", "shelf": "s"}))
        assert await waiting == Receipt("o1", "s")
    assert gate.wire.closed_by_sdk


@virtual
async def test_no_gate_is_said_in_one_sentence() -> None:
    """Newcomers never meet a hang: the error names the address and the command to type."""
    gate = ScriptedGate()
    gate.listens = False
    with pytest.raises(LinkDown) as error:
        async with Gate("http://127.0.0.1:7070", connect=gate.connect, connect_timeout=2):
            pass
    text = "no gate answers at http://127.0.0.1:7070 (nobody listens); start one with `agentgate serve`"
    assert str(error.value).startswith(text)
    assert asyncio.get_running_loop().time() == pytest.approx(2)


@virtual
async def test_a_refused_client_hears_why() -> None:
    """A final refusal is raised at once with the gate's sentence; another one when the patience ends."""
    gate = ScriptedGate()
    gate.refusal = {"code": -32602, "message": "no such name", "data": {"code": "forbidden"}}
    with pytest.raises(LinkDown, match="no such name"):
        async with Gate(connect=gate.connect):
            pass
    assert asyncio.get_running_loop().time() < 1
    gate.refusal = {"code": -32602, "message": "too many"}
    with pytest.raises(LinkDown, match="does not take this process: too many"):
        async with Gate(connect=gate.connect):
            pass


@virtual
async def test_a_gate_that_comes_late_is_waited_for() -> None:
    """Entering tries again until the patience ends."""
    gate = ScriptedGate()
    gate.listens = False

    async def starts() -> None:
        await asyncio.sleep(1)
        gate.listens = True

    starting = asyncio.get_running_loop().create_task(starts())
    async with Gate(connect=gate.connect):
        await gate.hello()
    await starting


@virtual
async def test_leaving_ends_what_waits() -> None:
    """A call that is under way when the client leaves fails with `cancelled`, and says that it was sent."""
    gate = ScriptedGate()
    async with Gate(connect=gate.connect) as client:
        await gate.hello()
        waiting = asyncio.get_running_loop().create_task(client.call("b", "t", "k"))
        await gate.call()
    with pytest.raises(CallFailed) as error:
        await waiting
    assert (error.value.code, error.value.sent) == ("cancelled", True)
    with pytest.raises(LinkDown, match="is not connected: use `async with"):
        await client.call("b", "t", "k")


@virtual
async def test_leaving_does_not_wait_for_a_dead_peer() -> None:
    """A gate that does not answer the good-bye does not hold the client up."""
    gate = ScriptedGate()
    async with Gate(connect=gate.connect) as client:
        await gate.hello()
        gate.wire.stalled.clear()
        waiting = asyncio.get_running_loop().create_task(client.call("b", "t", "k"))
        await asyncio.sleep(0)
    assert asyncio.get_running_loop().time() <= 7
    with pytest.raises(CallFailed):
        await waiting


def test_names_and_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """EXPERIENCE: the name is said, else `AGENTGATE_NAME`, else `client`; the address likewise."""
    monkeypatch.delenv("AGENTGATE_NAME", raising=False)
    monkeypatch.delenv("AGENTGATE_URL", raising=False)
    assert Gate().name == "client"
    monkeypatch.setenv("AGENTGATE_NAME", "shop")
    assert (Gate().name, Gate(name="other").name) == ("shop", "other")
    monkeypatch.setenv("AGENTGATE_URL", "nonsense")
    with pytest.raises(ConfigError, match="not 'nonsense'"):
        Gate()
