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

from agentgate.core.abuse import Abuse
from agentgate.core.admission import Admission
from agentgate.core.backoff import Backoff
from agentgate.core.breakers import Breakers
from agentgate.core.budget import RetryBudget
from agentgate.core.chain import ChainGuard
from agentgate.core.cool_down import CoolDown
from agentgate.core.duplicates import Duplicates
from agentgate.core.patience import Patience
from agentgate.core.quota import Quotas, Standing
from agentgate.core.rate import RateLimiter
from agentgate.core.slots import Slots
from agentgate.core.timeout import Timeouts
from agentgate.core.unit_token import UnitTokens
from agentgate.core.waits import Waits
from agentgate.gateway.checks import Checks
from agentgate.gateway.counters import Counters
from agentgate.gateway.entry import SPAN_ID_BYTES, TRACE_ID_BYTES, Entry
from agentgate.gateway.flights import Flights
from agentgate.gateway.front import Front
from agentgate.gateway.gateway_options import GatewayOptions
from agentgate.gateway.http_agents import HttpAgents
from agentgate.gateway.http_dispatch import HttpDispatch
from agentgate.gateway.instances import Instances
from agentgate.gateway.invoke import Invoke
from agentgate.gateway.known_calls import KnownCalls
from agentgate.gateway.ledger import Ledger
from agentgate.gateway.link import LinkService
from agentgate.gateway.parking import Parking
from agentgate.gateway.parts import Parts
from agentgate.gateway.passage import Passage
from agentgate.gateway.peers import Peers
from agentgate.gateway.pipeline import Pipeline
from agentgate.gateway.reach import Reach
from agentgate.gateway.registrations import Registrations
from agentgate.gateway.rejoin import Rejoin
from agentgate.gateway.resting import Resting
from agentgate.gateway.schemas import Schemas
from agentgate.gateway.session import Session
from agentgate.gateway.stages.quota import as_counted
from agentgate.gateway.switch import Switch
from agentgate.gateway.units import Units
from agentgate.gateway.waits import CallWaits
from agentgate.model import NEIGHBOUR, Call, Identity, Outcome
from agentgate.runtime.service import Service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
        self._make_policies(options, chance, lifetime)
        self.ledger = Ledger(store, clock, options.name, lifetime.epoch)
        self.flights = Flights(options.calls.flights_max)
        self.peers = Peers(clock, options.calls, findings)
        self.parkings = {
            "rate": Parking(self.rate, clock),
            "chain_guard": Parking(self.guard, clock),
            "cool_down": Parking(self.cool_down, clock),
            "slot": Parking(self.slots, clock),
        }
        self._reach = Reach(self.peers)
        self.units = self._make_units()
        self.resting = Resting(self.units, self.slots, self.parkings["slot"], clock)
        self.waits = self._make_waits()
        self._registrations = Registrations(
            self.admission, routes=routes, units=self.units, clock=clock, counters=self.counters
        )
        self.http_agents = self._reach.http = self._make_http_agents(http)
        self._id_prefix = f"{lifetime.epoch:x}{chance.token_hex(ID_PREFIX_BYTES)}"
        self._ids = 0
        schemas = Schemas()
        self.pipeline = Pipeline(self._parts(spans, schemas))
        self._entry = Entry(
            clock=clock,
            chance=chance,
            routes=routes,
            guard=self.guard,
            tokens=self.tokens,
            units=self.units,
            options=options.calls,
        )
        self._rejoin = Rejoin(
            units=self.units,
            flights=self.flights,
            slots=self.slots,
            tokens=self.tokens,
            ledger=self.ledger,
            routes=routes,
            clock=clock,
            counters=self.counters,
            options=options.calls,
        )
        self._link = self._make_link(lifetime.epoch, schemas)
        self._reach.dispatch = self._make_http_dispatch(schemas)
        self.front = self._make_front()
        self.known_calls = KnownCalls(self.flights, self.ledger, clock)
        self.peers.on_drain = routes.drain
        self.switch = Switch(routes, self.slots, self.parkings["slot"], clock)
        routes.listen(Instances(self.slots, self.parkings["slot"], self.units, self.peers, self.http_agents, clock))

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
        return await self.run(Passage(filled, self._clock.wall()))

    def run(self, passage: Passage) -> Awaitable[Outcome]:
        """Walk a passage down the path."""
        return self.pipeline.run(passage)

    def stop_taking(self) -> None:
        """Begin nothing new: only what units call that run already is taken from now on."""
        self._link.is_stopping = True
        self.front.is_stopping = True

    def quota_of(self, call: Call) -> Standing | None:
        """How the quota stands that calls like this one are nearest to; None: they have none that counts units."""
        if not self.quotas.in_use:
            return None
        return self.quotas.nearest(as_counted(call, self.quotas, self._routes), self._clock.now())

    def connect(
        self, send: Callable[[bytes], None], close: Callable[[str], None], identity: Identity = NEIGHBOUR
    ) -> Session:
        """A new connection of the link, of whoever has shown this identity; `Session` says what the shell has to do."""
        return Session(self._link, send, close, identity)

    async def _start(self) -> None:
        await self.ledger.__aenter__()
        now = self._clock.now()
        for route in (route for route in self._routes.snapshot().routes if route.instances):
            self.slots.expect(route.qualified, now + self.options.calls.recovery_s, now)
        await self._rejoin.restore()
        self.http_agents.restore(self._routes.snapshot())
        self._spawn(self._watch())
        self._spawn(self._watch_http_agents())

    async def _stop(self) -> None:
        self._rejoin.close()
        self.peers.close()
        self.http_agents.close()
        self.units.close()
        await asyncio.sleep(0)  # a call that has just come takes its first step, so that it leaves a span
        await self._cancel()
        for parking in self.parkings.values():
            parking.close()
        await self.ledger.__aexit__(None, None, None)

    def _make_policies(self, options: GatewayOptions, chance: Chance, lifetime: Lifetime) -> None:
        draw = chance.draw
        self.rate = RateLimiter(options.rate)
        self.abuse = Abuse(options.abuse)
        self.duplicates = Duplicates(options.duplicates)
        self.patience = Patience()
        self.quotas = Quotas(options.quota, self._routes.quotas)
        self.guard = ChainGuard(options.chain)
        self.graph = Waits()
        self.tokens = UnitTokens(lifetime.secret.encode())
        self.cool_down = CoolDown(options.cool_down)
        self.slots = Slots(options.slots, observes=options.mechanisms.get("concurrency") == "observe")
        self.breakers = Breakers(options.breaker, draw)
        fixed = options.mechanisms.get("dynamic_timeout") == "off"
        self.timeouts = Timeouts(options.timeout, draw, fixed=fixed)
        self.backoff = Backoff(options.retry)
        self.budget = RetryBudget(options.budget)
        self.admission = Admission(options.admission, draw)

    def _make_units(self) -> Units:
        return Units(
            release=self._release_slot,
            overstay=self._overstay_slot,
            send_stop=self._reach.send_stop,
            zombies_found=self._reach.zombies_found,
            guard=self.guard,
            graph=self.graph,
            timeouts=self.timeouts,
            ledger=self.ledger,
            clock=self._clock,
            counters=self.counters,
            options=self.options.calls,
            answers_early=self.options.mechanisms.get("idempotency") == "observe",
        )

    def _make_waits(self) -> CallWaits:
        return CallWaits(
            self.graph,
            mode=self.options.mechanisms.get("wait_graph", "enforce"),
            units=self.units,
            slots=self.slots,
            resting=self.resting,
            routes=self._routes,
            clock=self._clock,
            findings=self.findings,
        )

    def _make_http_agents(self, http: HttpClient | None) -> HttpAgents:
        return HttpAgents(
            http,
            routes=self._routes,
            peers=self.peers,
            registrations=self._registrations,
            clock=self._clock,
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
            rate=self.rate,
            quotas=self.quotas,
            abuse=self.abuse,
            duplicates=self.duplicates,
            guard=self.guard,
            tokens=self.tokens,
            ledger=self.ledger,
            flights=self.flights,
            units=self.units,
            waits=self.waits,
            checks=checks,
            schemas=schemas,
            cool_down=self.cool_down,
            slots=self.slots,
            parkings=self.parkings,
            breakers=self.breakers,
            watches_backlog=options.breaker.backlog is not None,
            timeouts=self.timeouts,
            backoff=self.backoff,
            attempts_max=1 if options.mechanisms.get("retry") == "off" else options.retry.attempts_max,
            budget=self.budget,
            invoke=Invoke(self.tokens, self._reach, self._clock, self.counters),
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
            rejoin=self._rejoin,
            entry=self._entry,
            ledger=self.ledger,
            directory=self._routes,
            schemas=schemas,
            counters=self.counters,
            left=self._caller_left,
            options=self.options.calls,
            payload_options=self.options.payload,
        )

    def _make_front(self) -> Front:
        return Front(
            run=self.run,
            spawn=self._task,
            new_id=self._new_id,
            entry=self._entry,
            guard=self.guard,
            tokens=self.tokens,
            routes=self._routes,
            counters=self.counters,
            left=self._caller_left,
            options=self.options.calls,
        )

    def _release_slot(self, ticket: SlotTicket, outcome: Outcome) -> None:
        self.slots.settle(ticket, outcome, self._clock.now())
        self.parkings["slot"].pump()

    def _overstay_slot(self, ticket: SlotTicket) -> None:
        self.slots.overstay(ticket, self._clock.now())
        self.parkings["slot"].pump()

    def _caller_left(self, call: Call) -> None:
        found = self.patience.left(call, self._clock.now())
        if found is not None:
            self.findings.report(
                "caller_limit_below_gate",
                f"{call.caller} > {call.target}.{call.task_type}",
                tenant=call.tenant,
                leaves_after_s=round(found.after_s, 3),
                gate_s=round(found.gate_s, 3),
            )

    def _new_id(self, kind: str) -> str:
        """A globally unique id: of this start of this gate, and counted."""
        self._ids += 1
        return f"{kind}{self._id_prefix}{self._ids:x}"

    async def _watch(self) -> None:
        """What only time brings: a breaker's trial that never came back, a client that has gone silent."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.breakers.tick(self._clock.now())
            self.peers.end_silent(self.options.calls.silent_s)

    async def _watch_http_agents(self) -> None:
        """Signs of life of instances that do not give any by themselves; several within the time of a silence."""
        while True:
            await asyncio.sleep(min(WATCH_S, self.options.silent_s / 3))
            self.http_agents.tick()
