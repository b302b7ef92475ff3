"""Slots: how many calls run at an agent at a time, who waits, and on which instance a call runs.

Decides, for a call whose agent is known, between a slot now, a place in the agent's queue, and a refusal. Rules
(DESIGN 4.3):

- A call gets a slot of an instance that has room, or it is parked in the one queue of its agent. The first free
  instance takes the head (`core.agent_slots`, `core.queue`).
- Nobody waits beyond its deadline: then it is refused, and the target has never seen it.
- While at least one instance of an agent is known, be it away for a moment or draining, calls wait for it or for its
  successor. An agent without any instance is `no_route`; but one that is *expected*, because it was known before a
  restart, or has just left and should come back, parks calls until that time.
- Every ticket is given back exactly once, on every path. A ticket that `tick` refused is given back already.
- An exclusive key is held by one call at a time, until its unit has ended (`core.exclusive`), with the exception below.
- A unit that waits rests: its slot is for others, its exclusive key is not. At the end of the wait it resumes: it
  counts at once and is never parked. How many may be open, running or resting, is limited too (`core.instances`).
- Limits are never passed, with two exceptions: a unit that resumes, and one that was found running after a reconnect
  (`adopt`), count at once, and nobody new is admitted until there is room. An instance that declares a smaller limit
  when it comes back keeps what it runs.
- Observed only, the limit makes nobody wait: a call that finds no room runs all the same, at the least busy instance,
  and is counted nowhere. What can run nowhere (everybody is away) waits, or is refused, as ever; so does what waits for
  an exclusive key, for a lock cannot be observed only.

How it works. What changes is marked, and `tick` works off what is marked: queues with free slots, deadlines, times at
which an instance returns, or is avoided no more. Until then `next_deadline` says "now". Agents and instances are
bounded by the directory, which refuses names beyond its own limit; an agent without instances, queue and expectation is
forgotten.

Not covered: whether an instance is alive (`core.presence`), which units can wait without holding a thread (they say so
on their cards), and how long a call may take once it runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentgate.core.agent_slots import COUNTS, AgentSlots, AgentState, Health, InstanceState
from agentgate.core.alarms import Alarms
from agentgate.core.instances import SPOKEN, Instance, Phase, SlotOptions, SlotTicket
from agentgate.core.policy import Admit, Park, Refuse, Ticket, Wake
from agentgate.core.slot_pool import NO_POOL, SlotPool
from agentgate.core.verdict import InstanceVerdict
from agentgate.model import Call, Outcome, Problem, problem

__all__ = ["AgentState", "Health", "InstanceState", "SlotOptions", "SlotTicket", "Slots"]


class Slots:
    """Hands out the slots of all agents; see `core.policy` for the shape."""

    def __init__(self, options: SlotOptions, *, observes: bool = False) -> None:
        self._options = options
        self._observes = observes
        self._agents: dict[str, AgentSlots] = {}
        self._instances: dict[str, Instance] = {}
        self._expected: dict[str, AgentSlots] = {}  # instances that have not come back since a restart
        self._alarms: Alarms[SlotTicket | AgentSlots] = Alarms()
        self._marked: dict[AgentSlots, None] = {}  # something has changed for those who wait there
        self._told: dict[SlotTicket, Problem] = {}  # out of the queue already, to be named by the next tick
        self._places = 0

    # --- the policy ---

    def ask(self, call: Call, now: float) -> Problem | None:
        """The refusal that `admit` would give now; None when it would admit or park."""
        agent = self._agents.get(call.agent)
        if agent is None or not agent.is_present(now):
            return self._no_route(call)
        if call.deadline <= now:
            return _expired(call)
        instance = agent.pick(call.avoid, now)
        if instance is not None and agent.is_turn_of(call, instance):
            return None
        return None if self._observes and agent.least_busy() is not None else agent.refusal(call, now)

    def admit(self, call: Call, now: float) -> Admit | Park | Refuse:
        """A slot now, a place in the queue, or a refusal."""
        agent = self._agents.get(call.agent)
        if agent is None or not agent.is_present(now):
            return Refuse(self._no_route(call))
        if call.deadline <= now:
            return Refuse(_expired(call))
        if self._observes and agent.keys.is_free(call) and agent.least_busy() is not None:
            return Admit(self.shadow(call, now))
        instance = agent.pick(call.avoid, now)
        if instance is not None and agent.is_turn_of(call, instance):
            ticket = self._new_ticket(call, now)
            agent.seat(ticket, instance, now)
            return Admit(ticket)
        error = agent.refusal(call, now)
        return Refuse(error) if error is not None else self._park(agent, call, now)

    def shadow(self, call: Call, now: float) -> SlotTicket:
        """Never wait: the least busy instance, with a slot if there is one, and a note if there is none."""
        ticket = self._new_ticket(call, now)
        agent = self._agents.get(call.agent)
        if agent is None:
            ticket.would = "would_overload"
            return ticket
        instance = agent.pick(call.avoid, now)
        if instance is not None:
            agent.seat(ticket, instance, now)
            return ticket
        ticket.would = "would_queue" if agent.refusal(call, now) is None else "would_overload"
        if (busy := agent.least_busy()) is not None:
            agent.squeeze_in(ticket, busy, now)
        return ticket

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:  # noqa: ARG002 - the shape of a policy
        """The unit has ended: its slot is free."""
        taken = _own(ticket)
        if taken.seat is not None and taken.stage != "seatless":
            self._learn(taken, now)
        self.abandon(taken, now)

    def rest(self, ticket: SlotTicket, now: float) -> None:
        """Its unit waits: its slot is for others until `resume`. Who holds no slot has none to give."""
        if ticket.stage == "seated" and ticket.seat is not None:
            ticket.seat.rest(ticket, now)
            self._mark(ticket.seat.agent)

    def resume(self, ticket: SlotTicket, now: float) -> None:
        """Its unit goes on: it counts at once. Who does not rest, because its unit has overstayed, stays as it is."""
        if ticket.stage == "resting" and ticket.seat is not None:
            ticket.seat.resume(ticket, now)

    def overstay(self, ticket: SlotTicket, now: float) -> None:
        """Its unit does not stop: its slot is free all the same, its exclusive key is not until `settle`."""
        assert ticket.stage in ("seated", "resting", "new"), "only who is open can overstay"
        self._learn(ticket, now)
        if ticket.stage != "new":
            self._vacate(ticket)
        ticket.stage = "seatless"

    def abandon(self, ticket: Ticket, now: float) -> None:  # noqa: ARG002 - the shape of a policy
        """The call left: its slot, its place in the queue, its exclusive key is free."""
        taken = _own(ticket)
        assert taken.stage != "done", "a slot ticket ends once"
        if taken.stage == "parked":
            self._agents[taken.call.agent].queue.remove(taken)
        elif taken.stage == "told":
            del self._told[taken]
        elif taken.stage in ("seated", "resting"):
            self._vacate(taken)
        if taken.keys is not None:
            taken.let_go()
            self._mark(taken.call.agent)
        taken.stage = "done"

    def tick(self, now: float) -> list[Wake]:
        """Whoever gets a slot now, and whoever waited in vain."""
        wakes = [Wake(ticket, Refuse(error)) for ticket, error in self._told.items()]
        self._told.clear()
        for due in dict.fromkeys(self._alarms.pop_due(now)):
            if isinstance(due, AgentSlots):
                self._marked[due] = None
            elif now < due.call.deadline:
                due.avoid = ""
                self._mark(due.call.agent)
            else:
                self._agents[due.call.agent].queue.remove(due)
                wakes.append(Wake(due, Refuse(_expired(due.call))))
        for wake in wakes:
            _own(wake.ticket).stage = "done"
        marked, self._marked = self._marked, {}
        for agent in marked:
            wakes += self._serve(agent, now)
        return wakes

    def next_deadline(self) -> float | None:
        """When `tick` has something to do: 0.0 when it has now."""
        return 0.0 if self._told or self._marked else self._alarms.next()

    def queued_s(self, ticket: SlotTicket) -> float:
        """How long the call waited for its slot."""
        return ticket.seated_at - ticket.arrived_at

    # --- who is there ---

    def join(self, agent: str, instance: str, concurrency: int | None, now: float) -> None:
        """It takes calls from now on, also after it was away."""
        known = self._instances.get(instance)
        if known is not None and known.agent != agent:
            self.leave(instance)
            known = None
        slots = self._agents.get(agent) or self._new_agent(agent)
        limit = concurrency if concurrency is not None else self._options.concurrency_default
        if known is None:
            known = Instance(agent, instance, limit, self._options)
            known.well_since = now
            self._instances[instance] = slots.instances[instance] = known
        known.limit = limit
        self._expect_no_more(instance)
        self._set_phase(instance, "here")

    def away(self, instance: str) -> None:
        """It may come back: it keeps what it runs and gets nothing new."""
        self._set_phase(instance, "away")

    def drain(self, instance: str) -> None:
        """It finishes what it runs and gets nothing new."""
        self._set_phase(instance, "draining")

    def leave(self, instance: str) -> None:
        """It is gone for good."""
        self._expect_no_more(instance)
        self._set_phase(instance, "gone")
        gone = self._instances.pop(instance, None)
        if gone is not None:
            del self._agents[gone.agent].instances[instance]

    def expect(self, agent: str, until: float, now: float, instances: Iterable[str] = ()) -> None:
        """Park calls of an agent without instances until then, because one should come.

        Of `instances` each one is expected until it joins or leaves.
        """
        if until > now:
            slots = self._agents.get(agent) or self._new_agent(agent)
            slots.expected_until = max(slots.expected_until, until)
            slots.expected.update(instances)
            self._expected.update(dict.fromkeys(slots.expected, slots))
            self._alarms.add(until, slots)

    def hold(self, call: Call, now: float) -> SlotTicket:
        """A unit of it may run somewhere: until `settle`, or until it is adopted, its exclusive key is held."""
        ticket = self._new_ticket(call, now)
        ticket.stage = "seatless"
        ticket.hold((self._agents.get(call.agent) or self._new_agent(call.agent)).keys)
        return ticket

    def adopt(self, call: Call, instance: str, now: float, held: SlotTicket | None = None) -> SlotTicket:
        """A unit that was found running counts at once; raises `KeyError` unless the instance has joined.

        `held` is its ticket, if its exclusive key was held meanwhile.
        """
        known = self._instances[instance]
        ticket = held if held is not None else self._new_ticket(call, now)
        ticket.adopted = True
        self._agents[known.agent].seat(ticket, known, now)
        return ticket

    def evict(self, agent: str, task_type: str | None, error: Problem) -> int:
        """Refuse those who wait for this agent with this task type (None: with any); how many there were."""
        slots = self._agents.get(agent)
        waiting = slots.queue.of_type(task_type) if slots is not None else []
        for ticket in waiting:
            self._tell(ticket, error)
        return len(waiting)

    def record(self, ticket: SlotTicket, kind: InstanceVerdict, now: float) -> Health:
        """What became of an attempt says this about its instance; to be asked before the breaker is told.

        A ticket speaks once: what is said about it later counts for nobody.
        """
        instance = ticket.seat
        slots = self._agents.get(instance.agent) if instance is not None else None
        if instance is None or slots is None:
            return COUNTS
        term = instance.term
        health = slots.record(ticket, instance, kind, now)
        ticket.term = SPOKEN
        if instance.term != term:
            self._alarms.add(instance.out_until, slots)
        self._mark(instance.agent)
        return health

    # --- what is there to see ---

    def outstanding(self, agent: str) -> int:
        """How many calls of this agent hold a slot."""
        slots = self._agents.get(agent)
        return sum(item.outstanding for item in slots.instances.values()) if slots is not None else 0

    def pool(self, agent: str) -> SlotPool:
        """Its slots, as those see them who wait for one; the same object as long as the agent is known.

        Observed only, nobody waits for room.
        """
        slots = self._agents.get(agent)
        return slots.pool if slots is not None and not self._observes else NO_POOL

    def key_holder(self, call: Call) -> str | None:
        """The unit that has to end before this call may have its exclusive key; None: nobody, or nobody knows."""
        slots = self._agents.get(call.agent)
        return slots.keys.unit_holding(call) if slots is not None else None

    def queued(self, agent: str, task_type: str | None = None) -> int:
        """How many calls wait for this agent, of one task type or of all."""
        slots = self._agents.get(agent)
        return slots.queue.count(task_type) if slots is not None else 0

    def states(self, now: float) -> list[AgentState]:
        """Every agent that is known or expected, by name."""
        return [slots.state() for _, slots in sorted(self._agents.items()) if slots.is_present(now)]

    def _park(self, agent: AgentSlots, call: Call, now: float) -> Park:
        displaced = agent.displaced_by(call) if agent.queue.size >= self._options.queue_max else None
        if displaced is not None:
            self._tell(displaced, agent.overloaded(displaced.call))
        ticket = self._new_ticket(call, now)
        ticket.stage = "parked"
        agent.queue.push(ticket)
        self._alarms.add(call.deadline, ticket)
        if ticket.avoid:
            self._alarms.add(now + self._options.avoid_s, ticket)
        self._mark(call.agent)
        return Park(ticket, call.deadline)

    def _serve(self, agent: AgentSlots, now: float) -> list[Wake]:
        if agent.is_present(now):
            wakes = agent.dispatch(now)
            return wakes + agent.dispatch_over_limit(now) if self._observes else wakes
        if self._agents.get(agent.agent) is agent and not agent.keys:
            del self._agents[agent.agent]
        waiting = agent.queue.of_type(None)
        for ticket in waiting:
            agent.queue.remove(ticket)
            ticket.stage = "done"
        return [Wake(ticket, Refuse(self._no_route(ticket.call))) for ticket in waiting]

    def _tell(self, ticket: SlotTicket, error: Problem) -> None:
        self._agents[ticket.call.agent].queue.remove(ticket)
        ticket.stage = "told"
        self._told[ticket] = error

    def _learn(self, ticket: SlotTicket, now: float) -> None:
        """How long slots are held."""
        assert ticket.seat is not None, "who is seated has a seat"
        agent = self._agents.get(ticket.seat.agent)
        if agent is not None:
            agent.release(ticket, now)

    def _vacate(self, ticket: SlotTicket) -> None:
        assert ticket.seat is not None, "who is seated has a seat"
        ticket.seat.release(ticket)
        self._mark(ticket.seat.agent)

    def _set_phase(self, instance: str, phase: Phase) -> None:
        known = self._instances.get(instance)
        if known is not None:
            known.phase = phase
            slots = self._agents[known.agent]
            slots.keep_share()
            self._marked[slots] = None

    def _expect_no_more(self, instance: str) -> None:
        slots = self._expected.pop(instance, None)
        if slots is not None:
            slots.expected.discard(instance)

    def _mark(self, agent: str) -> None:
        slots = self._agents.get(agent)
        if slots is not None and (slots.queue.size or not slots.instances):
            self._marked[slots] = None

    def _new_ticket(self, call: Call, now: float) -> SlotTicket:
        place = call.place
        if not place:
            self._places = place = self._places + 1
        return SlotTicket(call, place=place, arrived_at=now, seated_at=now, avoid=call.avoid)

    def _new_agent(self, agent: str) -> AgentSlots:
        slots = self._agents[agent] = AgentSlots(agent, self._options)
        return slots

    def _no_route(self, call: Call) -> Problem:
        detail = f"{call.agent or call.target}: no instance is there"
        return problem("no_route", retry_after_s=self._options.no_route_retry_s, detail=detail)


def _own(ticket: Ticket) -> SlotTicket:
    assert isinstance(ticket, SlotTicket), "a ticket of another policy"
    return ticket


def _expired(call: Call) -> Problem:
    return problem("deadline_exceeded", detail=f"{call.agent}: no slot came free before the deadline")
