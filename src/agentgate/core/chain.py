"""The chain guard: keeps what one call sets off within bounds.

Decides whether a call may be made at this point of its chain. Rules (DESIGN 4.3, A7):

- **Depth** at most `depth_max` hops below the root; **fan-out** at most `fan_out_max` calls by one unit over its life;
  **calls** at most `calls_max`, the root and everything it leads to. A limit of n stops after n, not after n + 1.
- **Loop**: the same work already waits further up. Same means the same target, task type, business key and action as
  a unit above is working on; the target counts as the same by its name as called and by the agent it led to. Without a
  business key, which only reads may do without, the payload has to be the same as well: asking an agent for two
  different things is no loop.
- Calls that nobody can attribute to one of several open units of their process share a budget of
  `unlinked_per_minute` an agent, so that losing the chain is no way round the other limits.
- Calls refused by a later stage, or given up, are given back: nothing was done, nothing is charged.

How it works. A chain is an object that its live calls and open units share, each getting it from the unit above; it
goes with the last of them. So a client that makes many calls under one trace begins many chains, and no name from
outside has to be remembered. Ancestors are looked up in the register of open units (`core.units`), nearest first; the
walk is as long as the chain is deep. The budget is an exact sliding minute.

Not covered: cycles of waits among different pieces of work (the wait graph), and how fast a sender may send (rate).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from agentgate.core.bounded import BoundedMap
from agentgate.core.keys import fingerprint
from agentgate.core.policy import Admit, Refuse, Ticket, Wake
from agentgate.core.ranges import require
from agentgate.core.unit_token import UnitTokens
from agentgate.core.units import Attribution, Chain, OpenUnit, OpenUnits
from agentgate.model import Call, Outcome, Problem, plain, problem

MINUTE_S: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainOptions:
    """How far one call may reach.

    - `depth_max`, 10; `fan_out_max`, 50; `calls_max`, 200: the design's numbers (4.3). Honest work of agents is a few
      hops deep; what goes beyond is delegating in circles.
    - `unlinked_per_minute`, 200: as much as one chain may do, but shared by all such calls of an agent.
    - `callers_max`, 1 000, whose unlinked calls are remembered: names come from outside.
    """

    depth_max: int = 10
    fan_out_max: int = 50
    calls_max: int = 200
    unlinked_per_minute: int = 200
    callers_max: int = 1_000

    def __post_init__(self) -> None:
        require(self, "depth_max", "fan_out_max", "unlinked_per_minute")
        require(self, "calls_max", "callers_max", low=1)


class ChainTicket(Ticket, eq=False, kw_only=True):
    """A call that counts in its chain."""

    chain: Chain
    parent: OpenUnit | None
    stamp: float | None = None  # when it was taken from the budget of unlinked calls
    done: bool = False


class ChainGuard:
    """Keeps chains within bounds; see `core.policy` for the shape. Never parks."""

    def __init__(self, options: ChainOptions) -> None:
        self._options = options
        self.units = OpenUnits()
        self._chains: dict[tuple[str, str], Chain] = {}  # of live calls, by tenant and call id
        self._unlinked: BoundedMap[tuple[str, str], deque[float]] = BoundedMap(options.callers_max)

    def ask(self, call: Call, now: float) -> Problem | None:
        """The refusal that `admit` would give now."""
        return self._limit(call, now) or self._loop(call)

    def admit(self, call: Call, now: float) -> Admit | Refuse:
        """Count the call in its chain, or refuse it with `chain_limit` or `loop`."""
        error = self.ask(call, now)
        return Admit(self._take(call, now)) if error is None else Refuse(error)

    def shadow(self, call: Call, now: float) -> ChainTicket:
        """Count the call whatever the limits say, and note what enforcing would have done."""
        error = self.ask(call, now)
        return self._take(call, now, would="" if error is None else f"would_{error.code}")

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:  # noqa: ARG002 - the shape of a policy
        """The call has ended; it stays counted."""
        self._finish(ticket)

    def abandon(self, ticket: Ticket, now: float) -> None:  # noqa: ARG002 - the shape of a policy
        """The call was not made after all: it is given back."""
        taken = self._finish(ticket)
        taken.chain.calls -= 1
        if taken.parent is not None:
            taken.parent.calls -= 1
        stamps = self._unlinked.peek(_sender(taken.call))
        if taken.stamp is not None and stamps is not None and taken.stamp in stamps:
            stamps.remove(taken.stamp)

    def tick(self, now: float) -> list[Wake]:
        """Forget budgets that are not in use; wakes nobody."""
        self._unlinked.sweep(now, MINUTE_S)
        return []

    def next_deadline(self) -> float | None:
        """Never: forgetting can wait for the next call."""
        return None

    def open_unit(self, unit: str, call: Call, *, instance: str = "", span_id: str = "", epoch: int = 0) -> None:
        """A unit begins to run this call; `span_id` is the span its handler is given, by default the call's own."""
        chain = self._chains.get((call.tenant, call.id)) or self._chain_above(call)
        self.units.open(OpenUnit(unit, call, chain, instance=instance, span_id=span_id or call.span_id, epoch=epoch))

    def close_unit(self, unit: str) -> None:
        """The unit has ended, or may do nothing more: its token is dead. Closing twice changes nothing."""
        self.units.close(unit)

    def attribute(self, tokens: UnitTokens, token: str, traceparent: str, caller: str, instance: str) -> Attribution:
        """Where a call of this caller belongs; see `core.units`."""
        return self.units.attribute(tokens, token, traceparent, caller, instance)

    def _limit(self, call: Call, now: float) -> Problem | None:
        options = self._options
        if call.depth > options.depth_max:
            return _too_far(f"depth {call.depth} of at most {options.depth_max}")
        parent = self.units.get(call.parent_unit)
        if parent is not None and parent.calls >= options.fan_out_max:
            return _too_far(f"unit {parent.unit} has made {parent.calls} calls of at most {options.fan_out_max}")
        if parent is not None and parent.chain.calls >= options.calls_max:
            return _too_far(f"the chain has made {parent.chain.calls} calls of at most {options.calls_max}")
        return None if call.linked else self._over_budget(call, now)

    def _over_budget(self, call: Call, now: float) -> Problem | None:
        limit = self._options.unlinked_per_minute
        recent = self._unlinked.peek(_sender(call)) or deque()
        while recent and recent[0] <= now - MINUTE_S:
            recent.popleft()
        if len(recent) < limit:
            return None
        wait_s = recent[0] + MINUTE_S - now if recent else MINUTE_S
        detail = f"{call.caller} has made {limit} calls of at most {limit} a minute outside of any known unit"
        return problem("chain_limit", retry_after_s=wait_s, detail=detail)

    def _loop(self, call: Call) -> Problem | None:
        if not call.parent_unit:
            return None
        path = [call]
        for above in self.units.ancestors(call.parent_unit):
            path.append(above.call)
            if _is_same_work(call, above.call):
                return problem("loop", detail=" > ".join(map(_shown, reversed(path))))
        return None

    def _take(self, call: Call, now: float, *, would: str = "") -> ChainTicket:
        parent = self.units.get(call.parent_unit)
        chain = parent.chain if parent is not None else Chain()
        self._chains[call.tenant, call.id] = chain
        chain.calls += 1
        if parent is not None:
            parent.calls += 1
        ticket = ChainTicket(call, would, chain=chain, parent=parent)
        if not call.linked and self._options.unlinked_per_minute:
            self._stamps_of(_sender(call)).append(now)
            ticket.stamp = now
        return ticket

    def _finish(self, ticket: Ticket) -> ChainTicket:
        assert isinstance(ticket, ChainTicket), "a ticket of another policy"
        assert not ticket.done, "a chain ticket ends once"
        ticket.done = True
        self._chains.pop((ticket.call.tenant, ticket.call.id), None)
        return ticket

    def _chain_above(self, call: Call) -> Chain:
        parent = self.units.get(call.parent_unit)
        return parent.chain if parent is not None else Chain()

    def _stamps_of(self, sender: tuple[str, str]) -> deque[float]:
        stamps = self._unlinked.get(sender)
        if stamps is None:
            stamps = self._unlinked[sender] = deque(maxlen=self._options.unlinked_per_minute)
        return stamps


def _sender(call: Call) -> tuple[str, str]:
    return call.tenant, call.caller


def _is_same_work(call: Call, above: Call) -> bool:
    return (
        call.task_type == above.task_type
        and call.business_key == above.business_key
        and call.action == above.action
        and call.target in (above.target, plain(above.agent))
        and (bool(call.business_key) or fingerprint(call.payload) == fingerprint(above.payload))
    )


def _shown(call: Call) -> str:
    return f"{call.agent or call.target}.{call.task_type}({call.business_key})"


def _too_far(detail: str) -> Problem:
    return problem("chain_limit", detail=detail)
