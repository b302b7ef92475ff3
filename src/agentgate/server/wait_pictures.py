"""Takes pictures of who waits for whom, of one tenant at a time: the wait graph, and the calls from outside of it.

Nothing is kept between two pictures. One is read in slices, while the gate goes on: each wait is shown as it stood when
its turn came, and a knot is shown only if it stood in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from agentgate.core.deadlock import cycle_text, way_out
from agentgate.core.open_wait import Group, Member, OpenWait
from agentgate.core.reduction import Node
from agentgate.core.wait_scan import Scan
from agentgate.gateway.aims import CallAim, call_kind
from agentgate.gateway.waits import CallWait
from agentgate.model import Knot, Party, StandingKnot, Wait, WaitPicture, plain, tenant_of, told
from agentgate.runtime.slices import Slices

if TYPE_CHECKING:
    from agentgate.gateway.gateway import Gateway
    from agentgate.gateway.passage import Passage
    from agentgate.ports.clock import Clock

WAITS_MAX: Final = 1_000  # of one picture: more than anybody looks through
HOLDERS_MAX: Final = 8  # named of one wait; a busy agent has hundreds
KNOTS_MAX: Final = 16
STEPS_MAX: Final = 32  # of one cycle
SLICE_S: Final = 0.002
SCAN_NODES: Final = 200  # looked at between two glances at the clock
MS: Final = 1000

Held = tuple[tuple[Party, ...], int]  # the first holders, and how many there are


class RootWait(OpenWait, eq=False, kw_only=True):
    """The wait of a caller outside of all units, who is no part of the graph: nobody waits for him."""

    passage: Passage


class WaitPictures:
    """Reads a gateway. Of the default tenant's names and all others' the plain ones are shown."""

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._clock = clock

    def epoch(self) -> float:
        """When the gate's clock stood at 0, in seconds since the epoch; pictures that are compared need the same."""
        return self._clock.wall() - self._clock.now()

    async def take(self, tenant: str, limit: int = WAITS_MAX, *, epoch: float | None = None) -> WaitPicture:
        """At most `limit` of a tenant's waits, those of units first, and the knots that stand."""
        return await self._picture(tenant, self._open(tenant), limit, self.epoch() if epoch is None else epoch)

    async def of_chain(self, asked: str, traces: set[str], tenant: str, limit: int = WAITS_MAX) -> tuple[Wait, ...]:
        """The tenant's waits in these traces, and in those in which a trace id, a key or a business key occurs."""
        waits = self._open(tenant)
        known = traces.union(wait.trace_id for wait in waits if asked in (wait.trace_id, wait.business_key, _key(wait)))
        chosen = [wait for wait in waits if wait.trace_id in known]
        if not chosen:
            return ()
        return (await self._picture(tenant, chosen, limit, self.epoch())).waits

    def _open(self, tenant: str) -> list[OpenWait]:
        graph = self._gateway.policies.graph
        facts = ((wait, graph.facts(wait.unit)) for wait in graph.all())
        mine = [wait for wait, unit in facts if unit is not None and tenant_of(unit.agent) == tenant]
        return [*mine, *self._roots(tenant)]

    def _roots(self, tenant: str) -> Iterator[OpenWait]:
        """Calls of those who are connected, and over HTTP."""
        gateway = self._gateway
        passages = [
            running.passage
            for peer in gateway.peers.connected
            if peer.tenant == tenant
            for running in peer.calls.values()
        ]
        for passage in (*passages, *gateway.front.passages):
            call = passage.call
            if call.tenant == tenant and not call.parent_unit:
                yield RootWait(
                    unit="",
                    kind="call",
                    aim=CallAim(passage, gateway.policies.slots),
                    since=call.received_at,
                    deadline=call.deadline,
                    target=call.target,
                    task_type=call.task_type,
                    business_key=call.business_key,
                    trace_id=call.trace_id,
                    span_id=call.span_id,
                    passage=passage,
                )

    async def _picture(self, tenant: str, waits: list[OpenWait], limit: int, epoch: float) -> WaitPicture:
        now = self._clock.now()
        slices = Slices(self._clock, SLICE_S)
        knots, stuck = await self._knots(tenant, slices)
        exposure = _Exposure(self._gateway, stuck, epoch)
        shown: list[Wait] = []
        for wait in waits[:limit]:
            shown.append(exposure.shown(wait))
            await slices.pause_if_over()
        return WaitPicture(
            seq=int(now * MS) + 1,
            at=epoch + now,
            mode=self._gateway.options.mechanisms.get("wait_graph", "enforce"),
            waits=tuple(shown),
            knots=knots,
            truncated=len(waits) > limit,
        )

    async def _knots(self, tenant: str, slices: Slices) -> tuple[tuple[StandingKnot, ...], _Stuck]:
        """A tenant's knots, and whoever cannot get on because of any."""
        scan = Scan(self._gateway.policies.graph, self._clock.now())
        knots: list[StandingKnot] = []
        members: set[str] = set()
        while not scan.done:
            tangle = scan.step(SCAN_NODES)
            if tangle is not None:
                facts = tangle.members
                members.update(unit.unit for unit in facts)
                if tenant_of(facts[0].agent) == tenant and len(knots) < KNOTS_MAX:
                    knots.append(_standing(tangle.knot(min(unit.unit for unit in facts)), tenant))
            await slices.pause_if_over()
        return tuple(sorted(knots, key=lambda knot: knot.text)), _Stuck(scan.dead, frozenset(members))


