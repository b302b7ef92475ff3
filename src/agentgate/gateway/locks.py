"""Locks on the link: who asks, in which unit, and who is told what becomes of it (the rules: `core.locks`).

Nothing here waits: a request is answered when its news comes, over whatever connection its process has then. A process
that comes back says again what it waits for and what it holds; of what it does not name, a message got lost on the way,
and it is given back. The beats of a process renew its leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from agentgate.core.lock import LockTicket
from agentgate.core.open_wait import Group, OpenWait
from agentgate.errors import WireError
from agentgate.gateway import reading
from agentgate.gateway.entry import seconds_of
from agentgate.gateway.frames import Message
from agentgate.model import Outcome, Problem, logged, plain, problem, qualified
from agentgate.model.link import LockGrant, LockLostParams, LockParams, LockReport
from agentgate.runtime.alarm import Alarm

if TYPE_CHECKING:
    from agentgate.core.chain import ChainGuard
    from agentgate.core.locks import Locks
    from agentgate.core.unit_token import UnitTokens
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.entry import Entry
    from agentgate.gateway.peers import Peer, Peers
    from agentgate.gateway.units import Unit, Units
    from agentgate.gateway.waits import UnitWaits
    from agentgate.ports.clock import Clock

log = structlog.get_logger(__name__)

LOCK: Final = msgspec.json.Decoder(LockParams)


class LockWait(OpenWait, eq=False, kw_only=True):
    """A unit's wait for its turn at some locks."""

    ticket: LockTicket
    refuse: Callable[[LockTicket, Problem], None]

    def release(self, problem: Problem) -> None:
        """Its request is answered with this, and leaves the lines."""
        self.refuse(self.ticket, problem)


class LockAim:
    """Those who have to go before it is a request's turn."""

    __slots__ = ("_locks", "_ticket")

    def __init__(self, locks: Locks, ticket: LockTicket) -> None:
        self._locks = locks
        self._ticket = ticket

    def groups(self) -> Sequence[Group]:
        """All of them, each by itself."""
        return self._locks.groups(self._ticket)


