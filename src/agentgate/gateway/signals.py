"""Signals and the waits for them, as they come over the link; the rules are those of `core.signals`.

A wait and a signal belong to an open unit, whose token they carry: who signals, about which work, and until when
somebody may wait follows from it. A wait is a request that is answered when it ends. Like a call it outlives its
connection: its process sends it again under its id and is told then, if need be, what it has come to meanwhile. A
signal is answered at once, and sent again until it is; it counts in the rate of its sender like a call, but never
queues for its turn.

Everything is in the memory of this gate. After its restart the waits come again, with their processes; signals that
nobody had waited for are gone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from agentgate.core.keys import name_flaw
from agentgate.core.open_wait import Group, OpenWait
from agentgate.core.policy import Admit, Park
from agentgate.core.promises import Promiser
from agentgate.core.signals import Signal, SignalBook, SignalWait, WaitId
from agentgate.errors import WireError
from agentgate.gateway import reading
from agentgate.gateway.entry import inner_s, seconds_of
from agentgate.model import Call, Outcome, Problem, failure, logged, plain, problem, qualified
from agentgate.model.link import SignalParams, WaitForParams
from agentgate.runtime.alarm import Alarm

if TYPE_CHECKING:
    from agentgate.core.chain import ChainGuard
    from agentgate.core.rate import RateLimiter
    from agentgate.core.unit_token import UnitTokens
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.gateway_options import GatewayOptions
    from agentgate.gateway.peers import Peer, Peers
    from agentgate.gateway.units import Unit, Units
    from agentgate.ports.clock import Chance, Clock

log = structlog.get_logger(__name__)

# Two sides that wait for one another, each with the time that is left, must not give up, and come back, in step (D5).
SPREAD: Final = 0.15

_wait_for = msgspec.json.Decoder(WaitForParams)


class NewsWait(OpenWait, eq=False, kw_only=True):
    """A unit's wait for a signal. Never certain: others than those who have promised it may send it."""

    id: WaitId
    end: Callable[[WaitId, Problem], None]

    def release(self, problem: Problem) -> None:
        """Its `wait_for` is answered with this."""
        self.end(self.id, problem)


class NewsAim:
    """Those who may send it."""

    __slots__ = ("_book", "_wait")

    def __init__(self, book: SignalBook, wait: SignalWait) -> None:
        self._book = book
        self._wait = wait

    def groups(self) -> Sequence[Group]:
        """Any of them will do."""
        return self._book.groups(self._wait)


