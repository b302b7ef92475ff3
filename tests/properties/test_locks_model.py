"""Locks under random histories, held against a naive model that walks through everything after every step."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentgate.core.lock import LockTicket, go_together
from agentgate.core.locks import LockOptions, Locks
from agentgate.model import LockMode

NAMES = ("a", "b", "c", "d")
UNITS = ("u1", "u2", "u3", "u4", "u5", "u6")
PROCESSES = ("p1", "p2", "p3")
LEASE_S = 30.0
MODES: st.SearchStrategy[LockMode] = st.sampled_from(["exclusive", "exclusive", "shared"])


class Naive:
    """What the rules say, without any cleverness: lines of requests, walked again and again until nothing moves."""

    def __init__(self) -> None:
        self.lines: dict[str, list[LockTicket]] = {name: [] for name in NAMES}
        self.places: dict[LockTicket, int] = {}  # how many of its names a request has reached

    def add(self, ticket: LockTicket) -> None:
        self.places[ticket] = 0
        self.lines[ticket.names[0]].append(ticket)
        self.settle()

    def remove(self, ticket: LockTicket) -> None:
        del self.places[ticket]
        for line in self.lines.values():
            if ticket in line:
                line.remove(ticket)
        self.settle()

    def is_held(self, ticket: LockTicket) -> bool:
        return self.places[ticket] == len(ticket.names)

    def settle(self) -> None:
        while any(self._step(ticket) for ticket in list(self.places)):
            pass

    def _step(self, ticket: LockTicket) -> bool:
        place = self.places[ticket]
        if place == len(ticket.names):
            return False
        line = self.lines[ticket.names[place]]
        if not all(go_together(ticket, other) for other in line[: line.index(ticket)]):
            return False
        self.places[ticket] = place + 1
        if place + 1 < len(ticket.names):
            self.lines[ticket.names[place + 1]].append(ticket)
        return True


class LocksHistory(RuleBasedStateMachine):
    """Units ask, wait, hold, give back, end; processes live, fall silent and go; time passes."""

    @initialize()
    def begin(self) -> None:
        self.locks = Locks(LockOptions(lease_s=LEASE_S), draw=lambda: 0.5, epoch=1)
        self.naive = Naive()
        self.now = 0.0
        self.open: list[LockTicket] = []
        self.asked = 0
        self.epochs: dict[str, int] = {}  # of the last grant, by name
        self.is_held: set[LockTicket] = set()

    @rule(
        names=st.sets(st.sampled_from(NAMES), min_size=1, max_size=3),
        mode=MODES,
        unit=st.sampled_from(UNITS),
        patience=st.sampled_from([0.0, 5.0, 20.0, 500.0]),
    )
    def ask(self, names: set[str], mode: LockMode, unit: str, patience: float) -> None:
        self.asked += 1
        ticket = LockTicket(
            id=f"l{self.asked}",
            names=tuple(sorted(names)),
            process=PROCESSES[UNITS.index(unit) % len(PROCESSES)],
            mode=mode,
            unit=unit,
            owner="agent",
            deadline=self.now + patience,
        )
        own = [other for other in self.open if other.unit == unit]
        in_order = all(other.state == "held" and max(other.names) < min(names) for other in own)
        in_order = in_order and self.locks.lost_by(unit) is None
        refusal = self.locks.request(ticket, self.now)
        if not in_order:
            assert refusal is not None
            assert refusal.code in ("bad_request", "lease_lost")
            return
        self.naive.add(ticket)
        if refusal is not None:
            assert refusal.code == "deadline_exceeded"
            assert patience == 0.0
            assert not self.naive.is_held(ticket)
            self.naive.remove(ticket)
            self.hear()
        else:
            self.open.append(ticket)
            self.note_grant(ticket)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(self.open))
        self.locks.release(ticket, self.now)
        self.forget(ticket)
        self.hear()

    @rule(unit=st.sampled_from(UNITS))
    def unit_ends(self, unit: str) -> None:
        self.locks.end_unit(unit, self.now)
        for ticket in [ticket for ticket in self.open if ticket.unit == unit]:
            self.forget(ticket)
        self.hear()

    @rule(process=st.sampled_from(PROCESSES))
    def process_goes(self, process: str) -> None:
        self.locks.end_process(process, self.now)
        for ticket in [ticket for ticket in self.open if ticket.process == process]:
            self.forget(ticket)
        self.hear()

    @rule(process=st.sampled_from(PROCESSES))
    def process_lives(self, process: str) -> None:
        self.locks.renew(process, self.now)

    @rule(seconds=st.sampled_from([0.0, 1.0, 6.0, 15.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.hear()

    def forget(self, ticket: LockTicket) -> None:
        self.open.remove(ticket)
        self.is_held.discard(ticket)
        self.naive.remove(ticket)

    def note_grant(self, ticket: LockTicket) -> None:
        if ticket.state != "held" or ticket in self.is_held:
            return
        self.is_held.add(ticket)
        for name in ticket.names:
            assert ticket.epoch > self.epochs.get(name, 0), "an epoch has not grown"
            self.epochs[name] = ticket.epoch

    def hear(self) -> None:
        for ticket, problem in self.locks.tick(self.now):
            if problem is not None:
                assert problem.code == "deadline_exceeded"
                assert ticket.deadline <= self.now
                self.forget(ticket)
            elif ticket.state == "lost":
                assert ticket.lease_ends_at <= self.now
                self.forget(ticket)
            elif ticket.state == "held":
                self.note_grant(ticket)
            else:
                assert ticket not in self.open, "given up by nobody"

    @invariant()
    def is_as_the_rules_say(self) -> None:
        """All or nothing, in the order of coming: the naive model agrees about every request."""
        assert set(self.locks) == set(self.open)
        for ticket in self.open:
            assert (ticket.state == "held") == self.naive.is_held(ticket)
            assert ticket.front == self.naive.places[ticket]
            assert (ticket in self.is_held) == (ticket.state == "held")

    @invariant()
    def nobody_holds_beside_another(self) -> None:
        """Never two exclusive holders, never shared beside exclusive."""
        held = [ticket for ticket in self.open if ticket.state == "held"]
        for one in held:
            for other in held:
                together = one is other or go_together(one, other) or not set(one.names) & set(other.names)
                assert together

    @invariant()
    def somebody_can_always_go_on(self) -> None:
        """D6: locks alone make no circle: following who has to go first always ends at a unit that waits for none."""
        waits: dict[str, set[str]] = {}
        for ticket in self.open:
            if ticket.waiting:
                ahead = {unit for group in self.locks.groups(ticket) for unit in group}
                waits.setdefault(ticket.unit, set()).update(ahead)
        while waits:
            free = [unit for unit, ahead in waits.items() if not ahead & waits.keys()]
            assert free, f"a circle: {waits}"
            for unit in free:
                del waits[unit]

    @invariant()
    def the_next_ones_stand_for_all(self) -> None:
        """What the wait graph is told, the next ones ahead, reaches exactly those who have to go first."""
        told: dict[str, set[str]] = {}
        true: dict[str, set[str]] = {}
        for ticket in filter(lambda ticket: ticket.waiting, self.open):
            told[ticket.unit] = {unit for group in self.locks.groups(ticket) for unit in group}
            standing = self.locks.standing()
            wanted = [standing[name] for name in ticket.names[ticket.front :] if name in standing]
            true[ticket.unit] = {other.unit for lock in wanted for other in lock.before(ticket)}
        assert all(told[unit] <= true[unit] for unit in told)
        assert [reached(told, unit) for unit in told] == [reached(true, unit) for unit in told]

    def teardown(self) -> None:
        for unit in UNITS if hasattr(self, "locks") else ():
            self.unit_ends(unit)
        if hasattr(self, "locks"):
            assert not self.open
            assert self.locks.standing() == {}
            assert self.locks.tick(1e9) == []
            assert self.locks.next_deadline() is None


def reached(edges: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    row = [start]
    while row:
        near = edges.get(row.pop(), set()) - found
        found |= near
        row += near
    return found


TestLocksHistory = LocksHistory.TestCase
TestLocksHistory.settings = settings(max_examples=150, stateful_step_count=50)
