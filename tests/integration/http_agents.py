"""A gate whose agents are raw servers: registration over its HTTP API, settings that fit into a test."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from agentgate import CallFailed, Gate
from agentgate.adapters.http import HttpOptions, SystemHttp
from agentgate.app import system_ports
from agentgate.cli.gate import open_gate
from agentgate.config import Settings, StoreOptions
from agentgate.core.backoff import BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.core.presence import PresenceOptions
from agentgate.gateway.http_options import HttpAgentOptions
from agentgate.model import Skill
from agentgate.server.options import ServerOptions
from tests.integration.real_gate import Answer, RunningGate
from tests.integration.wild_server import Behaviour, Visit, WildServer, answering, ok

# Retries come at once, silence and grace are short; a breaker is in the way of no test but its own.
QUICK: Final = Settings(
    server=ServerOptions(port=0, drain_s=0.2),
    store=StoreOptions(url="memory"),
    retry=BackoffOptions(base_s=0.01, jitter_s=0.01),
    breaker=BreakerOptions(faults_in_a_row=1_000, outcomes_min=1_000),
    presence=PresenceOptions(beat_s=0.1, silent_s=0.6, grace_s=0.3, expected_s=10.0),
    http=HttpOptions(connect_s=1.0, idle_s=0.5, answer_s=2.0),
    agents=HttpAgentOptions(probe_s=0.1, probe_timeout_s=0.3),
)
PATH: Final = "/v1/agents/stock/instances/i1"
SHORT: Final = replace(QUICK, agents=replace(QUICK.agents, ttl_s=0.5))  # registrations end soon
SKILLS: Final = (
    Skill(task_type="look", effect="read"),
    Skill(task_type="sell"),
    Skill(task_type="mark", repeatable=True),
    Skill(task_type="book", check=True),
    Skill(task_type="check:book", effect="read"),
)


def numbered(number: int) -> Behaviour:
    """A server that answers with its number."""
    return answering(ok(str(number).encode()))


async def called(shop: Gate, key: str = "o1") -> Any:
    """What the stock agent sells, under this key."""
    return await shop.call("stock", "sell", key, 1)


class Names(SystemHttp):
    """The machine's network, with names of its own; one without an address is one whose name server is silent."""

    addresses: Mapping[str, Sequence[str]] = {}

    async def resolve(self, host: str) -> Sequence[str]:
        found = self.addresses.get(host)
        if found is None:
            raise OSError("no name server answers")
        return found


@contextlib.asynccontextmanager
async def quick_gate(
    settings: Settings = QUICK, *, store: Path | None = None, http: SystemHttp | None = None
) -> AsyncIterator[RunningGate]:
    """A gate; at its end nothing is held, whatever its agents did."""
    if store is not None:
        settings = replace(settings, store=StoreOptions(url=f"sqlite:{store}"))
    ports = system_ports(settings)
    ports = replace(ports, http=http) if http is not None else ports
    async with open_gate(settings, ports) as (platform, service):
        yield RunningGate(platform, service)


async def ask(gate: RunningGate, method: str, path: str, body: object = None) -> Answer:
    """One request to the gate's HTTP API; bytes are sent as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    return await asyncio.to_thread(_ask, gate.server.port, method, path, data)


def _ask(port: int, method: str, path: str, data: bytes | None) -> Answer:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request(method, path, data)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def card(endpoint: str, **more: Any) -> dict[str, Any]:
    """What an instance says about itself."""
    skills = [
        {"task_type": skill.task_type, "effect": skill.effect, "repeatable": skill.repeatable, "check": skill.check}
        for skill in SKILLS
    ]
    return {"endpoint": endpoint, "skills": skills} | more


async def register(
    gate: RunningGate, endpoint: str | WildServer, agent: str = "stock", instance: str = "i1", **more: Any
) -> Answer:
    """Register an instance, or renew it."""
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    return await ask(gate, "PUT", f"/v1/agents/{agent}/instances/{instance}", card(url, **more))


async def registered(gate: RunningGate, *servers: WildServer, **more: Any) -> None:
    """Register each of these as an instance."""
    for number, server in enumerate(servers, 1):
        answer = await register(gate, server, instance=f"i{number}", **more)
        assert answer.status == 200, answer.body


def held(gate: RunningGate) -> tuple[int, int, int, int]:
    """What is held: units, slots, requests to HTTP agents, keys in flight."""
    gateway = gate.platform.gateway
    return (
        len(gateway.units),
        gateway.policies.slots.outstanding("stock"),
        gateway.http_agents.running,
        len(gateway.flights),
    )


async def nothing_held(gate: RunningGate) -> None:
    """Wait until everything has been given back."""
    await gate.until(lambda: held(gate) == (0, 0, 0, 0))


def state_of(gate: RunningGate, instance: str = "i1") -> str:
    """What the directory says of an instance; empty when it knows none."""
    infos = [info for agent in gate.platform.directory.agents() for info in agent.instances]
    return next((info.state for info in infos if info.instance == instance), "")


def heads(request: bytes) -> dict[str, str]:
    """The header of a request; the request line is under the empty name."""
    first, *lines = request.split(b"\r\n\r\n")[0].decode().split("\r\n")
    return {"": first, **dict(line.split(": ", 1) for line in lines)}


def task_type_of(request: bytes) -> str:
    """Which task type a request asks for."""
    return request.split(b" ")[1].decode().rpartition("/")[2]


async def failing(shop: Gate, task_type: str, key: str = "o1", *, read: bool = False, **more: Any) -> CallFailed:
    """The error of a call that fails."""
    with pytest.raises(CallFailed) as raised:
        await shop.call("stock", task_type, key, {"n": 1}, effect="read" if read else "write", **more)
    return raised.value


async def hang(visit: Visit) -> None:
    """Take the request and say nothing."""
    await visit.request()
    await visit.hang()