class LockService:
    """The gate's side of all locks."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        locks: Locks,
        *,
        entry: Entry,
        guard: ChainGuard,
        tokens: UnitTokens,
        units: Units,
        waits: UnitWaits,
        peers: Peers,
        clock: Clock,
        counters: Counters,
    ) -> None:
        self._locks = locks
        self._entry = entry
        self._guard = guard
        self._tokens = tokens
        self._units = units
        self._waits = waits
        self._peers = peers
        self._clock = clock
        self._counters = counters
        self._awaited: set[str] = set()  # processes that may still claim what they held before the gate's restart
        self._open: dict[LockTicket, LockWait] = {}  # requests that wait, and the waits of their units
        self._alarm = Alarm(self.pump)
        units.listen(self)
        peers.on_forget = self.process_gone

    def await_holders(self, processes: Iterable[str], until: float) -> None:
        """The gate has just started: who was there before it may hold locks, and comes first until then."""
        self._awaited = set(processes)
        if self._awaited:
            self._locks.hold_back(until)
            self.pump()

    def close(self) -> None:
        """Stop the timer."""
        self._alarm.set(None)

    # --- what processes say

    def request(self, peer: Peer, request_id: str, raw: bytes) -> None:
        """A process asks for locks; the same request again, over a new connection, is answered from what is known."""
        if request_id in peer.recent:
            return
        known = self._locks.get(peer.instance, request_id)
        if known is None:
            self._take(peer, request_id, raw)
        elif known.state == "held":
            peer.respond(request_id, self._granted(known))

    def drop(self, peer: Peer, request_id: str) -> None:
        """A process gives back what it holds by this request, or waits no longer."""
        known = self._locks.get(peer.instance, request_id)
        if known is not None:
            self._locks.release(known, self._clock.now())
            self.pump()

    def renew(self, peer: Peer) -> None:
        """A process is alive, and so are its leases."""
        self._locks.renew(peer.instance, self._clock.now())

    def reconcile(self, peer: Peer, reports: tuple[LockReport, ...], waits: tuple[str, ...]) -> tuple[str, ...]:
        """Hold what a process says that it holds and waits for against what is known; returns what it has lost."""
        named = {report.id for report in reports}.union(waits)
        for ticket in self._locks.of_process(peer.instance):
            if ticket.id not in named:
                self._locks.release(ticket, self._clock.now())
        self.renew(peer)
        lost = tuple(report.id for report in reports if not self._still_holds(peer, report))
        self._is_back(peer.instance)
        self.pump()
        return lost

    # --- what becomes of those who ask

    def unit_opened(self, unit: Unit) -> None:
        """It holds nothing yet."""

    def unit_ended(self, unit: Unit) -> None:
        """Its locks end with it."""
        if self._locks.end_unit(unit.id, self._clock.now()):
            self.pump()

    def unit_overstays(self, unit: Unit) -> None:
        """It does not stop: its leases run out."""
        self._locks.overstay(unit.id)

    def process_gone(self, process: str) -> None:
        """It does not come back."""
        self._locks.end_process(process, self._clock.now())
        self._is_back(process)
        self.pump()

    def pump(self) -> None:
        """Tell everybody what is new, and look again when the next thing is due."""
        for ticket, refusal in self._locks.tick(self._clock.now()):
            try:
                self._tell(ticket, refusal)
            except Exception:  # a flaw in what one waits for, which concerns none of the others
                log.exception("lock_news_failed", unit=ticket.unit, names=", ".join(map(logged, ticket.names)))
        self._alarm.set(self._locks.next_deadline())

    # --- parts

    def _take(self, peer: Peer, request_id: str, raw: bytes) -> None:
        asked = self._read(peer, request_id, raw)
        refusal = self._locks.request(asked, self._clock.now()) if isinstance(asked, LockTicket) else asked
        if refusal is not None:
            peer.respond(request_id, Outcome(error=refusal))
        elif isinstance(asked, LockTicket):
            if asked.waiting:
                self._begin_wait(asked)
            else:
                peer.respond(request_id, self._granted(asked))
        self.pump()

    def _begin_wait(self, ticket: LockTicket) -> None:
        """Its unit waits from now on, unless those who are before it wait for that unit."""
        unit = self._units.get(ticket.unit)
        if unit is None:
            return
        wait = self._open[ticket] = LockWait(
            unit=unit.id,
            kind="lock",
            aim=LockAim(self._locks, ticket),
            since=self._clock.now(),
            deadline=ticket.deadline,
            target=", ".join(map(plain, ticket.names)),
            trace_id=unit.call.trace_id,
            span_id=unit.span_id,
            ticket=ticket,
            refuse=self._refuse,
        )
        self._waits.begin_checked(wait)

    def _end_wait(self, ticket: LockTicket) -> None:
        wait = self._open.pop(ticket, None)
        if wait is not None:
            self._waits.close(wait)

    def _refuse(self, ticket: LockTicket, refusal: Problem) -> None:
        """A request that waits gets this instead of its turn."""
        if ticket.waiting:
            self._locks.release(ticket, self._clock.now())
            self._end_wait(ticket)
            peer = self._peers.get(ticket.process)
            if peer is not None:
                peer.respond(ticket.id, Outcome(error=refusal))
            self.pump()

    def _read(self, peer: Peer, request_id: str, raw: bytes) -> LockTicket | Problem:
        """The request as it came, attributed to the unit it was made in; or what is wrong with it."""
        try:
            params = reading.message(raw, LOCK, "lock")
        except WireError as error:
            return problem(error.code, detail=error.detail)
        names = self._locks.names(peer.tenant, params.names)
        if isinstance(names, Problem):
            return names
        speaker = qualified(peer.tenant, peer.name)
        made_in = self._guard.attribute(self._tokens, params.token, "", speaker, peer.instance)
        refusal = made_in.refused or self._not_here(peer, made_in.parent_unit, params)
        if refusal is not None:
            return refusal
        return LockTicket(
            id=request_id,
            names=names,
            process=peer.instance,
            mode=params.mode,
            scope=params.scope,
            unit=made_in.parent_unit,
            owner=peer.name,
            work=self._work_of(made_in.parent_unit),
            deadline=self._deadline(params, made_in.parent_unit),
        )

    def _not_here(self, peer: Peer, unit_id: str, params: LockParams) -> Problem | None:
        unit = self._units.get(unit_id)
        if unit is not None and unit.instance != peer.instance:
            return problem("forbidden", detail=f"unit {unit_id} runs in another process, whose life its locks hang on")
        if unit is None and params.scope == "message":
            detail = (
                "a lock of a message is asked for in its unit, with its token; outside of any, take scope `session`"
            )
            return problem("bad_request", detail=detail)
        return None

    def _work_of(self, unit_id: str) -> str:
        unit = self._units.get(unit_id)
        return f"{unit.call.task_type}({unit.call.business_key})" if unit is not None else "?"

    def _deadline(self, params: LockParams, unit_id: str) -> float:
        asked_s = None if params.timeout_ms is None else seconds_of(params.timeout_ms)
        age_s = seconds_of(params.age_ms) if asked_s is None else 0.0
        return self._entry.deadline_within(unit_id, self._locks.time_out_s(asked_s) - age_s, self._clock.now())

    def _still_holds(self, peer: Peer, report: LockReport) -> bool:
        if self._locks.get(peer.instance, report.id) is not None:
            return True
        unit = self._units.get(report.unit)
        is_here = unit is not None and unit.instance == peer.instance and not unit.ended
        names = self._locks.names(peer.tenant, report.names)
        if isinstance(names, Problem) or not (is_here or report.scope == "session"):
            return False
        unit_id = report.unit if is_here else ""
        ticket = LockTicket(
            id=report.id,
            names=names,
            process=peer.instance,
            mode=report.mode,
            scope=report.scope,
            unit=unit_id,
            owner=peer.name,
            work=self._work_of(unit_id),
        )
        holds = self._locks.claim_again(ticket, report.epoch, self._clock.now())
        if not holds and unit_id:
            self._locks.lose(unit_id, names)
        return holds

    def _is_back(self, process: str) -> None:
        self._awaited.discard(process)
        if not self._awaited:
            self._locks.open(self._clock.now())

    def _tell(self, ticket: LockTicket, refusal: Problem | None) -> None:
        self._end_wait(ticket)
        peer = self._peers.get(ticket.process)
        if ticket.state == "lost":
            self._counters.locks_lost += 1
            names = ", ".join(map(logged, ticket.names))
            log.warning("lock_lost", names=names, instance=logged(ticket.process), unit=ticket.unit)
            told = LockLostParams(id=ticket.id, reason="its lease ended: nothing was heard, or its unit did not stop")
            if peer is not None:
                peer.post(Message("lock_lost", told))
        elif peer is not None and refusal is not None:
            peer.respond(ticket.id, Outcome(error=refusal))
        elif peer is not None and ticket.state == "held":
            peer.respond(ticket.id, self._granted(ticket))

    def _granted(self, ticket: LockTicket) -> Outcome:
        return Outcome(value=LockGrant(epoch=ticket.epoch, lease_ms=round(self._locks.options.lease_s * 1000)))
