"""The composition root: `build(settings, ports)` puts the platform together.

The only module that names concrete adapters, in `system_ports`. Everything else gets its ports handed in, so that a
test or a simulation builds the very same platform on a clock, a store and connections of its own.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from agentgate.adapters.clock import SystemChance, SystemClock
from agentgate.adapters.http import SystemHttp
from agentgate.adapters.memory import MemorySpanStore, MemoryStore
from agentgate.adapters.sqlite import SpanFilesOptions, SqliteSpanStore, SqliteStore, read_spans
from agentgate.control.deadlocks import DeadlockTimer
from agentgate.control.retention import Retention
from agentgate.control.watchdog import WatchdogTimer
from agentgate.directory.directory import Directory
from agentgate.errors import ConfigError
from agentgate.gateway.gateway import Gateway
from agentgate.gateway.gateway_options import GatewayOptions
from agentgate.runtime.process_runner import ProcessRunner
from agentgate.runtime.reporter import Reporter
from agentgate.runtime.span_buffer import SpanBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentgate.config import Settings
    from agentgate.model import Span
    from agentgate.ports.clock import Chance, Clock
    from agentgate.ports.http import HttpClient
    from agentgate.ports.store import SpanStore, Store

SECRET_BYTES: Final = 32
# Beside the store's file: spans are many, expendable, and deleted by the day.
SPANS_SUFFIX: Final = ".spans"


@dataclass(frozen=True, kw_only=True)
class Ports:
    """The outside world, as the platform sees it."""

    clock: Clock
    chance: Chance
    store: Store
    spans: SpanStore
    http: HttpClient | None = None  # None: no agent is reached by HTTP


class SteadyWall:
    """A clock whose wall time is never below what the store has already written down."""

    def __init__(self, clock: Clock, floor: float) -> None:
        self._clock = clock
        self._offset = max(0.0, floor - clock.wall())
        self.now = clock.now  # asked some twenty times a call

    def wall(self) -> float:
        """Seconds since the epoch, ahead of the real ones if the real clock was set back."""
        return self._clock.wall() + self._offset


class Platform:
    """Everything that runs in one gateway process. Entering it means started, leaving it means fully stopped."""

    gateway: Gateway
    directory: Directory
    spans: SpanBuffer
    clock: Clock

    def __init__(self, settings: Settings, ports: Ports) -> None:
        self.settings = settings
        self.ports = ports
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        settings, ports = self.settings, self.ports
        await ports.store.open()
        stack.push_async_callback(ports.store.close)
        secret = ports.chance.token_hex(SECRET_BYTES)
        lifetime = await ports.store.begin(settings.gateway_name, secret, ports.clock.wall())
        self.clock = SteadyWall(ports.clock, lifetime.now)
        await ports.spans.open()
        stack.push_async_callback(ports.spans.close)
        self.spans = await stack.enter_async_context(SpanBuffer(ports.spans, self.clock))
        findings = Reporter(self.clock)
        self.directory = await stack.enter_async_context(
            Directory(
                self.clock,
                settings.directory,
                presence=settings.presence,
                cards=settings.cards,
                save=ports.store.save_routes,
                load=ports.store.load_routes,
                findings=findings,
            )
        )
        if ports.http is not None:
            await stack.enter_async_context(ports.http)
        self.gateway = await stack.enter_async_context(
            Gateway(
                gateway_options(settings),
                clock=self.clock,
                chance=ports.chance,
                store=ports.store,
                routes=self.directory,
                spans=self.spans,
                findings=findings,
                lifetime=lifetime,
                http=ports.http,
            )
        )
        await self._start_timers(stack)
        await stack.enter_async_context(Retention(ports.store, ports.spans, self.clock, settings.retention))

    async def _start_timers(self, stack: contextlib.AsyncExitStack) -> None:
        """The looks at all that waits, and at all that is late."""
        mode = self.settings.mechanisms.get("wait_graph", "enforce")
        if mode != "off":
            deadlocks = DeadlockTimer(
                self.gateway.policies.graph,
                self.clock,
                self.settings.wait_graph,
                found=partial(self.gateway.waits.found, "confirmed"),
                totals=self.gateway.waits.deadlocks,
                observes=mode == "observe",
            )
            await stack.enter_async_context(deadlocks)
        if self.gateway.watching is not None:
            watchdog = WatchdogTimer(self.gateway.watching.look, self.settings.watchdog)
            await stack.enter_async_context(watchdog)


def system_ports(settings: Settings) -> Ports:
    """The real outside world: the machine's clock and chance, and the store that the settings name."""
    path = settings.store.path
    if path is None:
        store: Store = MemoryStore(settings.ledger)
        spans: SpanStore = MemorySpanStore()
    else:
        store = SqliteStore(path, ProcessRunner(), settings.ledger)
        days = SpanFilesOptions(keep_days=settings.store.span_days)
        spans = SqliteSpanStore(path.with_name(path.name + SPANS_SUFFIX), ProcessRunner(), days)
    http = SystemHttp(settings.http, settings.payload.bytes_max)
    return Ports(clock=SystemClock(), chance=SystemChance(), store=store, spans=spans, http=http)


def recorded_spans(settings: Settings, last_s: float, limit: int) -> Iterator[list[Span]]:
    """The newest spans of the last seconds, some at a time, from the files of a gate that may run meanwhile.

    Raises `ConfigError` when the settings name no files, `StoreBroke` when those cannot be read.
    """
    path = settings.store.path
    if path is None:
        raise ConfigError(
            "store: memory keeps no spans in files; name the store of the gate, as in sqlite:agentgate.sqlite"
        )
    return read_spans(path.with_name(path.name + SPANS_SUFFIX), SystemClock().wall() - last_s, limit)


def gateway_options(settings: Settings) -> GatewayOptions:
    """The gateway's part of the settings."""
    return GatewayOptions(
        name=settings.gateway_name,
        mechanisms=settings.mechanisms,
        rate=settings.rate,
        quota=settings.quota,
        abuse=settings.abuse,
        duplicates=settings.duplicates,
        chain=settings.chain,
        payload=settings.payload,
        cool_down=settings.cool_down,
        slots=settings.slots,
        locks=settings.locks,
        breaker=settings.breaker,
        timeout=settings.timeout,
        retry=settings.retry,
        budget=settings.budget,
        calls=settings.calls,
        signals=settings.signals,
        agents=settings.agents,
        silent_s=settings.presence.silent_s,
        admission=settings.admission,
        watchdog=settings.watchdog,
    )


def build(settings: Settings, ports: Ports) -> Platform:
    """The platform on these ports; enter it to start."""
    return Platform(settings, ports)
