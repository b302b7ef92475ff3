"""Units at HTTP agents in time: given up, late, overstaying, failing at one instance; nothing stays held."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace

import pytest

from agentgate import CallFailed, Gate
from agentgate.core.breaker import BreakerOptions
from agentgate.core.watchdog import WatchdogOptions
from agentgate.gateway.options import CallOptions
from tests.integration.http_agents import (
    QUICK,
    called,
    failing,
    hang,
    heads,
    held,
    nothing_held,
    quick_gate,
    register,
    registered,
    task_type_of,
)
from tests.integration.real_gate import RunningGate
from tests.integration.realtime import realtime
from tests.integration.wild_server import Behaviour, Visit, answering, ok, wild_server


def slow(task_type: str, gate_opens: asyncio.Event) -> Behaviour:
    """Answer this task type when it is allowed, everything else at once."""

    async def behave(visit: Visit) -> None:
        while True:
            request = await visit.request()
            if task_type_of(request) == task_type:
                await gate_opens.wait()
            await visit.say(ok(b'"answered"'))

    return behave


@realtime
async def test_a_read_that_is_given_up_loses_its_connection() -> None:
    """B7, B14: at its deadline a read is told to stop, which for HTTP is the end of its connection."""
    async with wild_server(hang) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        error = await failing(shop, "look", read=True, timeout=0.3)
        assert (error.code, error.sent) == ("deadline_exceeded", True)
        await nothing_held(gate)
        await server.all_ended()


@realtime
async def test_a_repeatable_write_that_is_cut_runs_elsewhere() -> None:
    """C4, B5: at its attempt's limit its connection is closed, and another instance gives the one answer."""
    skill = {"task_type": "mark", "repeatable": True, "timeout_s": 0.3}
    async with wild_server(hang) as bad, wild_server(answering(ok(b"1"))) as good, quick_gate() as gate:
        for instance, server in (("i1", bad), ("i2", good)):
            await register(gate, server, instance=instance, skills=[skill])
        async with Gate(gate.url, name="shop") as shop:
            assert [await shop.call("stock", "mark", f"o{number}", 1) for number in range(2)] == [1, 1]
        assert len(bad.requests) >= 1
        await nothing_held(gate)
        await bad.all_ended()


@realtime
async def test_a_caller_that_leaves_ends_its_read() -> None:
    """DESIGN 12.3: nobody waits for an unkeyed call any more: the agent sees its connection end."""
    async with wild_server(hang) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        reading = asyncio.ensure_future(shop.call("stock", "look", "", 1, effect="read"))
        await server.asked.wait()
        reading.cancel()
        await nothing_held(gate)
        await server.all_ended()


@realtime
async def test_the_late_answer_to_a_write_settles_its_key() -> None:
    """C4: a write is not cut at its deadline: its caller is told, its answer is kept for whoever asks again."""
    opens = asyncio.Event()
    async with wild_server(slow("sell", opens)) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        error = await failing(shop, "sell", timeout=0.3)
        assert (error.code, error.sent) == ("deadline_exceeded", True)
        opens.set()
        await nothing_held(gate)
        assert await shop.call("stock", "sell", "o1", {"n": 1}) == "answered"
        assert len(server.requests) == 1


@realtime
async def test_a_write_is_not_listened_to_for_ever() -> None:
    """B14: so long after its deadline the connection is closed, and nobody can tell what became of the write."""
    settings = replace(QUICK, agents=replace(QUICK.agents, late_s=0.2))
    async with wild_server(hang) as server, quick_gate(settings) as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        assert (await failing(shop, "sell", timeout=0.3)).code == "deadline_exceeded"
        await nothing_held(gate)
        await server.all_ended()
        assert (await failing(shop, "sell")).code == "outcome_unknown"


@realtime
async def test_an_instance_full_of_writes_that_do_not_end_gets_nothing_new() -> None:
    """4.1: as many units that overstay as it has places: it drains; when they have ended it may register again."""
    opens = asyncio.Event()
    settings = replace(QUICK, calls=replace(QUICK.calls, stop_grace_s=0.1))
    async with wild_server(slow("sell", opens)) as server, quick_gate(settings) as gate:
        await registered(gate, server, concurrency=2)
        async with Gate(gate.url, name="shop") as shop:
            for number in range(2):
                assert (await failing(shop, "sell", f"o{number}", timeout=0.2)).code == "deadline_exceeded"
            [agent] = gate.platform.directory.agents()
            await gate.until(lambda: gate.platform.directory.agents()[0].instances[0].state == "draining")
            refused = await register(gate, server, concurrency=2)
            assert (refused.status, refused.json["code"]) == (503, "overloaded")
            opens.set()
            await nothing_held(gate)
            await gate.until(lambda: gate.platform.directory.agents() == [])
            await registered(gate, server, concurrency=2)
            assert await shop.call("stock", "sell", "o0", {"n": 1}) == "answered"
            assert len(server.requests) == 2
        assert agent.agent == "stock"


