"""AgentGate as a user starts it: `agentgate serve`, SQLite, every policy on its default, and one HTTP agent."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from bench import http_wire, messages, processes
from bench.http_wire import NUMBER, SENDER
from bench.peers import LOOPBACK, Place, Target

AGENT: Final = "desk"
INSTANCE: Final = f"/v1/agents/{AGENT}/instances/{AGENT}.1"
CALLS: Final = "/v1/calls"
RENEW_S: Final = 15.0  # a registration lasts 60 s


class AgentGate:
    """The gate in front of one agent. Each connection is a caller of its own, below its default rate."""

    name = "agentgate"
    note = (
        "agentgate: every policy on its default, no limit raised, a caller to each connection;"
        " agentgate_keyed: writes with a unique key each, stored in SQLite with synchronous=FULL"
    )

    def missing(self) -> str:
        """Nothing."""
        return ""

    @contextlib.contextmanager
    def running(self, place: Place) -> Iterator[dict[str, Target]]:
        """With the upstream registered as its agent."""
        with processes.gate(place.folder) as gate, _registered(gate.port, place.upstream_port):
            read = _call(place.payload, task_type=messages.READ, effect="read")
            write = _call(place.payload, task_type=messages.WRITE, business_key=NUMBER.decode())
            processes.ask(gate.port, read)
            processes.ask(gate.port, write)
            yield {
                self.name: Target(port=gate.port, request=read, pid=gate.pid),
                f"{self.name}_keyed": Target(port=gate.port, request=write, pid=gate.pid, is_steady=False),
            }


@contextlib.contextmanager
def _registered(port: int, upstream_port: int) -> Iterator[None]:
    """The upstream as an agent, whose registration is renewed as long as this lasts."""
    card = messages.card(AGENT)
    endpoint = f"http://{LOOPBACK}:{upstream_port}"
    body = {"endpoint": endpoint, "concurrency": card.concurrency, "skills": card.skills}
    registration = http_wire.request("PUT", INSTANCE, msgspec.json.encode(body))
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.wait(RENEW_S):
            processes.ask(port, registration)

    processes.ask(port, registration)
    renewal = threading.Thread(target=renew)
    renewal.start()
    try:
        yield
    finally:
        is_over.set()
        renewal.join()


def _call(payload: bytes, **fields: Any) -> bytes:
    body = {"target": AGENT, "caller": f"sender-{SENDER.decode()}", "payload": msgspec.Raw(payload), **fields}
    return http_wire.request("POST", CALLS, msgspec.json.encode(body))
