"""The one shape of every policy (DESIGN 3).

A policy is a plain synchronous object. It is asked whether a call may pass (`admit`) and told afterwards what became
of it (`settle`, or `abandon` when the call never came to an outcome of its own). Rules that hold for all of them:

- Exactly one `settle` or `abandon` for every ticket that was handed out, on every path. A parked ticket whose wake
  was `Refuse` is already given back; one whose wake was `Admit` counts as admitted.
- `tick(now)` returns the parked tickets whose time has come, each with its decision. It is called when
  `next_deadline()` has passed and after every `settle`, `abandon` and change of capacity.
- `ask` answers as `admit` would, takes nothing and leaves no trace (preflight).
- `shadow` is `admit` of observe mode: it always hands out a ticket, notes in `ticket.would` what enforcing would have
  done, feeds statistics, holds no permit and is never parked. A shadow ticket is settled like any other.
- `now` is monotonic seconds; chance is a `draw() -> float` in [0, 1) given at construction.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from agentgate.model import Call, Outcome, Problem

Mode = Literal["off", "observe", "enforce"]

T = TypeVar("T")


class Admit(Struct, frozen=True):
    """The call may pass."""

    ticket: Ticket


class Park(Struct, frozen=True):
    """The call waits; `tick` will decide about this ticket, at `until` at the latest."""

    ticket: Ticket
    until: float


class Refuse(Struct, frozen=True):
    """The call ends here."""

    error: Problem


Decision: TypeAlias = Admit | Park | Refuse


class Ticket(Struct, eq=False):
    """What a policy remembers of one admitted or parked call; policies add fields of their own.

    Some five are made for every call: a struct is built in a fraction of the time of a class with an `__init__`.
    """

    call: Call
    would: str = ""  # observe mode: "" or the name of what enforcing would have done


class Wake(NamedTuple):
    """A parked ticket whose time has come."""

    ticket: Ticket
    decision: Admit | Refuse


class Policy(Protocol):
    """What the gateway's one adapter needs in order to make a stage of a policy."""

    def ask(self, call: Call, now: float) -> Problem | None:
        """The refusal that `admit` would give now, taking nothing; None when it would admit or park."""
        ...

    def admit(self, call: Call, now: float) -> Decision:
        """Decide about a call and take what it needs."""
        ...

    def shadow(self, call: Call, now: float) -> Ticket:
        """Observe mode: what would be done, as a ticket that holds nothing."""
        ...

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        """The call came to this outcome."""
        ...

    def abandon(self, ticket: Ticket, now: float) -> None:
        """The call left without an outcome that says anything: a later stage refused, or the caller went."""
        ...

    def tick(self, now: float) -> list[Wake]:
        """The parked tickets that are due."""
        ...

    def next_deadline(self) -> float | None:
        """When `tick` has to be called next, if nothing else happens."""
        ...
