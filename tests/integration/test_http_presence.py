"""How long an HTTP instance is there: renewals, probes, leaving, and a restart of the gate."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentgate import CallFailed, Gate, OutcomeUnknown
from agentgate.core.presence import PresenceOptions
from tests.integration.http_agents import (
    PATH,
    QUICK,
    SHORT,
    ask,
    called,
    hang,
    nothing_held,
    numbered,
    quick_gate,
    register,
    registered,
    state_of,
)
from tests.integration.real_gate import RunningGate
from tests.integration.realtime import realtime
from tests.integration.wild_server import Visit, ok, wild_server


@realtime
async def test_a_registration_that_is_not_renewed_ends() -> None:
    """A8: after its time an instance is away, then lost; a new registration is as good as the first."""
    async with wild_server(numbered(1)) as server, quick_gate(SHORT) as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        assert await called(shop, "o1") == 1
        await gate.until(lambda: state_of(gate) == "away")
        await gate.until(lambda: state_of(gate) == "")
        assert len(gate.platform.gateway.http_agents) == 0
        await server.all_ended()
        await registered(gate, server)
        assert await called(shop, "o2") == 1


@realtime
async def test_a_registration_that_is_renewed_holds() -> None:
    """A8: longer than its time, and longer than a silence, it stays connected; one renewed late comes back."""
    async with wild_server(numbered(1)) as server, quick_gate(SHORT) as gate:
        await registered(gate, server)
        for _ in range(8):
            await asyncio.sleep(0.2)
            assert state_of(gate) == "connected"
            await register(gate, server)
        await gate.until(lambda: state_of(gate) == "away")
        await register(gate, server)
        assert state_of(gate) == "connected"


@realtime
async def test_work_in_hand_keeps_an_instance_that_was_not_renewed() -> None:
    """C4: a write that runs when the registration ends is answered; nothing new is sent, and then it is gone."""
    opens = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.request()
        await opens.wait()
        await visit.say(ok(b'"late"'))

    async with wild_server(behave) as server, quick_gate(SHORT) as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        selling = asyncio.ensure_future(called(shop))
        await server.asked.wait()
        await gate.until(lambda: state_of(gate) == "away")
        await asyncio.sleep(3 * QUICK.presence.grace_s)
        assert state_of(gate) == "away"
        opens.set()
        assert await selling == "late"
        await gate.until(lambda: state_of(gate) == "")
        await nothing_held(gate)


@realtime
async def test_leaving_waits_for_what_is_in_hand() -> None:
    """A6: after DELETE nothing new is sent; what runs is answered, and then the instance is gone."""
    opens = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.request()
        await opens.wait()
        await visit.say(ok(b'"late"'))

    async with wild_server(behave) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        selling = asyncio.ensure_future(called(shop))
        await server.asked.wait()
        assert (await ask(gate, "DELETE", PATH)).status == 204
        assert state_of(gate) == "draining"
        again = await register(gate, server)
        assert (again.status, again.json["code"], "1 calls in hand" in again.json["detail"]) == (
            503,
            "overloaded",
            True,
        )
        with pytest.raises(CallFailed):
            await shop.call("stock", "look", "", 1, effect="read", timeout=0.2)
        opens.set()
        assert await selling == "late"
        assert state_of(gate) == ""
        assert (await ask(gate, "DELETE", PATH)).status == 404
        await registered(gate, server)


@realtime
async def test_leaving_idle_is_at_once() -> None:
    """A6: an instance with nothing in hand is gone when DELETE is answered."""
    async with wild_server(numbered(1)) as server, quick_gate() as gate:
        await registered(gate, server)
        assert (await ask(gate, "DELETE", PATH)).status == 204
        assert (state_of(gate), len(gate.platform.gateway.http_agents)) == ("", 0)


def healthy(is_well: list[bool]) -> Any:
    """A server whose probe says what the list says; everything else is answered."""

    async def behave(visit: Visit) -> None:
        while True:
            request = await visit.request()
            if not request.startswith(b"GET /alive "):
                await visit.say(ok(b"1"))
            elif is_well[0]:
                await visit.say(ok(b"", status="204 Yes"))
            else:
                await visit.hang()

    return behave


@realtime
async def test_a_probe_that_fails_makes_an_instance_silent_and_one_that_succeeds_brings_it_back() -> None:
    """A8: silent, away, lost, as a link; while the registration holds it is asked on, and comes back by itself."""
    is_well = [True]
    async with wild_server(healthy(is_well)) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server, probe="/alive")
        await asyncio.sleep(2 * QUICK.presence.silent_s)
        assert state_of(gate) == "connected"
        is_well[0] = False
        await gate.until(lambda: state_of(gate) == "away")
        await gate.until(lambda: state_of(gate) == "")
        assert (await register(gate, server, probe="/alive")).status == 200  # its word alone does not bring it back
        assert state_of(gate) == ""
        is_well[0] = True
        await gate.until(lambda: state_of(gate) == "connected")
        assert await called(shop) == 1


@realtime
async def test_units_of_an_instance_that_is_lost_end() -> None:
    """A8, C4: a hanging process whose probe fails is lost with what it runs: a write becomes unknown, at once."""

    async def behave(visit: Visit) -> None:
        request = await visit.request()
        if request.startswith(b"GET"):
            await visit.say(ok(b"", status="500 No"))
        await visit.hang()

    async with wild_server(behave) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server, probe="/alive")
        with pytest.raises(OutcomeUnknown):
            await called(shop)
        await nothing_held(gate)
        assert gate.platform.gateway.counters.lost_units == 1


@realtime
async def test_hanging_probes_do_not_make_others_silent() -> None:
    """B14: probes are bounded; an instance that waits for its turn counts as it did before."""
    settings = replace(QUICK, agents=replace(QUICK.agents, probes_max=1))
    async with wild_server(hang) as bad, wild_server(numbered(1)) as good, quick_gate(settings) as gate:
        for number in range(4):
            await register(gate, bad, instance=f"bad{number}", probe="/alive")
        await register(gate, good, instance="good", probe="/alive")
        await gate.until(lambda: all(state_of(gate, f"bad{number}") == "" for number in range(4)))
        assert state_of(gate, "good") == "connected"


# --- a restart of the gate


def store_of(folder: Path) -> Path:
    return folder / "gate.sqlite"


PATIENT = replace(QUICK, presence=PresenceOptions(), server=replace(QUICK.server, drain_s=0.1))


async def saved(gate: RunningGate) -> None:
    """The routes are in the store."""
    await asyncio.sleep(3 * QUICK.directory.save_delay_s)
    assert (await gate.platform.ports.store.load_routes()).routes


@realtime
async def test_after_a_restart_calls_go_on_without_a_renewal(tmp_path: Path) -> None:
    """4.5: the endpoint is remembered with the routes: the first call after a restart reaches the agent at once."""
    async with wild_server(numbered(1)) as server:
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate:
            await registered(gate, server, version="1.2")
            await saved(gate)
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate, Gate(gate.url, name="shop") as shop:
            assert state_of(gate) == "connected"
            assert await shop.call("stock", "sell", "o1", 1, timeout=2) == 1
        async with quick_gate(replace(PATIENT, agents=replace(QUICK.agents, endpoint_allow=("10.0.0.0/8",))),
                              store=store_of(tmp_path)) as gate:  # fmt: skip
            assert len(gate.platform.gateway.http_agents) == 0  # what is allowed now counts


@pytest.mark.parametrize(("task_type", "runs"), [("sell", 1), ("book", 1), ("mark", 2)])
@realtime
async def test_what_ran_when_the_gate_died_is_lost_at_once(tmp_path: Path, task_type: str, runs: int) -> None:
    """C4, 4.5: nobody can be asked about a request of the gate before: a write is unknown or asked about by its check,
    a repeatable one runs again; none of them is called "never seen", and nobody waits for the instance to come back.
    """

    async def behave(visit: Visit) -> None:
        while True:
            request = await visit.request()
            if b"POST /check:book" in request:
                await visit.say(ok(b'"it happened"'))
            elif len(server.requests) == 1:
                await visit.hang()
                return
            else:
                await visit.say(ok(b'"again"'))

    async with wild_server(behave) as server:
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate, Gate(gate.url, name="shop") as shop:
            await registered(gate, server)
            calling = asyncio.ensure_future(shop.call("stock", task_type, "o1", 1))
            await server.asked.wait()
            calling.cancel()  # its caller leaves; what is keyed goes on
            await saved(gate)
            assert len(gate.platform.gateway.units) == 1
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate, Gate(gate.url, name="shop") as shop:
            began = asyncio.get_running_loop().time()
            said = await _said(shop, task_type)
            assert said == {"sell": "outcome_unknown", "book": "it happened", "mark": "again"}[task_type]
            assert asyncio.get_running_loop().time() - began < 5.0
            assert sum(f"POST /{task_type} ".encode() in request for request in server.requests) == runs


async def _said(shop: Gate, task_type: str) -> Any:
    try:
        return await shop.call("stock", task_type, "o1", 1)
    except CallFailed as error:
        return error.code
