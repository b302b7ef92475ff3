"""One running process of an agent, as the slots see it: how busy it is, and whether it is fit.

Decides how many calls an instance takes now and what a fault of it means. Its *standing* is a table machine::

    in --eject--> out --return--> trial --well--> in
                   ^                |
                   `----- eject ----'

Rules (DESIGN 4.3):

- An instance that is *in* takes as many calls as its limit says, one on *trial* takes one, one that is *out* none.
- `ejection_faults` faults in a row make it a candidate for ejection; on trial, one does. Whether it may be ejected is
  for the whole agent to say (`core.agent_slots`): at most a share of the instances may be out.
- It is out for `eject_s`, twice that every time up to `eject_max_s`. What it answers well after its return ends the
  trial; each `eject_max_s` of good standing after that takes one doubling back.
- Answers to calls from before its last ejection come late and say nothing about it now.
- A unit that waits *rests*: it does not count. When it resumes it counts at once, over the limit if need be (`over`),
  and so does a unit that was found running after a reconnect (`adopted`); then nobody new is taken until there is room.
- Resting units are still *open*: they hold memory, and will go on. There are at most `open_factor` times the limit of
  open units; on trial, one.

How it works. A *term* is the time between two ejections; every ticket remembers the term it was seated in. The run of
faults keeps only the tickets that a later ejection would have to take back. Who runs and who rests is kept as tickets,
so that it can be said on whom a waiting call depends (`core.slot_pool`).

Not covered: whether the process is alive (`core.presence`), and the agent's own breaker.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

from agentgate.core.breakers import BreakerTicket
from agentgate.core.exclusive import ExclusiveKeys
from agentgate.core.policy import Ticket
from agentgate.core.ranges import require
from agentgate.core.table import step

Phase = Literal["here", "away", "draining", "gone"]  # as the directory says
Standing = Literal["in", "out", "trial"]
StandingEvent = Literal["eject", "return", "well"]

TABLE: Final[dict[tuple[Standing, StandingEvent], Standing]] = {
    ("in", "eject"): "out",
    ("out", "return"): "trial",
    ("trial", "well"): "in",
    ("trial", "eject"): "out",
}

SPOKEN: Final = -1  # the term of a ticket whose outcome has been recorded
DOUBLINGS_MAX: Final = 16  # far beyond what `eject_max_s` cuts off


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotOptions:
    """How many calls an agent's instances take and how many may wait. Times in seconds.

    - `concurrency_default`, 8: for an instance that declares none.
    - `open_factor`, 8: units that wait cost memory and no thread, so a process can have many more of them than it runs;
      it needs enough that chains of agents which call one another do not wait for each other's slots.
    - `queue_max`, 1 000 calls an agent: at 8 slots and 100 ms a call the last one waits for 12 s, within a deadline.
    - `ejection_faults`, 3: fewer than the five that open a breaker, so that one bad process goes first.
    - `eject_s`, 10, doubling to `eject_max_s`, 60: long enough for a restart.
    - `ejected_share_max`, 0.5: more than half of an agent failing is the agent's fault, the breaker's business.
    - `no_route_retry_s`, 3: about how long an agent takes to come back after losing its link.
    - `avoid_s`, 1: a retry waits so long for another instance than the one that failed it. A slot elsewhere mostly
      comes free sooner, and after that time the same instance may well have got over it.
    - `holds_min`, 20: after so many finished calls the expected wait is known well enough to refuse what cannot be
      served before its deadline.
    """

    concurrency_default: int = 8
    open_factor: int = 8
    queue_max: int = 1000
    ejection_faults: int = 3
    eject_s: float = 10.0
    eject_max_s: float = 60.0
    ejected_share_max: float = 0.5
    no_route_retry_s: float = 3.0
    avoid_s: float = 1.0
    holds_min: int = 20

    def __post_init__(self) -> None:
        require(self, "concurrency_default", "open_factor", "ejection_faults", low=1)
        require(self, "queue_max", "no_route_retry_s", "avoid_s", "holds_min")
        require(self, "eject_s", "eject_max_s", low=0.001)
        require(self, "ejected_share_max", high=1.0)
        if self.eject_max_s < self.eject_s:
            raise ValueError(f"eject_max_s ({self.eject_max_s:g}) must not be below eject_s ({self.eject_s:g})")


class SlotTicket(Ticket, eq=False, kw_only=True):
    """A call that waits for a slot or has one; `instance` names whose, once it has.

    `place` is where it stood in the queue, for whoever takes the place over; `avoid` the instance that it does not take
    yet. The gateway sets `unit`, the unit that it belongs to, and `breaker`, the ticket of the same attempt at the
    breakers, so that both can be taken back together.

    Its stages: parked (in the queue) and told (out of it, refused with the next tick); seated (it holds a slot) and
    resting (its unit waits, the slot is free); new (it runs without a slot, beyond an observed limit); seatless (it
    lost its slot, or may run somewhere, and holds its exclusive key only); done.
    """

    place: int
    arrived_at: float
    seated_at: float
    avoid: str = ""
    unit: str = ""
    seat: Instance | None = None
    term: int = 0
    adopted: bool = False
    over: bool = False  # it came back from a wait when there was no room
    rested_at: float = 0.0  # meaningful while it rests
    rested_s: float = 0.0  # in all the waits that are over
    breaker: BreakerTicket | None = None
    keys: ExclusiveKeys | None = None  # where it holds the call's exclusive key
    stage: Literal["new", "parked", "told", "seated", "resting", "seatless", "done"] = "new"

    @property
    def instance(self) -> str:
        """The instance whose slot it has, or an empty string."""
        return self.seat.name if self.seat is not None else ""

    @property
    def waiting(self) -> bool:
        """Whether it stands in the queue."""
        return self.stage == "parked"

    def held_s(self, now: float) -> float:
        """For how long it has had a slot; waits do not count."""
        until = self.rested_at if self.stage == "resting" else now
        return until - self.seated_at - self.rested_s

    def hold(self, keys: ExclusiveKeys) -> None:
        """Hold the call's exclusive key there, if it has one."""
        if self.call.exclusive and self.keys is not keys:
            self.let_go()
            keys.take(self.call.exclusive, self)
            self.keys = keys

    def let_go(self) -> None:
        """Hold no key any more."""
        if self.keys is not None:
            self.keys.release(self.call.exclusive, self)
            self.keys = None


