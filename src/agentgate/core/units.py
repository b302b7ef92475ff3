"""Which units are open, and in which of them a call was made.

Decides to whom a call is attributed: to the unit whose handler made it, or to nobody, which makes it a root. The rules,
the first that applies (DESIGN 4.3):

1. A **unit token**. It must be one of ours, of a unit that is open under the same epoch, and of the caller itself.
   Otherwise the call is refused: `lease_lost` when the unit is closed, unknown, granted anew or another tenant's,
   `forbidden` when it is another agent's. A handler that goes on after its unit has ended must not start new work in
   its name.
2. The **traceparent** of an open unit of the caller: what a plain HTTP library sends along by itself.
3. The **only open unit** of the calling process: there is nothing else it could have been made in.
4. Nobody. The call is a root; with a traceparent it continues that trace. When the process has several open units, one
   of them must have made it: it is marked as not linked, counts against a budget (`core.chain`) and is shown.

Agents and processes are known here by their qualified names (`model.names`).

How it works. A register by unit, by the span that the handler was given, and by process. It holds what runs, so its
size is bounded by the slots of all agents.

Not covered: when a unit is open (`core.unit_life`), and what is allowed within a chain (`core.chain`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from agentgate.core.traceparent import parse_traceparent
from agentgate.core.unit_token import UnitTokens
from agentgate.model import Call, Problem, plain, problem, tenant_of


class Chain(Struct, eq=False):
    """What one root call has set off so far, itself included."""

    calls: int = 0


class OpenUnit(Struct, eq=False):
    """A unit that runs `call` in a process; `calls` says how many it has made itself."""

    unit: str
    call: Call
    chain: Chain
    instance: str
    span_id: str
    epoch: int
    calls: int = 0


class Attribution(Struct, frozen=True):
    """Where a new call belongs. Without a `root` a new trace begins; `refused` says why it must not be made at all.

    `user` is the root's, where the call was made in a unit.
    """

    parent_unit: str = ""
    parent_span_id: str = ""
    root: str = ""
    user: str = ""
    depth: int = 0
    linked: bool = True
    refused: Problem | None = None


ROOT: Final = Attribution()
UNLINKED: Final = Attribution(linked=False)


class OpenUnits:
    """The register of open units."""

    __slots__ = ("_by_instance", "_by_span", "_by_unit")

    def __init__(self) -> None:
        self._by_unit: dict[str, OpenUnit] = {}
        self._by_span: dict[str, OpenUnit] = {}
        self._by_instance: dict[str, dict[str, OpenUnit]] = {}

    def __len__(self) -> int:
        return len(self._by_unit)

    def get(self, unit: str) -> OpenUnit | None:
        """The unit, if it is open."""
        return self._by_unit.get(unit)

    def of_instance(self, instance: str) -> list[str]:
        """The open units of a process."""
        return list(self._by_instance.get(instance, ()))

    def open(self, unit: OpenUnit) -> None:
        """From now on it may make calls. One that is open already is known by what is said last."""
        before = self.close(unit.unit)
        if before is not None:
            unit.calls, unit.chain = before.calls, before.chain
        self._by_unit[unit.unit] = unit
        self._by_span[unit.span_id] = unit
        if unit.instance:
            self._by_instance.setdefault(unit.instance, {})[unit.unit] = unit

    def close(self, unit: str) -> OpenUnit | None:
        """From now on its token is dead; the answer is what was open, if anything."""
        closed = self._by_unit.pop(unit, None)
        if closed is None:
            return None
        if self._by_span.get(closed.span_id) is closed:  # attempts of one call may share a span
            del self._by_span[closed.span_id]
        if closed.instance:
            siblings = self._by_instance[closed.instance]
            del siblings[unit]
            if not siblings:
                del self._by_instance[closed.instance]
        return closed

    def ancestors(self, unit: str) -> Iterator[OpenUnit]:
        """The unit and the open units above it, as far as they are known."""
        above = self._by_unit.get(unit)
        while above is not None:
            yield above
            above = self._by_unit.get(above.call.parent_unit)

    def attribute(self, tokens: UnitTokens, token: str, traceparent: str, caller: str, instance: str) -> Attribution:
        """Where a call of this caller (qualified) belongs; token and traceparent as they came, empty for none."""
        if token:
            return self._by_token(tokens, token, caller)
        trace = parse_traceparent(traceparent) if traceparent else None
        spanned = self._by_span.get(trace.span_id) if trace is not None else None
        if spanned is not None and spanned.call.agent == caller:
            return _child_of(spanned)
        mine = self._by_instance.get(instance)
        if mine is not None and len(mine) == 1:
            return _child_of(next(iter(mine.values())))
        if trace is None:
            return UNLINKED if mine else ROOT
        return Attribution(parent_span_id=trace.span_id, root=trace.trace_id, linked=not mine)

    def _by_token(self, tokens: UnitTokens, token: str, caller: str) -> Attribution:
        claim = tokens.read(token)
        if claim is None:
            return Attribution(refused=problem("lease_lost", detail="the unit token is not one of this gate"))
        unit = self._by_unit.get(claim.unit)
        if unit is None or unit.epoch != claim.epoch or unit.call.tenant != tenant_of(caller):
            return Attribution(refused=problem("lease_lost", detail=f"unit {claim.unit} is closed"))
        if unit.call.agent != caller:
            detail = f"unit {claim.unit} runs at {plain(unit.call.agent)}, not at {plain(caller)}"
            return Attribution(refused=problem("forbidden", detail=detail))
        return _child_of(unit)


def _child_of(unit: OpenUnit) -> Attribution:
    call = unit.call
    return Attribution(unit.unit, unit.span_id, call.trace_id, call.user or call.caller, call.depth + 1)
