"""The gateway: every interaction passes here, and this is where to begin reading.

The path of a call: a process connects (`session`, `link`, `peers`), its `call` is read and attributed (`entry`), walks
down the stages (`pipeline`, `stages/`), runs as a unit in a process of the target (`units`), and its answer comes back
through the link, settles the ledger, and frees what was taken. Repeats share a flight (`flights`); what was running
when a connection or the gate was lost comes back through `rejoin`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from agentgate.core.backoff import Backoff, BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.core.breakers import Breakers
from agentgate.core.budget import BudgetOptions, RetryBudget
from agentgate.core.chain import ChainGuard, ChainOptions
from agentgate.core.cool_down import CoolDown, CoolDownOptions
from agentgate.core.keys import shown_key
from agentgate.core.payload import PayloadOptions
from agentgate.core.policy import Mode
from agentgate.core.quota import QuotaOptions, Quotas
from agentgate.core.rate import RateLimiter, RateOptions
from agentgate.core.slots import SlotOptions, Slots
from agentgate.core.timeout import TimeoutOptions, Timeouts
from agentgate.core.traceparent import format_traceparent
from agentgate.core.unit_token import UnitClaim, UnitTokens
from agentgate.gateway.checks import Checks
from agentgate.gateway.counters import Counters
from agentgate.gateway.entry import SPAN_ID_BYTES, TRACE_ID_BYTES, Entry
from agentgate.gateway.flights import Flights
from agentgate.gateway.instances import Instances
from agentgate.gateway.ledger import Ledger
from agentgate.gateway.link import LinkService
from agentgate.gateway.options import CallOptions
from agentgate.gateway.parking import Parking
from agentgate.gateway.parts import Parts
from agentgate.gateway.passage import Passage
from agentgate.gateway.peers import Peers
from agentgate.gateway.pipeline import Pipeline
from agentgate.gateway.rejoin import Rejoin
from agentgate.gateway.schemas import Schemas
from agentgate.gateway.session import Session
from agentgate.gateway.units import Unit, Units
from agentgate.model import Call, Outcome
from agentgate.model.link import InvokeParams
from agentgate.runtime.service import Service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentgate.core.slots import SlotTicket
    from agentgate.ports.clock import Chance, Clock
    from agentgate.ports.routes import Routes
    from agentgate.ports.store import Lifetime, Store
    from agentgate.ports.trace import SpanSink
    from agentgate.runtime.reporter import Reporter

ID_PREFIX_BYTES: Final = 5
WATCH_S: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    """The options of every policy on the path, and how each mechanism is switched."""

    name: str = "gate"
    mechanisms: Mapping[str, Mode]
    rate: RateOptions
    quota: QuotaOptions
    chain: ChainOptions
    payload: PayloadOptions
    cool_down: CoolDownOptions
    slots: SlotOptions
    breaker: BreakerOptions
    timeout: TimeoutOptions
    retry: BackoffOptions
    budget: BudgetOptions
    calls: CallOptions


class Gateway(Service):
    """One gate. Entering it restores what was running; leaving it stops everything and leaves the records open."""

    def __init__(  # noqa: PLR0913 - its ports, handed in by name
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
        self.peers = Peers(clock, options.calls)
        self.parkings = {
            "rate": Parking(self.rate, clock),
            "chain_guard": Parking(self.guard, clock),
            "cool_down": Parking(self.cool_down, clock),
            "slot": Parking(self.slots, clock),
        }
        self.units = Units(
            release=self._release_slot,
            overstay=self._overstay_slot,
            send_stop=self.peers.send_stop,
            zombies_found=self.peers.zombies_found,
            guard=self.guard,
            timeouts=self.timeouts,
            ledger=self.ledger,
            clock=clock,
            counters=self.counters,
            options=options.calls,
        )
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
        self.peers.on_drain = routes.drain
        routes.listen(Instances(self.slots, self.parkings["slot"], self.units, self.peers, clock))

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

    def connect(
        self, send: Callable[[bytes], None], close: Callable[[str], None], *, tenant: str = "default"
    ) -> Session:
        """A new connection of the link; see `Session` for what the shell has to do."""
        return Session(self._link, send, close, tenant)

    async def _start(self) -> None:
        await self.ledger.__aenter__()
        now = self._clock.now()
        for route in self._routes.snapshot().routes:
            self.slots.expect(route.agent, now + self.options.calls.recovery_s, now)
        await self._rejoin.restore()
        self._spawn(self._watch())

    async def _stop(self) -> None:
        self._rejoin.close()
        self.peers.close()
        self.units.close()
        await asyncio.sleep(0)  # a call that has just come takes its first step, so that it leaves a span
        await self._cancel()
        for parking in self.parkings.values():
            parking.close()
        await self.ledger.__aexit__(None, None, None)

    def _make_policies(self, options: GatewayOptions, chance: Chance, lifetime: Lifetime) -> None:
        draw = chance.draw
        self.rate = RateLimiter(options.rate)
        self.quotas = Quotas(options.quota)
        self.guard = ChainGuard(options.chain)
        self.tokens = UnitTokens(lifetime.secret.encode())
        self.cool_down = CoolDown(options.cool_down)
        self.slots = Slots(options.slots)
        self.breakers = Breakers(options.breaker, draw)
        fixed = options.mechanisms.get("dynamic_timeout") == "off"
        self.timeouts = Timeouts(options.timeout, draw, fixed=fixed)
        self.backoff = Backoff(options.retry)
        self.budget = RetryBudget(options.budget)

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
            guard=self.guard,
            tokens=self.tokens,
            ledger=self.ledger,
            flights=self.flights,
            units=self.units,
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
            invoke=self._invoke,
            new_id=self._new_id,
        )

    def _make_link(self, epoch: int, schemas: Schemas) -> LinkService:
        return LinkService(
            gateway_name=self.options.name,
            gateway_epoch=epoch,
            run=self.run,
            spawn=self._task,
            peers=self.peers,
            units=self.units,
            rejoin=self._rejoin,
            entry=self._entry,
            ledger=self.ledger,
            directory=self._routes,
            schemas=schemas,
            counters=self.counters,
            options=self.options.calls,
            payload_options=self.options.payload,
        )

    def _invoke(self, unit: Unit) -> bool:
        """Hand a unit to its process, with a token that says what it is part of."""
        call = unit.call
        self.counters.messages += 1
        token = self.tokens.issue(
            UnitClaim(unit.id, call.parent_unit, call.trace_id, call.depth, unit.epoch, call.user)
        )
        params = InvokeParams(
            task_type=call.task_type,
            caller=call.caller,
            payload=call.payload,
            business_key=call.business_key,
            action=call.action,
            effect=call.effect,
            key=shown_key(call) if call.keyed else "",
            remaining_ms=max(0, int((call.deadline - self._clock.now()) * 1000)),
            token=token,
            traceparent=format_traceparent(call.trace_id, unit.span_id),
            attempt=call.attempt,
        )
        return self.peers.invoke(unit, params)

    def _release_slot(self, ticket: SlotTicket, outcome: Outcome) -> None:
        self.slots.settle(ticket, outcome, self._clock.now())
        self.parkings["slot"].pump()

    def _overstay_slot(self, ticket: SlotTicket) -> None:
        self.slots.overstay(ticket, self._clock.now())
        self.parkings["slot"].pump()

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
