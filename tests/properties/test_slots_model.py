"""Slots under random histories: what the order of service is, and what must hold after every step."""

from __future__ import annotations

from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentgate.core.policy import Admit, Park, Refuse, Wake
from agentgate.core.slots import InstanceState, SlotOptions, Slots, SlotTicket
from agentgate.core.verdict import InstanceVerdict
from agentgate.model import Call, Outcome, problem

NAMES = ("one", "two", "three", "four")
VERDICTS: st.SearchStrategy[InstanceVerdict] = st.sampled_from(["ok", "fault", "fault", "fault", "neutral"])
KEYS = st.sampled_from(["", "key-0", "key-0", "key-1"])
QUEUE_MAX = 4
OPEN_FACTOR = 2
AVOID_S = 3.0
OK = Outcome(value=1)


class SlotsHistory(RuleBasedStateMachine):
    """Calls come, wait, run, rest, fail and leave; instances join, fail and go; time passes."""

    @initialize()
    def begin(self) -> None:
        options = SlotOptions(
            queue_max=QUEUE_MAX, open_factor=OPEN_FACTOR, avoid_s=AVOID_S, ejection_faults=2, holds_min=10**6
        )
        self.slots = Slots(options)
        self.now = 0.0
        self.running: list[SlotTicket] = []
        self.resting: list[SlotTicket] = []
        self.waiting: list[SlotTicket] = []
        self.seatless: list[SlotTicket] = []  # zombies, and units that have not come back: they hold keys only
        self.told: set[SlotTicket] = set()  # left the queue without its owner's doing; the next tick says so
        self.limits: dict[str, int] = {}  # the largest limit under which something may still run
        self.expected_until = -inf
        self.join("one", 3)
        self.join("two", 2)

    # --- calls ---

    @rule(count=st.integers(2, 6), avoid=st.sampled_from(["", *NAMES[:2]]), exclusive=KEYS)
    def many_calls(self, count: int, avoid: str, exclusive: str) -> None:
        for _ in range(count):
            self.call(5, avoid, 100.0, heir=False, exclusive=exclusive)

    @rule(
        priority=st.sampled_from([2, 5, 5, 7]),
        avoid=st.sampled_from(["", "", *NAMES]),
        patience=st.sampled_from([0.0, 3.0, 100.0, 100.0]),
        heir=st.booleans(),
        exclusive=KEYS,
    )
    def call(self, priority: int, avoid: str, patience: float, heir: bool, exclusive: str) -> None:
        place = 0
        if heir and self.waiting:
            place, priority = self.waiting[0].place, self.waiting[0].call.priority
            self.give_back(self.waiting[0])
        call = Call(
            id="c",
            target="stock",
            task_type="look",
            agent="stock",
            priority=priority,
            avoid=avoid,
            deadline=self.now + patience,
            place=place,
            exclusive=exclusive,
        )
        asked = self.slots.ask(call, self.now)
        before = self.instances()
        decision = self.slots.admit(call, self.now)
        if isinstance(decision, Refuse):
            assert asked == decision.error
            self.check_refusal(call, decision.error.code)
            return
        assert asked is None
        assert isinstance(decision.ticket, SlotTicket)
        if isinstance(decision, Park):
            assert decision.until == call.deadline
            self.note_displaced(decision.ticket)
            self.waiting.append(decision.ticket)
        else:
            self.check_choice(decision.ticket, before)
            assert not [other for other in self.waiting if self.goes_before(other, decision.ticket)]
            assert self.may_begin(decision.ticket)
            self.seated(decision.ticket)

    def seated(self, ticket: SlotTicket) -> None:
        """It runs; as a rule it is known at once which unit that is."""
        ticket.unit = f"unit-{ticket.place}" if ticket.place % 9 else ""
        self.running.append(ticket)

    def check_refusal(self, call: Call, code: str) -> None:
        present = bool(self.instances()) or self.now < self.expected_until
        queue = [ticket for ticket in self.waiting if ticket not in self.told]
        full = len(queue) >= QUEUE_MAX and all(ticket.call.priority >= call.priority for ticket in queue)
        assert code == (
            "no_route" if not present else "deadline_exceeded" if call.deadline <= self.now else "overloaded"
        )
        assert code != "overloaded" or full

    def check_choice(self, ticket: SlotTicket, before: dict[str, InstanceState]) -> None:
        chosen = before[ticket.instance]
        able = {name: room(shown, self.now) for name, shown in before.items() if capacity(shown, self.now) > 0}
        assert able[ticket.instance] > 0
        assert ticket.instance != ticket.call.avoid or list(able) == [ticket.instance]
        rivals = [before[name] for name, free in able.items() if free > 0 and name != ticket.call.avoid]
        assert all(chosen.outstanding <= rival.outstanding for rival in rivals)

    def goes_before(self, other: SlotTicket, newcomer: SlotTicket) -> bool:
        able = [name for name, shown in self.instances().items() if capacity(shown, self.now) > 0]
        wants = other.avoid != newcomer.instance or able == [newcomer.instance]
        return other not in self.told and wants and self.may_begin(other) and order(other) < order(newcomer)

    def may_begin(self, ticket: SlotTicket) -> bool:
        """Whether nothing holds its exclusive key: nothing that is open, does not stop, or may still run somewhere."""
        return not self.holders_of(ticket.call)

    def holders_of(self, call: Call) -> list[SlotTicket]:
        key, taken = call.exclusive, (*self.running, *self.resting, *self.seatless)
        return [ticket for ticket in taken if key and ticket.call.exclusive == key]

    def note_displaced(self, newcomer: SlotTicket) -> None:
        queue = [ticket for ticket in self.waiting if ticket not in self.told]
        if len(queue) >= QUEUE_MAX:
            victim = max(queue, key=order)
            assert victim.call.priority < newcomer.call.priority
            self.told.add(victim)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), all_of_them=st.booleans())
    def rest(self, data: st.DataObject, all_of_them: bool) -> None:
        """Units begin to wait: they count no more, and hold what they hold."""
        first = data.draw(st.integers(0, len(self.running) - 1))
        begin = self.running[:] if all_of_them else [self.running[first]]
        for ticket in begin:
            self.running.remove(ticket)
            self.slots.rest(ticket, self.now)
            self.slots.rest(ticket, self.now)  # there is nothing left to give
            self.resting.append(ticket)

    @precondition(lambda self: self.resting)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        """Its wait is over: it counts at once, whoever has its place, and stands in no queue."""
        ticket = self.resting.pop(data.draw(st.integers(0, len(self.resting) - 1)))
        queued = self.slots.queued("stock")
        self.slots.resume(ticket, self.now)
        self.slots.resume(ticket, self.now)
        assert ticket.stage == "seated"
        assert self.slots.queued("stock") == queued
        self.running.append(ticket)

    @precondition(lambda self: self.running or self.resting)
    @rule(data=st.data(), kind=VERDICTS, how=st.sampled_from(["settle", "abandon", "overstay"]))
    def end(self, data: st.DataObject, kind: InstanceVerdict, how: str) -> None:
        ticket = data.draw(st.sampled_from([*self.running, *self.resting]))
        (self.running if ticket in self.running else self.resting).remove(ticket)
        instance = self.instances().get(ticket.instance)
        was_out = instance is not None and instance.standing == "out"
        health = self.slots.record(ticket, kind, self.now)
        assert not (health.counts and was_out)
        assert not (health.retracted and health.counts)
        assert all(fault.instance == ticket.instance for fault in health.retracted)
        if how == "settle":
            self.slots.settle(ticket, OK, self.now)
        elif how == "abandon":
            self.slots.abandon(ticket, self.now)
        else:
            self.slots.overstay(ticket, self.now)
            self.slots.rest(ticket, self.now)  # its calls go on: who has no slot neither rests nor resumes
            self.slots.resume(ticket, self.now)
            self.seatless.append(ticket)

    @precondition(lambda self: self.seatless)
    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def end_at_last(self, data: st.DataObject, name: str) -> None:
        """A zombie ends; a unit that an earlier gate had running is found, or given up."""
        ticket = self.seatless.pop(data.draw(st.integers(0, len(self.seatless) - 1)))
        if ticket.seat is None and name in self.instances():
            assert self.slots.adopt(ticket.call, name, self.now, ticket) is ticket
            self.seated(ticket)
        else:
            self.slots.settle(ticket, OK, self.now)

    @rule(name=st.sampled_from(NAMES))
    def fail(self, name: str) -> None:
        for ticket in [ticket for ticket in self.running if ticket.instance == name]:
            self.running.remove(ticket)
            self.slots.record(ticket, "fault", self.now)
            self.slots.settle(ticket, OK, self.now)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def leave_the_queue(self, data: st.DataObject) -> None:
        self.give_back(self.waiting[data.draw(st.integers(0, len(self.waiting) - 1))])

    def give_back(self, ticket: SlotTicket) -> None:
        self.waiting.remove(ticket)
        self.told.discard(ticket)
        self.slots.abandon(ticket, self.now)

    def evict(self) -> None:
        queue = {ticket for ticket in self.waiting if ticket not in self.told}
        assert self.slots.evict("stock", None, problem("breaker_open")) == len(queue)
        self.told |= queue

    # --- instances ---

    @rule(
        what=st.sampled_from(["join", "join", "away", "drain", "leave", "adopt", "hold", "expect", "evict"]),
        name=st.sampled_from(NAMES),
        number=st.integers(1, 3),
    )
    def change(self, what: str, name: str, number: int) -> None:
        """Everything that is rare beside calls, in one rule, so that calls stay frequent."""
        if what == "join":
            self.join(name, number)
        elif what == "adopt":
            self.adopt(name)
        elif what == "hold":
            self.seatless.append(self.slots.hold(work(f"key-{number % 2}"), self.now))
        elif what == "expect":
            self.expect(10.0 * number)
        elif what == "evict":
            self.evict()
        else:
            getattr(self.slots, what)(name)

    def join(self, name: str, limit: int) -> None:
        self.slots.join("stock", name, limit, self.now)
        self.limits[name] = max(limit, self.limits.get(name, 0))

    def adopt(self, name: str) -> None:
        if name in self.instances():
            self.seated(self.slots.adopt(work("key-1"), name, self.now))

    def expect(self, seconds: float) -> None:
        self.slots.expect("stock", self.now + seconds, self.now)
        self.expected_until = max(self.expected_until, self.now + seconds)

    # --- time ---

    @rule(seconds=st.sampled_from([0.0, 0.0, 0.0, 0.0, 1.0, 10.0]))
    def tick(self, seconds: float) -> None:
        self.now += seconds
        due = self.slots.next_deadline()
        wakes = self.slots.tick(self.now)
        assert not wakes or (due is not None and due <= self.now)
        for wake in wakes:
            self.check_wake(wake)
        assert self.slots.tick(self.now) == []
        assert not self.told
        self.check_nobody_waits_in_vain()

    def check_wake(self, wake: Wake) -> None:
        ticket = wake.ticket
        assert isinstance(ticket, SlotTicket)
        self.waiting.remove(ticket)
        if isinstance(wake.decision, Admit):
            assert ticket.call.deadline > self.now
            assert ticket not in self.told
            assert not [other for other in self.waiting if self.goes_before(other, ticket)]
            assert self.may_begin(ticket)
            self.seated(ticket)
        else:
            code = wake.decision.error.code
            gone = not self.instances() and self.now >= self.expected_until
            assert (code in ("overloaded", "breaker_open")) == (ticket in self.told)
            assert code != "deadline_exceeded" or ticket.call.deadline <= self.now
            assert code != "no_route" or gone
            self.told.discard(ticket)

    def check_nobody_waits_in_vain(self) -> None:
        shown = self.instances()
        assert bool(shown) or self.now < self.expected_until or not self.waiting
        able = [name for name, item in shown.items() if capacity(item, self.now) > 0]
        free = [name for name in able if room(shown[name], self.now) > 0]
        for ticket in self.waiting:
            assert ticket.call.deadline > self.now
            if not self.may_begin(ticket):
                continue
            assert not ticket.avoid or self.now < ticket.arrived_at + AVOID_S
            assert [name for name in free if name != ticket.avoid or able == [name]] == []

    # --- what must hold ---

    def instances(self) -> dict[str, InstanceState]:
        return {item.name: item for agent in self.slots.states(-inf) for item in agent.instances}

    @invariant()
    def counts_agree(self) -> None:
        shown = self.instances()
        for name, item in shown.items():
            seats = [(ticket, ticket.seat) for ticket in self.running if ticket.seat is not None]
            alive = [ticket for ticket, seat in seats if seat.name == name and seat.phase != "gone"]
            waits = [(ticket, ticket.seat) for ticket in self.resting if ticket.seat is not None]
            idle = [ticket for ticket, seat in waits if seat.name == name and seat.phase != "gone"]
            assert (item.outstanding, item.resting) == (len(alive), len(idle))
            assert item.adopted == sum(ticket.adopted for ticket in (*alive, *idle))
            assert item.over == sum(ticket.over for ticket in alive)
            assert item.outstanding - item.adopted - item.over <= self.limits[name]
            assert item.outstanding + item.resting - item.adopted <= OPEN_FACTOR * self.limits[name]
        assert self.slots.queued("stock") == len(self.waiting) - len(self.told)
        assert self.slots.queued("stock") <= QUEUE_MAX

    @invariant()
    def holders_are_who_is_in_the_way(self) -> None:
        """Whoever is named runs or rests here, and while nobody is, there is room, or it cannot be known."""
        pool = self.slots.pool("stock")
        assert self.slots.pool("stock") is pool
        holders = pool.holders()
        shown = [item for item in self.instances().values() if item.phase in ("here", "away")]
        if not shown or any(item.phase == "away" or may_take(item, self.now) for item in shown):
            assert holders is None
            return
        in_the_way: list[SlotTicket] = []
        for item in shown:
            runs = [ticket for ticket in self.running if ticket.instance == item.name and is_here(ticket)]
            rests = [ticket for ticket in self.resting if ticket.instance == item.name and is_here(ticket)]
            runs_full = item.standing == "in" and item.outstanding >= item.limit
            in_the_way += runs if runs_full else [*runs, *rests]
        units = [ticket.unit for ticket in in_the_way]
        assert (sorted(holders) if holders is not None else None) == (sorted(units) if all(units) else None)

    @invariant()
    def the_holder_of_a_key_is_named(self) -> None:
        for key in ("key-0", "key-1", ""):
            call = work(key)
            units = {ticket.unit for ticket in self.holders_of(call) if ticket.unit}
            holder = self.slots.key_holder(call)
            assert holder in units if units else holder is None

    @invariant()
    def at_most_half_are_out(self) -> None:
        here = [item for item in self.instances().values() if item.phase == "here"]
        assert sum(item.standing == "out" for item in here) <= len(here) // 2

    def teardown(self) -> None:
        if hasattr(self, "slots"):
            for ticket in (*self.running, *self.resting, *self.seatless):
                self.slots.settle(ticket, OK, self.now)
            for _ in range(20):
                self.now += 100.0
                for wake in self.slots.tick(self.now):
                    if isinstance(wake.decision, Admit):
                        self.slots.settle(wake.ticket, OK, self.now)
            assert self.slots.queued("stock") == self.slots.outstanding("stock") == 0
            assert {(item.resting, item.over, item.adopted) for item in self.instances().values()} <= {(0, 0, 0)}


def work(exclusive: str) -> Call:
    """Work that was found running, or may run somewhere."""
    return Call(id="c", target="stock", task_type="look", agent="stock", exclusive=exclusive)


def capacity(shown: InstanceState, now: float) -> int:
    if shown.phase != "here" or (shown.out_until is not None and now < shown.out_until):
        return 0
    return shown.limit if shown.standing == "in" else 1


def room(shown: InstanceState, now: float) -> int:
    free = capacity(shown, now)
    open_max = OPEN_FACTOR * free if shown.standing == "in" else free
    return min(free - shown.outstanding, open_max - shown.outstanding - shown.resting)


def may_take(shown: InstanceState, now: float) -> bool:
    """Whether there is room, or time alone will bring it."""
    return room(shown, now) > 0 or (shown.standing == "out" and shown.outstanding + shown.resting == 0)


def is_here(ticket: SlotTicket) -> bool:
    return ticket.seat is not None and ticket.seat.phase != "gone"


def order(ticket: SlotTicket) -> tuple[int, int]:
    return (-ticket.call.priority, ticket.place)


TestSlotsHistory = SlotsHistory.TestCase
TestSlotsHistory.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