class _Stuck(NamedTuple):
    """Units and pools that cannot get on, and which units of them are in a knot themselves."""

    dead: frozenset[Node]
    members: frozenset[str]

    def is_behind(self, unit: str, groups: Sequence[Group]) -> bool:
        """Whether these can come only when a knot is undone that the unit is no part of."""
        if not self.dead or unit in self.members:
            return False
        return any(group and all(map(self._is_dead, group)) for group in groups)

    def _is_dead(self, member: Member) -> bool:
        """A pool that only callers from outside wait for was no part of the scan: its holders tell."""
        if isinstance(member, str) or member in self.dead:
            return member in self.dead
        holders = member.holders() or ()
        return len(holders) > 0 and self.dead.issuperset(holders)


class _Exposure:
    """What one picture looks up once: units, and who holds the slots of an agent."""

    def __init__(self, gateway: Gateway, stuck: _Stuck, epoch: float) -> None:
        self._gateway = gateway
        self._stuck = stuck
        self._epoch = epoch
        self._parties: dict[str, Party | None] = {}
        self._held: dict[Member, Held] = {}

    def shown(self, wait: OpenWait) -> Wait:
        """One wait, as it stands now."""
        groups = wait.aim.groups()
        holders, count = self._holders(groups)
        return Wait(
            id=f"w{wait.number}" if wait.unit else f"c{wait.span_id}",
            waiter=self._waiter(wait),
            kind=wait.kind if (call := _call(wait)) is None else call_kind(call, self._gateway.policies.slots),
            target=plain(wait.target),
            task_type=wait.task_type,
            business_key=wait.business_key,
            key=_key(wait),
            holders=holders,
            holders_count=count,
            certain=wait.certain,
            behind=self._stuck.is_behind(wait.unit, groups),
            since=round(self._epoch + wait.since, 3),
            deadline=round(self._epoch + wait.deadline, 3),
            trace_id=wait.trace_id,
            span_id=wait.span_id,
        )

    def _waiter(self, wait: OpenWait) -> Party:
        if isinstance(wait, RootWait):
            return Party(agent=plain(wait.passage.call.caller))
        return self._party(wait.unit) or Party(unit=wait.unit, agent="")

    def _party(self, unit: str) -> Party | None:
        """A unit that is open; None: it has ended."""
        if unit not in self._parties:
            self._parties[unit] = self._read_party(unit)
        return self._parties[unit]

    def _read_party(self, unit: str) -> Party | None:
        found = self._gateway.units.get(unit)
        if found is None:
            return None
        call = found.call
        return Party(unit=unit, agent=plain(call.agent), task_type=call.task_type, business_key=call.business_key)

    def _holders(self, groups: Sequence[Group]) -> Held:
        """Every unit that could end it, once."""
        held = [self._held_by(member) for member in dict.fromkeys(chain.from_iterable(groups))]
        first = tuple(dict.fromkeys(party for parties, _ in held for party in parties))
        count = sum(count for _, count in held)
        return first[:HOLDERS_MAX], count if count > HOLDERS_MAX else len(first)

    def _held_by(self, member: Member) -> Held:
        if isinstance(member, str):
            party = self._party(member)
            return ((), 0) if party is None else ((party,), 1)
        if member not in self._held:
            units = member.holders() or ()
            parties = filter(None, map(self._party, units[:HOLDERS_MAX]))
            self._held[member] = tuple(parties), len(units)
        return self._held[member]


def _call(wait: OpenWait) -> Passage | None:
    """The one call that is waited for, from its first moment or since later."""
    only = wait.parts[0] if len(wait.parts) == 1 else wait
    return only.passage if isinstance(only, CallWait | RootWait) else None


def _key(wait: OpenWait) -> str:
    """The idempotency key of the call that is waited for; a read has none."""
    call = _call(wait)
    return call.key if call is not None and call.call.keyed else ""


def _standing(knot: Knot, tenant: str) -> StandingKnot:
    cycle = tuple(replace(step, agent=plain(step.agent)) for step in knot.cycle[:STEPS_MAX])
    return StandingKnot(
        text=told(tenant, cycle_text(knot)),
        cycle=cycle,
        cycle_count=len(knot.cycle),
        units=len(knot.members),
        certain=knot.certain,
        advice=way_out(knot),
    )
