"""The processes at the other end of the links, over all their connections.

A peer survives the loss of its connection: its units run on, its calls go on, and a new connection of the same
instance finds both. Only after the grace time is it given up. Agents (peers with a card) are watched by the directory,
which says when an instance is lost; a peer that only calls is forgotten here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentgate.core.acks import Acks
from agentgate.core.bounded import BoundedMap
from agentgate.core.takeovers import Takeovers
from agentgate.gateway.frames import Message, Response
from agentgate.model import Card, Outcome, Tier, plain
from agentgate.model.link import PROBE_ID, DrainParams, InvokeParams, ProbeParams, StopKind, StopParams

if TYPE_CHECKING:
    from agentgate.gateway.options import CallOptions
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.session import Session
    from agentgate.gateway.units import Unit
    from agentgate.ports.clock import Clock
    from agentgate.runtime.reporter import Reporter

# Answered calls of a connection whose repeated frames are recognised; repeats come at once or not at all.
RECENT_CALLS_MAX: Final = 256


class RunningCall:
    """A call that a peer has made and that has no outcome yet."""

    __slots__ = ("passage", "task")

    def __init__(self, passage: Passage, task: asyncio.Task[None]) -> None:
        self.passage = passage
        self.task = task

    def cancel(self) -> None:
        """End it, after its first step: a call that came is entered and traced, however soon its caller leaves."""
        asyncio.get_running_loop().call_soon(self.task.cancel)

    @property
    def detached(self) -> bool:
        """Whether it goes on when its caller is gone: keyed work does, unless the caller said otherwise."""
        asked = self.passage.call.on_disconnect
        return asked == "detach" if asked is not None else self.passage.call.keyed


class Peer:
    """One process: an instance of an agent, or a client."""

    def __init__(self, tenant: str, name: str, instance: str) -> None:
        self.tenant = tenant
        self.name = name
        self.instance = instance
        self.card: Card | None = None
        self.session: Session | None = None
        self.calls: dict[str, RunningCall] = {}
        self.acks = Acks()
        self.recent: dict[str, None] = {}  # calls that were answered over the current connection, the oldest first
        self.seen_at = 0.0
        self.lag_ms = 0.0
        self.drained = False
        self.restart_reason = ""  # why it was asked to start anew
        self.forget_timer: asyncio.TimerHandle | None = None

    @property
    def tier(self) -> Tier:
        """Whose calls these are; a client counts as standard."""
        return self.card.tier if self.card is not None else "standard"

    def remember(self, call_id: str) -> None:
        """A call has been answered; its frame may still come again."""
        if len(self.recent) >= RECENT_CALLS_MAX:
            del self.recent[next(iter(self.recent))]
        self.recent[call_id] = None

    def post(self, message: Message) -> bool:
        """Send a message if it is connected."""
        if self.session is None:
            return False
        self.session.post(message)
        return True

    def respond(self, request_id: str, outcome: Outcome) -> bool:
        """Answer a request of it; without a connection nobody hears, and it asks again when it is back."""
        if self.session is None:
            return False
        self.remember(request_id)
        self.session.post(Response(request_id, outcome))
        return True

    def ask_restart(self) -> None:
        """Ask it to finish what is in hand and to start anew; said again over every new connection."""
        if self.restart_reason:
            self.post(Message("drain", DrainParams(reason=self.restart_reason, restart=True)))

    def settled(self, seq: int) -> None:
        """A keyed answer is on disk; tell the process how far it may forget."""
        if seq and self.acks.settled(seq) is not None and self.session is not None:
            self.session.acknowledge()


class Peers:
    """All processes that are, or may again be, connected; by instance."""

    def __init__(self, clock: Clock, options: CallOptions, findings: Reporter) -> None:
        self._clock = clock
        self._options = options
        self._findings = findings
        self._takeovers: Takeovers[int] = Takeovers()
        self._peers: dict[str, Peer] = {}
        # Instances that were asked to start anew, and why, until they are lost.
        self._restarts: BoundedMap[str, str] = BoundedMap(options.peers_max)
        # An instance with as many zombies as it has places cannot be helped from outside: set by the gateway.
        self.on_drain: Callable[[str], None] = lambda _instance: None
        self.on_forget: Callable[[str], None] = lambda _instance: None  # set by whoever keeps something for processes

    def __len__(self) -> int:
        return len(self._peers)

    def get(self, instance: str) -> Peer | None:
        """The peer of an instance."""
        return self._peers.get(instance)

    @property
    def connected(self) -> list[Peer]:
        """The peers with a connection."""
        return [peer for peer in self._peers.values() if peer.session is not None]

    @property
    def full(self) -> bool:
        """Whether no further process may connect."""
        return len(self._peers) >= self._options.peers_max

    def attach(self, session: Session, tenant: str, name: str, instance: str, pid: int = 0) -> Peer:
        """The peer that a new connection speaks for; an older connection of it is closed.

        `pid` is what the process says it is, for people.
        """
        peer = self._peers.get(instance)
        if peer is None:
            peer = self._peers[instance] = Peer(tenant, name, instance)
            peer.restart_reason = self._restarts.get(instance, "")
        if peer.forget_timer is not None:
            peer.forget_timer.cancel()
            peer.forget_timer = None
        peer.seen_at = self._clock.now()
        older, peer.session = peer.session, session
        if older is not None and older is not session:
            older.end("a newer connection of the same instance took over")
            self._note_takeover(peer, pid)
        return peer

    def _note_takeover(self, peer: Peer, pid: int) -> None:
        shared = self._takeovers.note(peer.instance, pid, self._clock.now())
        if shared is not None:
            subject = f"{peer.name}/{plain(peer.instance)}"
            self._findings.report("instance_name_shared", subject, tenant=peer.tenant, **shared.evidence("pids"))

    def seen(self, peer: Peer) -> None:
        """A sign of life of a peer that only calls."""
        peer.seen_at = self._clock.now()

    def end_silent(self, silent_s: float) -> None:
        """Close the connections of peers without a card that have not been heard for so long."""
        before = self._clock.now() - silent_s
        for peer in self.connected:
            if peer.card is None and peer.seen_at < before and peer.session is not None:
                peer.session.end("nothing was heard for too long")

    def detach(self, session: Session, peer: Peer) -> None:
        """Its connection is gone; a client is forgotten after the grace time."""
        if peer.session is not session:
            return
        peer.session = None
        at = self._clock.now() + self._options.peer_grace_s
        peer.forget_timer = asyncio.get_running_loop().call_at(at, self.forget, peer)

    def lost(self, instance: str) -> None:
        """An instance does not come back; one that does after all is a new one."""
        self._restarts.pop(instance)
        peer = self._peers.get(instance)
        if peer is not None:
            self.forget(peer)

    def forget(self, peer: Peer) -> None:
        """Give a peer up: calls that nobody waits for are cancelled, keyed work goes on."""
        if peer.forget_timer is not None:
            peer.forget_timer.cancel()
        if self._peers.get(peer.instance) is peer and peer.session is None:
            del self._peers[peer.instance]
        for running in list(peer.calls.values()):
            if not running.detached:
                running.cancel()
        self.on_forget(peer.instance)

    def invoke(self, unit: Unit, params: InvokeParams) -> bool:
        """Hand a unit to its process; False when it is not connected."""
        peer = self._peers.get(unit.instance)
        unit.sent = peer is not None and peer.post(Message("invoke", params, unit.id))
        return unit.sent

    def send_stop(self, unit: Unit, kind: StopKind, reason: str) -> None:
        """Tell a unit's process to stop it; one that is away hears of it when it comes back."""
        peer = self._peers.get(unit.instance)
        if peer is not None:
            peer.post(Message("stop", StopParams(unit=unit.id, kind=kind, reason=reason)))

    def probe(self, instance: str, units: tuple[str, ...]) -> None:
        """Ask a process how these units are; one that is away is asked for nothing."""
        peer = self._peers.get(instance)
        if peer is not None:
            peer.post(Message("probe", ProbeParams(units=units), PROBE_ID))

    def zombies_found(self, instance: str, zombies: int) -> None:
        """So many units of an instance did not stop; when they would fill it, it has to start anew."""
        peer = self._peers.get(instance)
        if peer is None or peer.card is None or peer.restart_reason or zombies < peer.card.concurrency:
            return
        peer.restart_reason = self._restarts[instance] = f"{zombies} units did not stop when told to"
        peer.ask_restart()
        self.on_drain(instance)

    def close(self) -> None:
        """Stop all timers."""
        for peer in self._peers.values():
            if peer.forget_timer is not None:
                peer.forget_timer.cancel()