class Signals:
    """The gate's side of `wait_for` and `signal`. `on_begin`: a unit stands still for one; `on_end`: a wait is over."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        options: GatewayOptions,
        *,
        peers: Peers,
        units: Units,
        guard: ChainGuard,
        tokens: UnitTokens,
        rate: RateLimiter,
        clock: Clock,
        chance: Chance,
        counters: Counters,
    ) -> None:
        self.book = SignalBook(options.signals)
        self.on_begin: Callable[[SignalWait], None] = lambda _wait: None
        self.on_end: Callable[[SignalWait], None] = lambda _wait: None
        self._options = options.signals
        self._call_options = options.calls
        bytes_max = min(options.signals.value_bytes_max, options.payload.bytes_max)
        self._payload_options = dataclasses.replace(options.payload, bytes_max=bytes_max)
        self._peers = peers
        self._units = units
        self._guard = guard
        self._tokens = tokens
        self._rate = rate
        self._rate_mode = options.mechanisms.get("rate_limit", "enforce")
        self._clock = clock
        self._draw = chance.draw
        self._counters = counters
        self._alarm = Alarm(self._tick)
        units.listen(self)

    # Waits

    def wait_for(self, peer: Peer, request_id: str, raw: bytes) -> None:
        """A unit waits; one whose wait is known, sent again, is told what it has come to, if it has."""
        known = self.book.get((peer.instance, request_id))
        if known is not None:
            if known.outcome is not None:
                peer.respond(request_id, known.outcome)
            return
        try:
            params = reading.message(raw, _wait_for, "wait_for")
        except WireError as error:
            peer.respond(request_id, failure("bad_request", detail=error.detail))
            return
        unit = self._unit_of(peer, params.token, name=params.name, about=params.about, from_agent=params.from_agent)
        refusal = unit if isinstance(unit, Problem) else self._wait(peer, request_id, params, unit)
        if refusal is not None:
            peer.respond(request_id, Outcome(error=refusal))

    def open_wait(self, wait: SignalWait) -> NewsWait:
        """An open wait as the wait graph takes it."""
        unit = self._units.get(wait.unit)
        assert unit is not None, "waits end with their units"
        return NewsWait(
            unit=wait.unit,
            kind="signal",
            aim=NewsAim(self.book, wait),
            certain=False,
            since=wait.since,
            deadline=wait.deadline,
            target=wait.from_agent or wait.name,
            task_type=wait.name,
            business_key=wait.about,
            trace_id=unit.call.trace_id,
            span_id=unit.span_id,
            id=wait.id,
            end=self._release,
        )

    def forget(self, wait_id: WaitId) -> None:
        """Nobody is interested in the end of this wait any more."""
        wait = self.book.forget(wait_id)
        if wait is not None:
            self.on_end(wait)
            self._set_timer()

    def resumed(self, peer: Peer, waited_for: frozenset[str]) -> None:
        """A process is back, and still waits for these: the ends of all others it has, or does not want."""
        for unit in self._units.of_instance(peer.instance):
            for wait in self.book.of_unit(unit.id):
                if wait.id[1] not in waited_for:
                    self.forget(wait.id)

    # Signals

    def signal(self, peer: Peer, request_id: str, raw: bytes) -> None:
        """A unit says that something has happened; said again, it has been heard already."""
        if self.book.knows(peer.instance, request_id):
            peer.respond(request_id, Outcome())
            return
        try:
            params = reading.signal(raw, self._payload_options)
        except WireError as error:
            peer.respond(request_id, failure(error.code, detail=error.detail))
            return
        unit = self._unit_of(peer, params.token, name=params.name, about=params.about, to=params.to)
        refusal = unit if isinstance(unit, Problem) else self._signal(peer, request_id, params, unit)
        self._counters.signals += refusal is None
        peer.respond(request_id, Outcome(error=refusal))

    # Units

    def unit_opened(self, unit: Unit) -> None:
        """A unit runs."""
        if unit.promises:
            call = unit.call
            promiser = Promiser(unit.id, call.tenant, plain(call.agent), call.business_key, set(unit.promises))
            self.book.unit_opened(promiser)

    def unit_ended(self, unit: Unit) -> None:
        """A unit has ended: nobody waits in it, and it signals no more."""
        if self.book.concerns(unit.id):
            self._conclude(self.book.unit_ended(unit.id, self._clock.now(), final=unit.final))

    def unit_overstays(self, unit: Unit) -> None:
        """It was told to stop: its token is dead, so it is as good as ended."""
        self.unit_ended(unit)

    def close(self) -> None:
        """Stop the timer."""
        self._alarm.set(None)

    # Parts

    def _wait(self, peer: Peer, request_id: str, params: WaitForParams, unit: Unit) -> Problem | None:
        now = self._clock.now()
        wait = SignalWait(
            id=(peer.instance, request_id),
            unit=unit.id,
            tenant=peer.tenant,
            agent=peer.name,
            name=params.name,
            about=params.about,
            from_agent=params.from_agent,
            since=now - seconds_of(params.age_ms),
            deadline=now + self._patience_s(params, unit.call.deadline - now),
        )
        refusal = self.book.wait(wait, now)
        if refusal is not None:
            return refusal
        if wait.outcome is not None:
            self._counters.waits[wait.outcome.code] += 1
            peer.respond(request_id, wait.outcome)
        elif params.awaited:
            self.on_begin(wait)
        self._set_timer()
        return None

    def _patience_s(self, params: WaitForParams, left_s: float) -> float:
        most_s = inner_s(left_s, self._call_options)
        if params.timeout_ms is not None:
            return min(seconds_of(params.timeout_ms), most_s)
        return min(self._options.wait_s - seconds_of(params.age_ms), most_s) * (1.0 - SPREAD * self._draw())

    def _signal(self, peer: Peer, request_id: str, params: SignalParams, unit: Unit) -> Problem | None:
        refusal = self._out_of_turn(peer, request_id, params.name, unit)
        if refusal is not None:
            return refusal
        signal = Signal(
            instance=peer.instance,
            id=request_id,
            unit=unit.id,
            tenant=peer.tenant,
            agent=peer.name,
            name=params.name,
            about=params.about,
            value=params.value,
            to=params.to,
        )
        received = self.book.signal(signal, self._clock.now())
        self._conclude(received.ended)
        return received.error

    def _out_of_turn(self, peer: Peer, request_id: str, name: str, unit: Unit) -> Problem | None:
        """Whether its sender is above its rate; a signal counts as a call does."""
        if self._rate_mode == "off":
            return None
        now = self._clock.now()
        call = Call(
            id=request_id,
            target=peer.name,
            task_type=name,
            tenant=peer.tenant,
            caller=peer.name,
            deadline=unit.call.deadline,
        )
        if self._rate_mode == "observe":
            would = self._rate.shadow(call, now).would
            self._counters.would.update([would] if would else [])
            return None
        decision = self._rate.admit(call, now)
        if isinstance(decision, Admit):
            return None
        if isinstance(decision, Park):
            self._rate.abandon(decision.ticket, now)
            return problem("rate_limited", retry_after_s=decision.until - now, detail=f"{peer.name} signals too often")
        return decision.error

    def _unit_of(self, peer: Peer, token: str, *, name: str, **others: str) -> Unit | Problem:
        """The open unit in which it was said; otherwise why it cannot be taken. `name` has to be given."""
        for what, text in (("name", name), *((what, text) for what, text in others.items() if text)):
            if (flaw := name_flaw(f"`{what}` of the signal", text)) is not None:
                return problem("bad_request", detail=flaw)
        speaker = qualified(peer.tenant, peer.name)
        came_from = self._guard.attribute(self._tokens, token, "", speaker, peer.instance)
        unit = self._units.get(came_from.parent_unit)
        if came_from.refused is not None or unit is None:
            return came_from.refused or problem("bad_request", detail="a signal belongs to a unit: send its token")
        return unit

    def _release(self, wait_id: WaitId, error: Problem) -> None:
        wait = self.book.release(wait_id, error)
        if wait is not None:
            self._conclude([wait])

    def _conclude(self, ended: Sequence[SignalWait]) -> None:
        for wait in ended:
            try:
                self._tell(wait)
            except Exception:  # a flaw in what one waits for, which concerns none of the others
                log.exception("wait_end_failed", unit=wait.unit, name=logged(wait.name))
        self._set_timer()

    def _tell(self, wait: SignalWait) -> None:
        assert wait.outcome is not None, "it has ended"
        self._counters.waits[wait.outcome.code] += 1
        peer = self._peers.get(wait.id[0])
        if peer is not None:
            peer.respond(wait.id[1], wait.outcome)
        self.on_end(wait)

    def _set_timer(self) -> None:
        self._alarm.set(self.book.next_deadline())

    def _tick(self) -> None:
        self._conclude(self.book.tick(self._clock.now()))
