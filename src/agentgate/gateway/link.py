"""What the messages of the link mean: who connects, what it may still answer for, its calls and its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from agentgate.core.keys import name_flaw
from agentgate.errors import CODES, StoreError, WireError
from agentgate.gateway import frames, reading
from agentgate.gateway.answers import judge
from agentgate.gateway.frames import ErrorResponse, Message, Response
from agentgate.gateway.peers import Peer, RunningCall
from agentgate.gateway.registrations import come_again
from agentgate.gateway.route_texts import RouteTexts
from agentgate.gateway.session import Session
from agentgate.model import (
    AGENT_SCOPE,
    SUBMIT,
    Call,
    Card,
    Identity,
    Outcome,
    Problem,
    Record,
    failure,
    logged,
    problem,
    qualified,
)
from agentgate.model.link import (
    AckParams,
    Answer,
    BeatParams,
    CallParams,
    DrainParams,
    HelloParams,
    ProbeAnswer,
    ProgressParams,
    ProtocolProblem,
    Welcome,
)

if TYPE_CHECKING:
    from agentgate.core.payload import PayloadOptions
    from agentgate.gateway.awaiting import Awaiting
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.entry import Entry
    from agentgate.gateway.http_agents import HttpAgents
    from agentgate.gateway.ledger import Ledger
    from agentgate.gateway.locks import LockService
    from agentgate.gateway.options import CallOptions
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.peers import Peers
    from agentgate.gateway.registrations import Registrations
    from agentgate.gateway.rejoin import Rejoin
    from agentgate.gateway.request_ids import RequestIds
    from agentgate.gateway.schemas import Schemas
    from agentgate.gateway.signals import Signals
    from agentgate.gateway.units import Units
    from agentgate.gateway.watching import Watching
    from agentgate.ports.routes import Routes as Directory

log = structlog.get_logger(__name__)

UNNAMED: Final = "client"  # who leaves its name to its token, where no token is asked for
UNREADABLE: Final = "(unreadable)"
PEER_CALLS_AGAIN_S: Final = 1.0
HELLO_AGAIN_S: Final = 1.0
GREETING_S: Final = 1.0  # well below the time for which an instance may be away


class LinkService:
    """The gate's side of all sessions."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        *,
        gateway_name: str,
        gateway_epoch: int,
        run: Callable[[Passage], Awaitable[Outcome]],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        peers: Peers,
        http_agents: HttpAgents,
        registrations: Registrations,
        units: Units,
        watching: Watching | None,
        rejoin: Rejoin,
        entry: Entry,
        locks: LockService,
        ledger: Ledger,
        directory: Directory,
        schemas: Schemas,
        signals: Signals,
        awaiting: Awaiting,
        request_ids: RequestIds,
        counters: Counters,
        left: Callable[[Call], None],
        options: CallOptions,
        payload_options: PayloadOptions,
    ) -> None:
        self._name = gateway_name
        self._epoch = gateway_epoch
        self._run = run
        self._spawn = spawn
        self._peers = peers
        self._http_agents = http_agents
        self._registrations = registrations
        self._units = units
        self._watching = watching
        self._rejoin = rejoin
        self._entry = entry
        self.locks = locks
        self._ledger = ledger
        self._directory = directory
        self._schemas = schemas
        self._left = left
        self._options = options
        self.is_stopping = False
        self._routes = RouteTexts(directory)
        self.signals = signals
        self.awaiting = awaiting
        self.request_ids = request_ids
        self.counters = counters
        self.payload_options = payload_options

    # Connections

    def hello(self, session: Session, request_id: str | int, params: HelloParams) -> None:
        """A process connects. Units it reports that are not in memory are looked up in the ledger first."""
        if not params.agent:
            params = replace(params, agent=session.identity.name or UNNAMED)
        refusal = self._refusal(session.identity, params)
        if refusal is not None:
            self._refuse(session, request_id, *refusal)
            return
        if params.card is not None and not self._admits(session, request_id, params, params.card):
            return
        unknown = [report.unit for report in params.units if self._units.get(report.unit) is None]
        if unknown:
            session.greeter = self._spawn(self._look_up_then_welcome(session, request_id, params, unknown))
        else:
            self._welcome(session, request_id, params, {})

    def disconnected(self, session: Session) -> None:
        """A connection has ended."""
        peer = session.peer
        if peer is None or peer.session is not session:
            return
        self._peers.detach(session, peer)
        if peer.card is None:
            return
        if peer.drained and not self._units.of_instance(peer.instance):
            self._directory.gone(peer.instance)
        else:
            self._directory.closed(peer.instance)

    def seen(self, peer: Peer) -> None:
        """Any message is a sign of life."""
        if peer.card is not None:
            self._directory.seen(peer.instance)
        else:
            self._peers.seen(peer)

    def _refusal(self, identity: Identity, params: HelloParams) -> tuple[str, str] | None:
        """Why this process may not say that it is who it says, or has no room: a code and a sentence."""
        flaw = name_flaw("agent", params.agent) or name_flaw("instance", params.instance)
        if flaw is not None:
            return "bad_request", flaw
        if params.card is not None and params.card.agent != params.agent:
            return "bad_request", f"the card is of {params.card.agent!r}, but {params.agent!r} says hello"
        if not identity.may_call_as(params.agent):
            return "forbidden", _lacks(identity, params.agent)
        instance = qualified(identity.tenant, params.instance)
        if self._http_agents.get(instance) is not None:
            return "forbidden", f"instance {params.instance!r} is registered by HTTP"
        known, units = self._peers.get(instance), self._units.of_instance(instance)
        agent = qualified(identity.tenant, params.agent)
        if (known is not None and known.name != params.agent) or any(unit.call.agent != agent for unit in units):
            return "forbidden", f"instance {params.instance!r} belongs to another name"
        # Who only calls must not take over the connection, or the answers, of an agent that has the same name.
        serves = params.card is not None or params.units or units or (known is not None and known.card is not None)
        if serves and not identity.may_speak_as(params.agent):
            return "forbidden", f"this token lacks the scope {AGENT_SCOPE}{params.agent}"
        if known is None and self._peers.full:
            return "overloaded", f"{self._options.peers_max} processes are connected, which is the bound"
        return None

    def _admits(self, session: Session, request_id: str | int, params: HelloParams, card: Card) -> bool:
        """Whether this agent may register now, with this card."""
        wait_s = self._registrations.ask(qualified(session.identity.tenant, params.instance))
        if wait_s is not None:
            self._end_hello(session, request_id, "overloaded", come_again(wait_s), again_s=wait_s)
            return False
        flaw = self._schemas.flaw(card)
        if flaw is not None:
            self._refuse(session, request_id, "bad_request", flaw)
        return flaw is None

    def _refuse(self, session: Session, request_id: str | int, code: str, why: str) -> None:
        """Say why and end the connection; a process that may come again is told when."""
        log.warning("hello_refused", reason=why)
        self._end_hello(session, request_id, code, why, again_s=HELLO_AGAIN_S)

    def _end_hello(self, session: Session, request_id: str | int, code: str, why: str, *, again_s: float) -> None:
        data: dict[str, str | int] = {"code": code}
        if CODES[code].retry == "after":
            data["retry_after_ms"] = round(again_s * 1000)
        session.post(ErrorResponse(request_id, ProtocolProblem(code=frames.INVALID_PARAMS, message=why, data=data)))
        session.end(why[:100])

    async def _look_up_then_welcome(
        self, session: Session, request_id: str | int, params: HelloParams, unknown: list[str]
    ) -> None:
        instance = qualified(session.identity.tenant, params.instance)
        self._note_greeting(session, instance)
        try:
            found = await self._ledger.find_units(unknown)
        except StoreError as error:
            self._keep_waiting_for(instance)
            self._refuse(session, request_id, "store_down", f"the store does not answer, connect again: {error}")
            return
        if not session.over:
            records = {unit: record for unit, record in zip(unknown, found, strict=True) if record is not None}
            self._welcome(session, request_id, params, records)

    def _note_greeting(self, session: Session, instance: str) -> None:
        """However long its hello takes to be looked at, the instance is there meanwhile."""
        if session.peer is None and not session.over:
            self._keep_waiting_for(instance)
            asyncio.get_running_loop().call_later(GREETING_S, self._note_greeting, session, instance)

    def _keep_waiting_for(self, instance: str) -> None:
        """Its time to come back begins anew, unless it is back already."""
        known = self._peers.get(instance)
        if known is None or known.session is None:
            self._directory.closed(instance)

    def _welcome(
        self, session: Session, request_id: str | int, params: HelloParams, records: dict[str, Record]
    ) -> None:
        tenant = session.identity.tenant
        instance = qualified(tenant, params.instance)
        peer = self._peers.attach(session, tenant, params.agent, instance, params.pid)
        session.peer = peer
        peer.card = params.card
        if params.card is not None:
            try:
                self._directory.hello(tenant, params.card, peer.instance)
            except ValueError as error:
                peer.card = None
                self._refuse(session, request_id, "bad_request", str(error))
                return
        dropped = self._rejoin.reconcile(peer, params.units, records, partial(self._settle, peer))
        self._drop_calls(peer, params.calls)
        lost = self.locks.reconcile(peer, params.locks, params.calls)
        welcome = Welcome(
            session=f"{self._name}:{self._epoch}:{params.instance}",
            gateway=self._name,
            gateway_epoch=self._epoch,
            acked=peer.acks.acked,
            unknown_units=dropped,
            lost_locks=lost,
            payload_bytes_max=self.payload_options.bytes_max,
            agent=peer.name,
        )
        session.post(Response(request_id, welcome))
        peer.ask_restart()

    def _drop_calls(self, peer: Peer, waited_for: tuple[str, ...]) -> None:
        """Calls that the process no longer waits for: its `cancel` may have been lost with the connection."""
        peer.recent.clear()
        self.awaiting.forget(peer)  # what it stands still for, it says again
        self.signals.resumed(peer, frozenset(waited_for))
        for call_id in peer.calls.keys() - set(waited_for):
            self.cancel(peer, call_id)

    # Units

    def answered(self, peer: Peer, unit_id: str, answer: Answer) -> None:
        """A process says what a unit came to."""
        if answer.seq:
            peer.acks.received(answer.seq)
        self._settle(peer, unit_id, answer)

    def _settle(self, peer: Peer, unit_id: str, answer: Answer) -> None:
        unit = self._units.get(unit_id)
        if unit is None or unit.instance != peer.instance:
            peer.settled(answer.seq)  # nobody waits for it and no record is open: it may be forgotten
            return
        finding = None
        if answer.error is None and not answer.unseen:
            finding = self._schemas.finding(unit.output_schema, answer.value)
        event, outcome = judge(answer, unit.call, finding)
        unit.handler_ms = answer.handler_ms
        self._units.answered(unit, event, outcome, partial(peer.settled, answer.seq))

    def progress(self, peer: Peer, params: ProgressParams) -> None:
        """A note on how far a unit has come."""
        unit = self._units.get(params.unit)
        if unit is not None and unit.instance == peer.instance and not unit.ended:
            del unit.notes[: max(0, len(unit.notes) - self._options.notes_max + 1)]
            unit.notes.append(params.note[:200])
            if self._watching is not None:
                self._watching.noted(unit, unit.notes[-1])

    def beat(self, peer: Peer, params: BeatParams) -> None:
        """A sign of life with two figures; it is answered, so that the process knows the gate is alive, too."""
        peer.lag_ms = params.lag_ms
        self.locks.renew(peer)
        if self._watching is not None:
            self._watching.beat(peer, params.lag_ms)
        peer.post(Message("ack", AckParams(seq=peer.acks.acked)))

    def probed(self, peer: Peer, answer: ProbeAnswer | None) -> None:
        """A process says how its late units are; None: it does not know the question."""
        if self._watching is not None:
            self._watching.answered(peer, answer)

    def drain(self, peer: Peer, params: DrainParams) -> None:
        """A process finishes what is in hand and wants nothing new."""
        log.info("instance_drains", agent=peer.name, instance=logged(peer.instance), reason=params.reason[:200])
        peer.drained = True
        if peer.card is not None:
            self._directory.drain(peer.instance)

    def routes(self, peer: Peer, version: int) -> msgspec.Raw:
        """The routes of its tenant, unless it has this version."""
        return self._routes.of(peer.tenant, version)

    # Calls

    def call(self, peer: Peer, call_id: str, raw: bytes) -> None:
        """A process calls; a call that runs already (a repeated frame, a new connection) is only kept."""
        if call_id in peer.calls or call_id in peer.recent:
            return
        if len(peer.calls) >= self._options.peer_calls_max:
            detail = f"{peer.name} has {len(peer.calls)} calls open, which is the bound"
            self._respond(peer, call_id, failure("overloaded", retry_after_s=PEER_CALLS_AGAIN_S, detail=detail))
            return
        passage = self._passage(peer, call_id, raw)
        if self.is_stopping and not passage.call.parent_unit:
            return  # as if it had come a moment later, to a closed connection: its process sends it to the next gate
        task = self._spawn(self._carry(peer, call_id, passage))
        peer.calls[call_id] = RunningCall(passage, task)

    def cancel(self, peer: Peer, call_id: str) -> None:
        """The caller no longer waits: for a call, a lock or a signal."""
        running = peer.calls.get(call_id)
        if running is not None:
            self._left(running.passage.call)
            running.cancel()
        else:
            self.locks.drop(peer, call_id)
            self.signals.forget((peer.instance, call_id))

    def _passage(self, peer: Peer, call_id: str, raw: bytes) -> Passage:
        refusal: Problem | None = None
        try:
            params = reading.call(raw, self.payload_options, reading.CALL)
        except WireError as error:
            params = CallParams(target=UNREADABLE, task_type=UNREADABLE, effect="read")
            refusal = problem(error.code, detail=error.detail)
        return self._entry.read(
            call_id,
            params,
            tenant=peer.tenant,
            caller=peer.name,
            instance=peer.instance,
            tier=peer.tier,
            refusal=refusal,
        )

    async def _carry(self, peer: Peer, call_id: str, passage: Passage) -> None:
        try:
            outcome = await self._run(passage)
        except asyncio.CancelledError:
            outcome = failure("cancelled", sent=passage.sent)
        peer.calls.pop(call_id, None)
        self.awaiting.ended((peer.instance, call_id))
        self._respond(peer, call_id, outcome)

    def _respond(self, peer: Peer, call_id: str, outcome: Outcome) -> None:
        # Without a connection the answer goes nowhere: the caller sends the call again when it is back, a keyed one
        # is answered from the ledger then, and a read is read again.
        if peer.respond(call_id, outcome):
            self.counters.messages += 1


def _lacks(identity: Identity, name: str) -> str:
    """Which scope is missing for making calls as `name`, and what to do about it."""
    if identity.name == name:
        return f"this token lacks the scope {SUBMIT}, or {AGENT_SCOPE}{name}"
    return f"this token is of {identity.name!r}: speak as that, or use a token with the scope {AGENT_SCOPE}{name}"