def asking_itself(gate: RunningGate) -> Behaviour:
    """To sell it has to look, which it asks its own agent for."""

    async def behave(visit: Visit) -> None:
        while True:
            request = await visit.request()
            if task_type_of(request) == "sell":
                token = heads(request)["agentgate-unit-token"]
                body = {"target": "stock", "task_type": "look", "effect": "read", "timeout_ms": 500}
                answer = await gate.post("/v1/calls", body, agentgate_unit_token=token)
                await visit.say(ok(json.dumps(answer.status).encode()))
            else:
                await visit.say(ok())

    return behave


@realtime
async def test_a_write_that_hangs_is_given_up_by_its_time_alone() -> None:
    """D7: nobody can ask an HTTP agent how its unit is; three times its time-out, and its caller has the state."""
    opens = asyncio.Event()
    quick = replace(QUICK, watchdog=WatchdogOptions(look_s=0.05), calls=CallOptions(stop_grace_s=0.1))
    async with (
        wild_server(slow("sell", opens)) as server,
        quick_gate(quick) as gate,
        Gate(gate.url, name="shop") as shop,
    ):
        await registered(gate, server, skills=[{"task_type": "sell", "timeout_s": 0.2}])
        error = await failing(shop, "sell")
        assert (error.code, error.sent) == ("needs_human", True)
        assert (await failing(shop, "sell")).code == "in_progress"
        opens.set()
        await nothing_held(gate)
        assert await shop.call("stock", "sell", "o1", {"n": 1}) == "answered"


@pytest.mark.parametrize(("rests", "status"), [(True, 200), (False, 409)])
@realtime
async def test_a_unit_at_an_http_agent_rests_if_its_skill_says_so(rests: bool, status: int) -> None:
    """DESIGN 4.3: nobody knows what an HTTP agent holds while it waits; its unit keeps its slot unless it says so.

    D3: a unit that keeps its agent's only slot and calls its agent would wait for ever, and is told so at once.
    """
    skills = [{"task_type": "sell", "rests": rests}, {"task_type": "look", "effect": "read"}]
    async with quick_gate() as gate, wild_server(asking_itself(gate)) as server, Gate(gate.url, name="shop") as shop:
        await registered(gate, server, concurrency=1, skills=skills)
        assert await called(shop) == status
        await nothing_held(gate)


# --- many instances


@realtime
async def test_one_instance_of_three_that_fails_is_not_felt() -> None:
    """B2: three HTTP instances, one answers 500 at once: ≥ 99 % succeed, and the breaker stays closed."""
    settings = replace(QUICK, breaker=BreakerOptions())
    bad = answering(ok(b"", status="500 No"))
    states: set[str] = set()

    async def steady(visit: Visit) -> None:
        while True:
            await visit.request()
            await asyncio.sleep(0.005)
            await visit.say(ok(b"1"))

    async with (
        wild_server(steady) as one,
        wild_server(bad) as two,
        wild_server(steady) as three,
        quick_gate(settings) as gate,
        Gate(gate.url, name="shop") as shop,
    ):
        await registered(gate, one, two, three)
        clock = gate.platform.clock

        async def buyer() -> int:
            good = 0
            for _ in range(25):
                with contextlib.suppress(CallFailed):
                    good += await shop.call("stock", "look", "", 1, effect="read") == 1
                states.add(gate.platform.gateway.policies.breakers.state("stock", "look", clock.now()))
            return good

        async with asyncio.TaskGroup() as group:
            buyers = [group.create_task(buyer()) for _ in range(16)]
        assert sum(task.result() for task in buyers) >= 0.99 * 16 * 25
        assert states == {"closed"}
        assert 3 <= len(two.requests) <= 40
        await nothing_held(gate)


@realtime
async def test_a_gate_that_stops_closes_every_connection() -> None:
    """A6: requests whose answers would get lost are waited for, for a while; then every connection ends."""
    async with wild_server(hang) as server:
        async with quick_gate() as gate, Gate(gate.url, name="shop") as shop:
            await registered(gate, server)
            with pytest.raises(CallFailed):
                await shop.call("stock", "sell", "o1", 1, timeout=0.2)
            assert held(gate)[2] == 1
        await server.all_ended()
