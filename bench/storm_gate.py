"""The gate of a registration storm: a real one on a real socket, with a directory that can be made slow.

A slow directory is one whose registrations each take the gate's only thread for some milliseconds, as behind a store
or a catalogue that is slow. Every registration that is begun is noted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from multiprocessing.connection import Connection

import structlog
import uvloop
from msgspec import Struct

from agentgate.cli.gate import open_gate
from agentgate.config import Settings, StoreOptions
from agentgate.core.admission import AdmissionOptions
from agentgate.model import Card, Endpoint
from agentgate.server.options import ServerOptions


class GatePlan(Struct, frozen=True, kw_only=True):
    """How the gate of one storm is set up; `hello_per_s` None is no limit."""

    registration_ms: float
    hello_per_s: float | None
    hello_burst: int


class Heard(Struct, frozen=True, kw_only=True):
    """When hellos of agents were taken, in seconds of the machine's clock, and how many were sent away."""

    taken: list[float]
    refused: int


def main(plan: GatePlan, parent: Connection) -> None:
    """Tell the parent the port; when it answers, stop and send it what was heard."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    uvloop.run(_serve(plan, parent))


async def _serve(plan: GatePlan, parent: Connection) -> None:
    settings = Settings(
        server=ServerOptions(port=0, drain_s=0.0),
        store=StoreOptions(url="memory"),
        admission=AdmissionOptions(hello_per_s=plan.hello_per_s, hello_burst=plan.hello_burst),
    )
    async with open_gate(settings) as (platform, server):
        directory = platform.directory
        taken: list[float] = []
        register = directory.hello

        def hello(tenant: str, card: Card, instance: str, endpoint: Endpoint | None = None) -> None:
            taken.append(time.monotonic())
            time.sleep(plan.registration_ms / 1000)
            register(tenant, card, instance, endpoint)

        directory.hello = hello  # type: ignore[method-assign]  # what is measured is noted here
        over = asyncio.Event()
        asyncio.get_running_loop().add_reader(parent.fileno(), over.set)
        parent.send(server.port)
        await over.wait()
        refused = platform.gateway.counters.registrations_put_off
        parent.send(Heard(taken=taken, refused=refused))
