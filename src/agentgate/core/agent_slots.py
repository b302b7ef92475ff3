"""The slots of one agent: its instances, and the calls that wait for one of them.

Decides which instance takes a call, whether a call may wait, and whether a failing instance is put out. Rules
(DESIGN 4.3):

- Least outstanding first among the instances that have room; among equals the one that waited longest. A retry avoids
  the instance that failed, unless it is the only one that takes calls at all: then waiting for another is in vain. It
  does so for `avoid_s`: then any slot is better than none, whoever holds the others and for whatever reason.
- A newcomer never passes one who waits and may have the same slot, unless it is more urgent.
- Work on one exclusive key runs one after the other, whatever slots are free (`core.exclusive`).
- The queue holds `queue_max` calls. At the bound a newcomer that is more urgent than somebody waiting takes the room of
  the newest of the lowest priority; others are refused, with the time after which there should be room.
- What cannot be served before its deadline is refused at once. The expected wait is what stands before it, times the
  average time a slot is held, over all slots; it is trusted after `holds_min` finished calls.
- An instance is put out only while at most `ejected_share_max` of those that are here are out. When instances leave,
  those with the shortest rest come back early, so that the share holds at every time.
- **Whose fault is it?** The instance's, and not the agent's: a fault that puts it out, together with the faults of the
  run before it; whatever comes in from before; and faults of an instance that has left, when others are there. The
  agent's: every other fault, in full, as that of an instance that may not be put out.

How it works. Everything is decided by looking at all instances of the agent, of which there are few; nothing is kept
that could disagree with them.

Not covered: deadlines, and agents without instances (`core.slots`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from agentgate.core.exclusive import ExclusiveKeys
from agentgate.core.instances import Instance, Phase, SlotOptions, SlotTicket, Standing
from agentgate.core.policy import Admit, Wake
from agentgate.core.queue import AgentQueue, priority_of
from agentgate.core.slot_pool import SlotPool
from agentgate.core.verdict import InstanceVerdict
from agentgate.model import Call, Problem, problem

HOLD_WEIGHT: Final = 0.1  # of the newest call in the average time a slot is held: about the last twenty matter
RETRY_S_MIN: Final = 0.1  # sooner is not worth asking again


class Health(NamedTuple):
    """Whether what became of a call says something about the agent, and which earlier faults did not after all."""

    counts: bool
    retracted: tuple[SlotTicket, ...] = ()


COUNTS: Final = Health(counts=True)
IGNORED: Final = Health(counts=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceState:
    """One instance as shown to people and to checks; `out_until` while it is put out, in monotonic seconds.

    `outstanding` hold a slot, `resting` wait without one. More than `limit` hold one only because they came back from a
    wait (`over`), or were found running (`adopted`, resting ones included).
    """

    name: str
    phase: Phase
    standing: Standing
    limit: int
    outstanding: int
    resting: int
    over: int
    adopted: int
    out_until: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentState:
    """One agent as shown to people."""

    agent: str
    queued: int
    instances: tuple[InstanceState, ...]


class AgentSlots:
    """Instances and queue of one agent."""

    waiting: Final = True  # its alarms always matter

    def __init__(self, agent: str, options: SlotOptions) -> None:
        self.agent = agent
        self.instances: dict[str, Instance] = {}
        self.keys = ExclusiveKeys()
        self.queue = AgentQueue(self.keys)
        self.expected: set[str] = set()  # instances that were here before a restart, and may come back
        self.pool = SlotPool(self.instances, self.expected)
        self.expected_until = -inf
        self._options = options
        self._turn = 0
        self._hold_s = 1.0  # until something is known
        self._holds = 0

    def is_present(self, now: float) -> bool:
        """Whether it makes sense to wait for it: an instance is known, or one is expected."""
        return bool(self.instances) or now < self.expected_until

    def pick(self, avoid: str, now: float) -> Instance | None:
        """The instance that should take a call now, if one has room."""
        best: Instance | None = None
        avoided: Instance | None = None
        able = 0
        for instance in self.instances.values():
            if instance.standing == "out" and instance.out_until <= now:
                instance.let_return()
            if instance.capacity:
                able += 1
            if not instance.has_room:
                continue
            if instance.name == avoid:
                avoided = instance
            elif best is None or (instance.outstanding, instance.turn) < (best.outstanding, best.turn):
                best = instance
        return avoided if best is None and able == 1 else best

    def is_turn_of(self, call: Call, instance: Instance) -> bool:
        """Whether a newcomer may have this instance's slot before those who wait, and its exclusive key is free."""
        if not self.keys.is_free(call):
            return False
        if not self.queue.size:
            return True
        rival = self.queue.head() if self._is_sole(instance) else self.queue.head_for(instance.name)
        if rival is None or priority_of(rival.call) < priority_of(call):
            return True
        return priority_of(rival.call) == priority_of(call) and 0 < call.place < rival.place

    def least_busy(self) -> Instance | None:
        """Observe mode: who takes a call for which there is no room; those that are in before those that are not."""
        here = [item for item in self.instances.values() if item.phase == "here"]
        return min(here, key=lambda item: (item.standing != "in", item.outstanding, item.turn), default=None)

    def squeeze_in(self, ticket: SlotTicket, instance: Instance, now: float) -> None:
        """Observe mode: let it run there without a slot."""
        self._turn += 1
        instance.turn = self._turn
        ticket.seat, ticket.term, ticket.seated_at, ticket.stage = instance, instance.term, now, "new"
        ticket.hold(self.keys)

    def seat(self, ticket: SlotTicket, instance: Instance, now: float) -> None:
        """Give the call a slot of this instance."""
        self._turn += 1
        instance.turn = self._turn
        instance.take(ticket, now)
        ticket.hold(self.keys)

    def release(self, ticket: SlotTicket, now: float) -> None:
        """A call came to an end: learn from it how long a slot is held."""
        self._holds += 1
        self._hold_s += (ticket.held_s(now) - self._hold_s) * (HOLD_WEIGHT if self._holds > 1 else 1.0)

    def dispatch(self, now: float) -> list[Wake]:
        """Give free slots to those who wait."""
        wakes: list[Wake] = []
        while (head := self.queue.head()) is not None and (free := self.pick("", now)) is not None:
            if head.avoid == free.name:
                chosen = self.pick(free.name, now)
                if chosen is None:  # there are others, but they are busy: the slot is for the next one who wants it
                    chosen, passed_to = free, self.queue.head_for(free.name)
                    if passed_to is None:
                        break
                    head = passed_to
                free = chosen
            self.queue.remove(head)
            self.seat(head, free, now)
            wakes.append(Wake(head, Admit(head)))
        return wakes

    def dispatch_over_limit(self, now: float) -> list[Wake]:
        """Observe mode: those who waited for anybody to come do not wait for room."""
        wakes: list[Wake] = []
        while (head := self.queue.head()) is not None and (busy := self.least_busy()) is not None:
            self.queue.remove(head)
            self.squeeze_in(head, busy, now)
            head.would = "would_queue"
            wakes.append(Wake(head, Admit(head)))
        return wakes

    def refusal(self, call: Call, now: float) -> Problem | None:
        """Why this call may not wait; None when it may."""
        size = self.queue.size
        if size >= self._options.queue_max and self.displaced_by(call) is None:
            detail = f"{self.agent}: {size} calls wait, which is the limit"
            return problem("overloaded", retry_after_s=self._retry_s(call), detail=detail)
        left_s = call.deadline - now
        if call.place or self._holds < self._options.holds_min or (size + 1) * self._hold_s <= left_s:
            return None  # the last test holds with a single slot already
        wait_s = self._wait_s(call)
        if wait_s <= left_s or not any(item.capacity for item in self.instances.values()):
            return None
        detail = f"{self.agent}: the expected wait of {wait_s:.1f} s is longer than the call has"
        return problem("overloaded", retry_after_s=self._retry_s(call), detail=detail)

    def displaced_by(self, call: Call) -> SlotTicket | None:
        """Who would have to go to make room for this call: somebody less urgent, if there is one."""
        last = self.queue.last() if self.queue.size else None
        return last if last is not None and priority_of(last.call) < priority_of(call) else None

    def overloaded(self, call: Call) -> Problem:
        """The answer to a waiting call that has to make room."""
        detail = f"{self.agent}: a call of higher priority took its place in the queue"
        return problem("overloaded", retry_after_s=self._retry_s(call), detail=detail)

    def record(self, ticket: SlotTicket, instance: Instance, kind: InstanceVerdict, now: float) -> Health:
        """Learn from what became of a call whether the instance is fit; see "Whose fault is it?"."""
        if instance.is_late(ticket):
            return IGNORED
        if kind == "ok":
            instance.answered(now)
        if kind != "fault":
            return COUNTS
        if instance.phase != "here" and any(item.capacity for item in self.instances.values()):
            return IGNORED
        if instance.failed(self._options) and self._may_put_out(instance):
            retracted = tuple(instance.run)
            instance.eject(self._options, now)
            return Health(counts=False, retracted=retracted)
        instance.run.append(ticket)
        return COUNTS

    def keep_share(self) -> None:
        """Let instances return early when too large a share is out, because others have left."""
        while self._out_count() > self._out_max():
            out = [item for item in self.instances.values() if item.phase == "here" and item.standing == "out"]
            min(out, key=lambda item: item.out_until).let_return()

    def state(self) -> AgentState:
        """How it stands, for people and for checks."""
        shown = [
            InstanceState(
                name=item.name,
                phase=item.phase,
                standing=item.standing,
                limit=item.limit,
                outstanding=item.outstanding,
                resting=len(item.resting),
                over=item.over,
                adopted=item.adopted,
                out_until=item.out_until if item.standing == "out" else None,
            )
            for item in self.instances.values()
        ]
        return AgentState(agent=self.agent, queued=self.queue.size, instances=tuple(shown))

    def _is_sole(self, instance: Instance) -> bool:
        return not any(item.capacity for item in self.instances.values() if item is not instance)

    def _may_put_out(self, instance: Instance) -> bool:
        return instance.phase == "here" and self._out_count() < self._out_max()

    def _out_count(self) -> int:
        return sum(item.phase == "here" and item.standing == "out" for item in self.instances.values())

    def _out_max(self) -> int:
        here = sum(item.phase == "here" for item in self.instances.values())
        return int(here * self._options.ejected_share_max)

    def _wait_s(self, call: Call) -> float:
        slots = sum(item.capacity for item in self.instances.values())
        return (self.queue.ahead_of(call) + 1) * self._hold_s / max(1, slots)

    def _retry_s(self, call: Call) -> float:
        return max(RETRY_S_MIN, self._wait_s(call))
