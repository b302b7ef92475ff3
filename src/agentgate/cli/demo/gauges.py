"""Reads the running gate over HTTP, as anybody may: `/metrics`, `/v1/agents`, `/v1/breakers`, `/v1/waits`."""

from __future__ import annotations

import asyncio
import http.client
import json
from dataclasses import dataclass
from typing import Any, Final, get_args

from prometheus_client.parser import text_string_to_metric_families

from agentgate.core.deadlocks import How

REQUEST_S: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What the gate has counted since its start; `agents` are those it knows."""

    agents: int = 0
    calls: int = 0
    messages: int = 0
    retries: int = 0
    retries_saved: int = 0
    replays: int = 0
    joins: int = 0
    checks: int = 0
    breaker_opened: int = 0
    malformed: int = 0
    deadlocks_found: int = 0  # refused at entry, found by the timer, or either in observe mode
    deadlocks_resolved: int = 0  # of them: every wait ended before its deadline
    longest_wait_ms: int = 0  # of the waits that have ended


class Gauges:
    """The gate that listens on this port of the loopback."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def is_ready(self) -> bool:
        """Whether it takes calls."""
        try:
            await self._get("/readyz")
        except (OSError, http.client.HTTPException):
            return False
        return True

    async def instances(self) -> dict[str, str]:
        """The agents that are connected, each with an instance of it."""
        agents = json.loads(await self._get("/v1/agents"))["agents"]
        return {
            agent["agent"]: instance["instance"]
            for agent in agents
            for instance in agent["instances"]
            if instance["state"] == "connected"
        }

    async def breakers(self) -> list[dict[str, Any]]:
        """Every breaker that has seen a call."""
        listed: list[dict[str, Any]] = json.loads(await self._get("/v1/breakers"))["breakers"]
        return listed

    async def findings(self) -> list[dict[str, Any]]:
        """What it has noticed."""
        listed: list[dict[str, Any]] = json.loads(await self._get("/v1/findings"))["findings"]
        return listed

    async def wait_graph(self) -> str:
        """The mode in which it looks for circles of waits."""
        mode: str = json.loads(await self._get("/v1/waits?limit=1"))["mode"]
        return mode

    async def counts(self) -> Counts:
        """The totals, now."""
        samples = {
            (sample.name.removeprefix("agentgate_"), *sample.labels.values()): sample.value
            for family in text_string_to_metric_families((await self._get("/metrics")).decode())
            for sample in family.samples
        }

        def total(name: str, *label: str) -> int:
            return int(samples.get((f"{name}_total", *label), 0))

        return Counts(
            agents=int(samples.get(("agents",), 0)),
            calls=total("calls"),
            messages=total("messages"),
            retries=total("retries"),
            retries_saved=total("retries_saved"),
            replays=total("replays"),
            joins=total("joins"),
            checks=total("checks"),
            breaker_opened=total("breaker_openings"),
            malformed=total("outcomes", "malformed_output"),
            deadlocks_found=sum(total("deadlocks_found", how) for how in get_args(How)),
            deadlocks_resolved=total("deadlocks_ended", "resolved"),
            longest_wait_ms=round(samples.get(("longest_wait_seconds",), 0) * 1000),
        )

    async def _get(self, path: str) -> bytes:
        return await asyncio.to_thread(self._get_now, path)

    def _get_now(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=REQUEST_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise http.client.HTTPException(f"{path} answers {answer.status}")
        return body