class Instance:
    """One process: who is `seated` holds a slot, who is `resting` waits without one.

    Two counts say why more may be seated than the limit allows: `over` came back from a wait when there was no room,
    `adopted` (resting ones included) were not admitted here.
    """

    __slots__ = (
        "adopted",
        "agent",
        "doublings",
        "limit",
        "name",
        "open_factor",
        "out_until",
        "over",
        "phase",
        "resting",
        "run",
        "run_length",
        "seated",
        "standing",
        "term",
        "turn",
        "well_since",
    )

    def __init__(self, agent: str, name: str, limit: int, options: SlotOptions) -> None:
        self.agent = agent
        self.name = name
        self.limit = limit
        self.open_factor = options.open_factor
        self.phase: Phase = "here"
        self.seated: dict[SlotTicket, None] = {}
        self.resting: dict[SlotTicket, None] = {}
        self.over = 0
        self.adopted = 0
        self.turn = 0  # when it got its last call; among equals it is the turn of the one that waited longest
        self.standing: Standing = "in"
        self.term = 0
        self.run: deque[SlotTicket] = deque(maxlen=options.ejection_faults - 1)  # counted faults in a row
        self.run_length = 0
        self.out_until = 0.0
        self.doublings = 0
        self.well_since = 0.0  # meaningful while it is in

    @property
    def outstanding(self) -> int:
        """How many calls hold a slot."""
        return len(self.seated)

    @property
    def capacity(self) -> int:
        """How many calls may be outstanding before it takes no new one."""
        if self.phase != "here" or self.standing == "out":
            return 0
        return self.limit if self.standing == "in" else 1

    @property
    def has_room(self) -> bool:
        """Whether it takes a new call now."""
        capacity, seated = self.capacity, len(self.seated)
        open_max = capacity * self.open_factor if self.standing == "in" else capacity
        return seated < capacity and seated + len(self.resting) < open_max

    @property
    def may_take(self) -> bool:
        """Whether it takes a new call now, or by the passing of time alone: when it is out, and nothing is in hand."""
        return self.has_room or (self.standing == "out" and not self.seated and not self.resting)

    def in_the_way(self) -> list[SlotTicket]:
        """Who has to end before `may_take`: those that run, or, if too many are open, any of them."""
        runs_full = self.standing == "in" and len(self.seated) >= self.limit
        return list(self.seated) if runs_full else [*self.seated, *self.resting]

    def take(self, ticket: SlotTicket, now: float) -> None:
        """Give it a slot."""
        ticket.seat = self
        ticket.stage = "seated"
        ticket.seated_at = now
        ticket.term = self.term
        self.seated[ticket] = None
        self.adopted += ticket.adopted

    def rest(self, ticket: SlotTicket, now: float) -> None:
        """Its unit waits: it is open still, and holds no slot."""
        del self.seated[ticket]
        self._forget_over(ticket)
        self.resting[ticket] = None
        ticket.stage = "resting"
        ticket.rested_at = now

    def resume(self, ticket: SlotTicket, now: float) -> None:
        """The wait is over: it has a slot again, whether there is one or not."""
        del self.resting[ticket]
        ticket.over = self.outstanding >= self.limit
        self.over += ticket.over
        self.seated[ticket] = None
        ticket.stage = "seated"
        ticket.rested_s += now - ticket.rested_at

    def release(self, ticket: SlotTicket) -> None:
        """It is open no more; if it holds a slot, take it back."""
        del (self.resting if ticket.stage == "resting" else self.seated)[ticket]
        self._forget_over(ticket)
        self.adopted -= ticket.adopted

    def is_late(self, ticket: SlotTicket) -> bool:
        """Whether what became of this call says nothing about the instance as it is now."""
        return ticket.term != self.term or self.standing == "out"

    def answered(self, now: float) -> None:
        """A good answer: the run is over, and so is a trial."""
        self.forget_run()
        if self.standing == "trial":
            self.standing = step(TABLE, self.standing, "well")
            self.well_since = now

    def failed(self, options: SlotOptions) -> bool:
        """A fault; whether it makes the instance a candidate for ejection."""
        self.run_length += 1
        return self.standing == "trial" or self.run_length >= options.ejection_faults

    def forget_run(self) -> None:
        """No fault in a row any more."""
        self.run.clear()
        self.run_length = 0

    def eject(self, options: SlotOptions, now: float) -> None:
        """Out it goes, for a time that grows."""
        if self.standing == "in":
            healed = int((now - self.well_since) / options.eject_max_s)
            self.doublings = max(0, self.doublings - healed)
        self.standing = step(TABLE, self.standing, "eject")
        self.out_until = now + min(options.eject_s * 2**self.doublings, options.eject_max_s)
        self.doublings = min(self.doublings + 1, DOUBLINGS_MAX)
        self.term += 1
        self.forget_run()

    def let_return(self) -> None:
        """Its time is over, or the others need it: it gets one call to show what it can."""
        self.standing = step(TABLE, self.standing, "return")

    def _forget_over(self, ticket: SlotTicket) -> None:
        self.over -= ticket.over
        ticket.over = False
