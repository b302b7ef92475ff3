"""What runs on when a connection, or the gate itself, was gone (DESIGN 4.5).

A process that comes back reports the units it still runs and the keyed answers nobody has acknowledged. Held against
what the gate knows, each unit is one of: still running (it rejoins), finished meanwhile (it is settled), never seen
(its request got lost on the way: nothing happened, the key is free). After a restart of the gate the running records
of the store stand in for its memory; their instances have a while to come back before anything is called lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from agentgate.gateway.entry import seconds_of
from agentgate.gateway.units import Unit
from agentgate.model import Call, Record, failure, logged, plain, qualified
from agentgate.model.link import Answer, UnitReport

if TYPE_CHECKING:
    from agentgate.core.slots import Slots
    from agentgate.core.unit_token import UnitTokens
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.flights import Flight, Flights
    from agentgate.gateway.ledger import Ledger
    from agentgate.gateway.options import CallOptions
    from agentgate.gateway.peers import Peer
    from agentgate.gateway.units import Units
    from agentgate.ports.clock import Clock
    from agentgate.ports.routes import Routes

log = structlog.get_logger(__name__)


class Rejoin:
    """Brings units and processes together again."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        *,
        units: Units,
        flights: Flights,
        slots: Slots,
        tokens: UnitTokens,
        ledger: Ledger,
        routes: Routes,
        clock: Clock,
        counters: Counters,
        options: CallOptions,
    ) -> None:
        self._units = units
        self._flights = flights
        self._slots = slots
        self._tokens = tokens
        self._ledger = ledger
        self._routes = routes
        self._clock = clock
        self._counters = counters
        self._options = options
        self._timer: asyncio.TimerHandle | None = None

    async def restore(self) -> None:
        """Take over what the gateway before this one was running; give it up after the recovery time."""
        records = await self._ledger.open_records()
        for record in records:
            flight = self._flights.open(record.key, record.fingerprint, None)
            for ref in record.units:
                self._remember(record, ref.unit, ref.instance, flight)
        if records:
            log.info("running_keys_restored", keys=len(records), wait_s=self._options.recovery_s)
        at = self._clock.now() + self._options.recovery_s
        self._timer = asyncio.get_running_loop().call_at(at, self._give_up)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def reconcile(
        self,
        peer: Peer,
        reports: tuple[UnitReport, ...],
        records: dict[str, Record],
        settle: Callable[[str, Answer], None],
    ) -> tuple[str, ...]:
        """Hold a process's reports against the open units; returns those that the process has to drop."""
        reported = {report.unit: report for report in reports}
        for number in sorted(report.answer.seq for report in reports if report.answer is not None):
            peer.acks.received(number)
        for unit_id, record in records.items():
            self._adopt(record, unit_id, peer)
        for unit in self._units.of_instance(peer.instance):
            report = reported.pop(unit.id, None)
            if unit.state != "claiming":
                self._compare(unit, report, settle)
        for report in reported.values():
            if report.answer is not None:
                peer.settled(report.answer.seq)
        return tuple(reported)

    def _compare(self, unit: Unit, report: UnitReport | None, settle: Callable[[str, Answer], None]) -> None:
        if report is not None and report.answer is not None:
            settle(unit.id, report.answer)
        elif unit.ended:
            return
        elif report is None:
            self._units.unsent(unit, failure("agent_lost", detail="the request never reached the agent"))
        else:
            self._goes_on(unit, report)

    def _goes_on(self, unit: Unit, report: UnitReport) -> None:
        if unit.restored:
            self._counters.rejoined_units += 1
            claim = self._tokens.read(report.token)
            deadline = self._clock.now() + seconds_of(report.remaining_ms)
            depth, user = (claim.depth, claim.user) if claim is not None else (0, "")
            unit.call = replace(unit.call, deadline=deadline, depth=depth, user=user or unit.call.user)
            self._declare(unit)
            slot = self._slots.adopt(unit.call, unit.instance, self._clock.now(), unit.slot)
            self._units.resume(unit, slot)
        elif unit.stop_kind is not None:
            self._units.send_stop(unit, unit.stop_kind, "it was told so before the connection was lost")

    def _declare(self, unit: Unit) -> None:
        """Its process is back, so what it handles is known."""
        call = unit.call
        route = self._routes.resolve(call.tenant, plain(call.agent))
        skill = route.card.skill(call.task_type) if route is not None else None
        if skill is not None:
            unit.rests, unit.promises = skill.rests, skill.promises

    def _adopt(self, record: Record, unit_id: str, peer: Peer) -> None:
        instance = peer.instance
        if (record.key.tenant, record.agent) != (peer.tenant, peer.name):
            return  # an agent speaks only as itself, whatever it reports
        if not any(ref.unit == unit_id and ref.instance == instance for ref in record.units):
            return
        flight = self._flights.get(record.key)
        if flight is None:
            flight = self._flights.open(record.key, record.fingerprint, None)
        self._remember(record, unit_id, instance, flight)

    def _remember(self, record: Record, unit_id: str, instance: str, flight: Flight) -> None:
        route = self._routes.resolve(record.key.tenant, record.agent)
        skill = route.card.skill(record.key.task_type) if route is not None else None
        # A skill that nobody has declared yet may be an exclusive one.
        exclusive = record.key.business_key if skill is None or skill.exclusive else ""
        now = self._clock.now()
        call = _call_of(record, exclusive, now + self._options.recovery_s)
        if skill is not None:
            call = replace(call, skill_timeout_s=skill.timeout_s)
        unit = Unit(unit_id, call, instance, flight)
        unit.epoch = record.epoch
        unit.sent = True
        unit.output_schema = skill.output_schema if skill is not None else None
        unit.slot = self._slots.hold(unit.call, now) if exclusive else None
        self._units.restore(unit)

    def _give_up(self) -> None:
        for unit in self._units.restored():
            instance, agent = logged(unit.instance), logged(unit.call.agent)
            log.warning("unit_lost", unit=unit.id, instance=instance, agent=agent)
            self._units.lost(unit)


def _call_of(record: Record, exclusive: str, deadline: float) -> Call:
    """As much of the call as the record knows; the process knows the rest."""
    key = record.key
    return Call(
        id="",
        target=key.target,
        task_type=key.task_type,
        business_key=key.business_key,
        action=key.action,
        payload=record.payload,
        tenant=key.tenant,
        caller=key.caller,
        user=key.caller,
        deadline=deadline,
        trace_id=record.trace_id,
        parent_unit=record.parent_unit,
        agent=qualified(key.tenant, record.agent),
        exclusive=exclusive,
        repeatable=record.repeatable,
    )
