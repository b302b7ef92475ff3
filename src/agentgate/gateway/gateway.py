"""The gateway: every interaction passes here, and this is where to begin reading.

The path of a call: a process connects (`session`, `link`, `peers`), its `call` is read and attributed (`entry`), walks
down the stages (`pipeline`, `stages/`), runs as a unit in a process of the target (`units`), and its answer comes back
through the link, settles the ledger, and frees what was taken. Repeats share a flight (`flights`); what was running
when a connection or the gate was lost comes back through `rejoin`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from agentgate.gateway.awaiting import Awaiting
from agentgate.gateway.checks import Checks
from agentgate.gateway.counters import Counters
from agentgate.gateway.degraded import Degraded
from agentgate.gateway.entry import SPAN_ID_BYTES, TRACE_ID_BYTES, Entry
from agentgate.gateway.flights import Flights
from agentgate.gateway.front import Front
from agentgate.gateway.gateway_options import GatewayOptions
from agentgate.gateway.http_agents import HttpAgents
from agentgate.gateway.http_dispatch import HttpDispatch
from agentgate.gateway.instances import Instances
from agentgate.gateway.known_calls import KnownCalls
from agentgate.gateway.leaving import Leaving
from agentgate.gateway.ledger import Ledger
from agentgate.gateway.link import LinkService
from agentgate.gateway.locks import LockService
from agentgate.gateway.parts import Parts
from agentgate.gateway.passage import Passage
from agentgate.gateway.peers import Peers
from agentgate.gateway.pipeline import Pipeline
from agentgate.gateway.policies import Policies
from agentgate.gateway.reach import Reach
from agentgate.gateway.registrations import Registrations
from agentgate.gateway.rejoin import Rejoin
from agentgate.gateway.request_ids import RequestIds
from agentgate.gateway.resting import Resting
from agentgate.gateway.schemas import Schemas
from agentgate.gateway.session import Session
from agentgate.gateway.signals import Signals
from agentgate.gateway.stages.quota import as_counted
from agentgate.gateway.switch import Switch
from agentgate.gateway.units import Units
from agentgate.gateway.waits import UnitWaits
from agentgate.gateway.watching import Watching
from agentgate.model import NEIGHBOUR, Call, Identity, Outcome
from agentgate.runtime.service import Service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentgate.core.quota import Standing
    from agentgate.core.slots import SlotTicket
    from agentgate.ports.clock import Chance, Clock
    from agentgate.ports.http import HttpClient
    from agentgate.ports.routes import Routes
    from agentgate.ports.store import Lifetime, Store
    from agentgate.ports.trace import SpanSink
    from agentgate.runtime.reporter import Reporter

ID_PREFIX_BYTES: Final = 5
WATCH_S: Final = 1.0


class Gateway(Service):
    """One gate. Entering it restores what was running; leaving it stops everything and leaves the records open."""

    def __init__(  # noqa: PLR0913 - the ports
        self,
        options: GatewayOptions,
        *,
        clock: Clock,
        chance: Chance,
        store: Store,
        routes: Routes,
        spans: SpanSink,
        findings: Reporter,
        lifetime: Lifetime,
        http: HttpClient | None = None,
    ) -> None:
        super().__init__()
        self.options = options
        self.counters = Counters()
        self._clock = clock
        self._chance = chance
        self._routes = routes
        self.findings = findings
        policies = self.policies = Policies(options, chance, lifetime, routes)
        self.ledger = Ledger(store, clock, options.name, lifetime.epoch)
        self.flights = Flights(options.calls.flights_max)
        self.peers = Peers(clock, options.calls, findings)
        self.parkings = policies.parkings(clock)
        self._reach = Reach(self.peers, policies.tokens, clock, self.counters)
        self.units = self._make_units()
        self.resting = Resting(self.units, policies.slots, self.parkings["slot"], clock)
        self.watching = self._make_watching() if options.mechanisms.get("watchdog") != "off" else None
        self.waits = self._make_waits()
        self._leaving = Leaving(policies.patience, findings, clock)
        self._registrations = Registrations(
            policies.admission, routes=routes, units=self.units, clock=clock, counters=self.counters
        )
        schemas = Schemas()
        self.http_agents = self._reach.http = self._make_http_agents(http, schemas)
        self._id_prefix = f"{lifetime.epoch:x}{chance.token_hex(ID_PREFIX_BYTES)}"
        self._ids = 0
        self.pipeline = Pipeline(self._parts(spans, schemas))
        self._entry = self._make_entry()
        self._lock_service = self._make_lock_service()
        self._rejoin = Rejoin(
            units=self.units,
            flights=self.flights,
            slots=policies.slots,
            tokens=policies.tokens,
            ledger=self.ledger,
            routes=routes,
            clock=clock,
            counters=self.counters,
            options=options.calls,
        )
        self.signals = self._make_signals()
        self.awaiting = Awaiting(self.signals, self.waits, clock)
        self._link = self._make_link(lifetime.epoch, schemas)
        self._reach.dispatch = self._make_http_dispatch(schemas)
        self.front = self._make_front()
        self.known_calls = KnownCalls(self.flights, self.ledger, clock)
        self.peers.on_drain = routes.drain
        self.switch = Switch(routes, policies.slots, self.parkings["slot"], clock)
        routes.listen(Instances(policies.slots, self.parkings["slot"], self.units, self.peers, self.http_agents, clock))

    async def call(self, call: Call) -> Outcome:
        """Take a call that begins inside the gate; what it leaves open (ids, trace, deadline) is filled in."""
        now = self._clock.now()
        filled = replace(
            call,
            id=call.id or self._new_id("c"),
            user=call.user or call.caller,
            received_at=now,
            deadline=call.deadline or now + self.options.calls.root_deadline_s,
            trace_id=call.trace_id or self._chance.token_hex(TRACE_ID_BYTES),
            span_id=call.span_id or self._chance.token_hex(SPAN_ID_BYTES),
        )
        return await self.run(Passage(filled, self._clock.wall(), last_instance=call.avoid))

    def run(self, passage: Passage) -> Awaitable[Outcome]:
        """Walk a passage down the path."""
        return self.pipeline.run(passage)

    def stop_taking(self) -> None:
        """Begin nothing new: only what units call that run already is taken from now on."""
        self._link.is_stopping = True
        self.front.is_stopping = True

    def quota_of(self, call: Call) -> Standing | None:
        """How the quota stands that calls like this one are nearest to; None: they have none that counts units."""
        if not self.policies.quotas.in_use:
            return None
        return self.policies.quotas.nearest(as_counted(call, self.policies.quotas, self._routes), self._clock.now())

    def connect(
        self, send: Callable[[bytes], None], close: Callable[[str], None], identity: Identity = NEIGHBOUR
    ) -> Session:
        """A new connection of the link, of whoever has shown this identity; `Session` says what the shell has to do."""
        return Session(self._link, send, close, identity)

    async def _start(self) -> None:
        await self.ledger.__aenter__()
        now = self._clock.now()
        until = now + self.options.calls.recovery_s
        routes = [route for route in self._routes.snapshot().routes if route.instances]
        for route in routes:
            self.policies.slots.expect(route.qualified, until, now, route.instances)
        linked = (name for route in routes for name in route.instances if name not in route.endpoints)
        self._lock_service.await_holders(linked, until)
        await self._rejoin.restore()
        self.http_agents.restore(self._routes.snapshot())
        self._spawn(self._watch())
        self._spawn(self._watch_http_agents())

    async def _stop(self) -> None:
        self._rejoin.close()
        self._lock_service.close()
        self.peers.close()
        self.http_agents.close()
        self.units.close()
        self.signals.close()
        await asyncio.sleep(0)  # a call that has just come takes its first step, so that it leaves a span
        await self._cancel()
        for parking in self.parkings.values():
            parking.close()
        await self.ledger.__aexit__(None, None, None)

    def _make_units(self) -> Units:
        return Units(
            release=self._release_slot,
            overstay=self._overstay_slot,
            send_stop=self._reach.send_stop,
            zombies_found=self._reach.zombies_found,
            guard=self.policies.guard,
            timeouts=self.policies.timeouts,
            ledger=self.ledger,
            clock=self._clock,
            counters=self.counters,
            options=self.options.calls,
            answers_early=self.options.mechanisms.get("idempotency") == "observe",
        )

    def _make_entry(self) -> Entry:
        return Entry(
            clock=self._clock,
            chance=self._chance,
            routes=self._routes,
            guard=self.policies.guard,
            tokens=self.policies.tokens,
            units=self.units,
            locks=self.policies.locks,
            options=self.options.calls,
            findings=self.findings,
        )

    def _make_waits(self) -> UnitWaits:
        return UnitWaits(
            self.policies.graph,
            mode=self.options.mechanisms.get("wait_graph", "enforce"),
            units=self.units,
            slots=self.policies.slots,
            resting=self.resting,
            watching=self.watching,
            routes=self._routes,
            clock=self._clock,
            findings=self.findings,
        )

    def _make_watching(self) -> Watching:
        return Watching(
            self.policies.graph,
            self.options,
            units=self.units,
            reach=self._reach,
            degraded=Degraded(self._routes, self._clock, call=self.call, new_id=self._new_id),
            clock=self._clock,
            counters=self.counters,
            findings=self.findings,
            spawn=self._task,
        )

    def _make_http_agents(self, http: HttpClient | None, schemas: Schemas) -> HttpAgents:
        return HttpAgents(
            http,
            routes=self._routes,
            peers=self.peers,
            registrations=self._registrations,
            schemas=schemas,
            clock=self._clock,
            findings=self.findings,
            options=self.options.agents,
            instances_max=self.options.calls.peers_max,
            open_factor=self.options.slots.open_factor,
        )

    def _make_http_dispatch(self, schemas: Schemas) -> HttpDispatch:
        return HttpDispatch(
            self.http_agents,
            units=self.units,
            routes=self._routes,
            schemas=schemas,
            clock=self._clock,
            counters=self.counters,
            options=self.options.agents,
            payload_options=self.options.payload,
        )

    def _parts(self, spans: SpanSink, schemas: Schemas) -> Parts:
        options = self.options
        checks = Checks(
            ledger=self.ledger,
            routes=self._routes,
            clock=self._clock,
            counters=self.counters,
            options=options.calls,
            call=self.call,
            new_id=self._new_id,
        )
        return Parts(
            clock=self._clock,
            chance=self._chance,
            routes=self._routes,
            spans=spans,
            findings=self.findings,
            modes=options.mechanisms,
            options=options.calls,
            counters=self.counters,
            policies=self.policies,
            ledger=self.ledger,
            flights=self.flights,
            units=self.units,
            waits=self.waits,
            checks=checks,
            schemas=schemas,
            parkings=self.parkings,
            watches_backlog=options.breaker.backlog is not None,
            attempts_max=1 if options.mechanisms.get("retry") == "off" else options.retry.attempts_max,
            invoke=self._reach.invoke,
            new_id=self._new_id,
        )

    def _make_link(self, epoch: int, schemas: Schemas) -> LinkService:
        return LinkService(
            gateway_name=self.options.name,
            gateway_epoch=epoch,
            run=self.run,
            spawn=self._task,
            peers=self.peers,
            http_agents=self.http_agents,
            registrations=self._registrations,
            units=self.units,
            watching=self.watching,
            rejoin=self._rejoin,
            entry=self._entry,
            locks=self._lock_service,
            ledger=self.ledger,
            directory=self._routes,
            schemas=schemas,
            signals=self.signals,
            awaiting=self.awaiting,
            request_ids=RequestIds(self.policies.locks, self.signals.book, self.awaiting),
            counters=self.counters,
            left=self._leaving,
            options=self.options.calls,
            payload_options=self.options.payload,
        )

    def _make_lock_service(self) -> LockService:
        return LockService(
            self.policies.locks,
            entry=self._entry,
            guard=self.policies.guard,
            tokens=self.policies.tokens,
            units=self.units,
            waits=self.waits,
            peers=self.peers,
            clock=self._clock,
            counters=self.counters,
        )

    def _make_signals(self) -> Signals:
        return Signals(
            self.options,
            peers=self.peers,
            units=self.units,
            guard=self.policies.guard,
            tokens=self.policies.tokens,
            rate=self.policies.rate,
            clock=self._clock,
            chance=self._chance,
            counters=self.counters,
        )

    def _make_front(self) -> Front:
        return Front(
            run=self.run,
            spawn=self._task,
            new_id=self._new_id,
            entry=self._entry,
            guard=self.policies.guard,
            tokens=self.policies.tokens,
            routes=self._routes,
            counters=self.counters,
            left=self._leaving,
            options=self.options.calls,
        )

    def _release_slot(self, ticket: SlotTicket, outcome: Outcome) -> None:
        self.policies.slots.settle(ticket, outcome, self._clock.now())
        self.parkings["slot"].pump()

    def _overstay_slot(self, ticket: SlotTicket) -> None:
        self.policies.slots.overstay(ticket, self._clock.now())
        self.parkings["slot"].pump()

    def _new_id(self, kind: str) -> str:
        """A globally unique id: of this start of this gate, and counted."""
        self._ids += 1
        return f"{kind}{self._id_prefix}{self._ids:x}"

    async def _watch(self) -> None:
        """What only time brings: a breaker's trial that never came back, a client that has gone silent."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.policies.breakers.tick(self._clock.now())
            self.peers.end_silent(self.options.calls.silent_s)

    async def _watch_http_agents(self) -> None:
        """Signs of life of instances that do not give any by themselves; several within the time of a silence."""
        while True:
            await asyncio.sleep(min(WATCH_S, self.options.silent_s / 3))
            self.http_agents.tick()
