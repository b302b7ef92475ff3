"""Handlers that block or hang, in a real process beside a real gate."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from agentgate import Gate
from tests.e2e.live_gate import AGENTS, LiveGate, agents

BLOCKED_S = 10.0


def test_a_blocked_loop_is_told_apart_from_a_handler_that_hangs(tmp_path: Path) -> None:
    """D7, F82: 10 s of a blocked loop are reported, cost nobody an answer, and are not taken for a death."""

    async def story(gate: LiveGate) -> None:
        async with Gate(gate.url, name="shop") as shop:
            began = time.monotonic()
            blocked = asyncio.ensure_future(shop.call("hanging", "block", "o1", BLOCKED_S))
            await asyncio.sleep(0.5)
            behind = asyncio.ensure_future(shop.call("hanging", "quick", "o2", 2, timeout=25))
            assert await blocked == "blocked"
            assert await behind == 2
            assert time.monotonic() - began >= BLOCKED_S
        kinds = {finding["kind"]: finding for finding in gate.get("/v1/findings")["findings"]}
        assert set(kinds) == {"blocked_loop"}, "a stuck one would have been given up after 9 s"
        assert kinds["blocked_loop"]["subject"] == "hanging"
        assert kinds["blocked_loop"]["evidence"]["lag_s"] > 1
        assert gate.metrics()["lost_units"] == 0

    with LiveGate(tmp_path) as gate, agents(gate, [AGENTS / "hanging.py"]):
        asyncio.run(story(gate))


def test_a_handler_that_hangs_is_answered_for(tmp_path: Path) -> None:
    """D7, F6: its degraded handler's answer comes within some seconds, and the chain says that it is one."""

    async def story(gate: LiveGate) -> None:
        async with Gate(gate.url, name="shop") as shop:
            assert await shop.call("hanging", "hang", "o1", 7) == "later 7"
            assert await shop.call("hanging", "quick", "o2", 2) == 2
        await asyncio.sleep(0.2)
        spans = gate.get("/v1/chains/o1")["spans"]
        calls = {span["task_type"]: span.get("degraded", False) for span in spans if span["kind"] == "call"}
        assert calls == {"hang": True, "degraded:hang": False}
        [finding] = gate.get("/v1/findings")["findings"]
        assert (finding["kind"], finding["evidence"]["health"]) == ("stuck_unit", "running")

    with LiveGate(tmp_path) as gate, agents(gate, [AGENTS / "hanging.py"]):
        asyncio.run(story(gate))
