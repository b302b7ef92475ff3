"""What must hold in every simulated run (DESIGN 11; the numbers are the same).

Each class watches one promise. It hears of what the witness sees, is asked after every frame at the gate
(`after_event`), when a gate was killed or stopped (`gate_ended`), and at the end of a run in which everything had time
to come to rest (`at_end`). What it finds it reports with `witness.fail`.

1 one key, one effect, one answer · 2 running and open units never over their limits, back to zero at the end
(`within_limits`) · 3 no dead unit without a signal, one victim per knot, no false alarm (`nobody_waits`) · 7 no call
outlives its deadline, retries within budget · 8 breakers move only along their table · 9 every call has one closed
span · 10 every bounded structure within its bound. 0 stands for defects of the machinery: it must not raise, refuse its
own agents, or answer `internal`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from agentgate.core.bounded import BoundedMap
from agentgate.core.breaker import TABLE, State
from agentgate.model import Span
from agentgate.sdk.inbox import UNITS_MAX
from agentgate.testing.checker import Checker
from agentgate.testing.nobody_waits import NobodyWaits
from agentgate.testing.reach import bounded_maps
from agentgate.testing.within_limits import WithinLimits
from agentgate.testing.witness import Asked, Effect, Key

if TYPE_CHECKING:
    from agentgate.testing.world import World

STORED_FAILURES: Final = frozenset({"rejected", "handler_error", "malformed_output"})
MARGIN_S: Final = 0.25  # what an SDK adds to a deadline before it answers by itself
GRACE_S: Final = 0.05  # for the gate to answer a call whose deadline has passed
BREAKER_EVERY: Final = 4  # frames: a breaker needs at least so many from one state to the next but one
BOUNDS_EVERY: Final = 16  # frames: what grows beyond its bound does not come back by itself


class SoundMachinery(Checker):
    """0: nothing raises where nobody listens, and no well-behaved peer is found at fault."""

    number = 0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.witness.hooks.answered.append(self._answered)

    def after_event(self) -> None:
        """The gate never takes a frame of the SDK for a breach of the protocol."""
        if self.gateway.counters.protocol_errors:
            self.fail("the gate found fault with a frame of the SDK")

    def _answered(self, asked: Asked) -> None:
        if asked.code == "internal":
            self.fail(f"{asked.key.shown}: internal: {asked.error.detail if asked.error else ''}")


class OneEffect(Checker):
    """1: one key, one effect, one answer."""

    number = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._finals: dict[Key, Asked] = {}
        self.witness.hooks.effect.append(self._took_effect)
        self.witness.hooks.answered.append(self._answered)

    def _took_effect(self, effect: Effect) -> None:
        effects = self.witness.effects_by_key[effect.key]
        run = self.witness.runs[effect.unit]
        if len(effects) > 1 and not run.repeatable:
            units = " and ".join(one.unit for one in effects)
            self.fail(f"{effect.key.shown} at {effect.key.named} took effect twice, by {units}")

    def _answered(self, asked: Asked) -> None:
        if asked.code == "outcome_unknown":
            self._unknown(asked)
        if not asked.write or asked.cancelled:
            return
        if asked.error is None:
            self._acknowledged(asked)
        if asked.error is None or (asked.code in STORED_FAILURES and not asked.repeatable):
            self._compare(asked)

    def _acknowledged(self, asked: Asked) -> None:
        value = asked.value if isinstance(asked.value, dict) else {}
        shown = f"{asked.key.shown} at {asked.target}"
        if value.get("body") != asked.body:
            self.fail(f"{shown} with body {asked.body!r} was answered {asked.value}")
        effects = self.witness.effects_by_key.get(asked.key, [])
        if value.get("unit") not in [effect.unit for effect in effects]:
            self.fail(f"{shown} was acknowledged as {asked.value}, which took no effect")

    def _unknown(self, asked: Asked) -> None:
        """Nobody can tell only when a process is gone, or counts as gone, or was interrupted in the middle.

        A process that is gone may have been sent the work and never have begun it: then there is no run to be seen.
        """
        runs = self.witness.runs_by_key.get(asked.key, [])
        alive = [run for run in runs if self.world.is_alive(run.instance) and not run.end.startswith("cancelled")]
        if not runs or len(alive) < len(runs):
            return
        began = min(other.started_at for other in self.witness.asked if other.key == asked.key)
        if not any(self.world.has_lost(run.instance.rpartition("-")[0], began) for run in runs):
            self.fail(
                f"{asked.key.shown} at {asked.target} is unknown, though {alive[0].instance} is there to be asked"
            )

    def _compare(self, asked: Asked) -> None:
        """The first final answer is the answer; after a stored failure that was run again, the next one is."""
        first = self._finals.get(asked.key)
        if first is None or (first.error is not None and self._may_have_run_again(asked.key)):
            self._finals[asked.key] = asked
        elif (first.value, first.code) != (asked.value, asked.code):
            said = asked.value if asked.error is None else asked.code
            before = first.value if first.error is None else first.code
            self.fail(f"{asked.key.shown} at {asked.target} was answered {before}, and later {said}")

    def at_end(self) -> None:
        """What nobody was told may have happened, did not happen."""
        calls: dict[Key, list[Asked]] = defaultdict(list)
        for asked in self.witness.asked:
            calls[asked.key].append(asked)
        for key, known in calls.items():
            harmless = all(asked.error is not None and not asked.error.sent for asked in known)
            if harmless and self.witness.effects_by_key.get(key):
                codes = ", ".join(sorted({asked.code for asked in known}))
                self.fail(
                    f"{key.shown} at {key.named} took effect, though every caller was told it was not sent ({codes})"
                )


class InTime(Checker):
    """7: no call outlives its deadline, and retries stay within the budget."""

    number = 7

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.witness.hooks.answered.append(self._answered)

    def after_event(self) -> None:
        """By the wire: answers in time, and no more retries than the budget has had tokens."""
        tap = self.world.tap
        for call_id, late_s in tap.overdue:
            if late_s > GRACE_S:
                self.fail(f"call {call_id} was answered {late_s:.3f} s after its deadline")
        options = self.world.settings.budget
        elapsed_s = self.witness.now() - tap.started_at
        for agent, retries in tap.retries.items():
            tokens = options.tokens_max + options.per_success * tap.successes[agent]
            allowed = tokens + elapsed_s / options.floor_s + 1
            if retries > allowed:
                self.fail(f"{agent} was sent {retries} retries, its budget has had {allowed:.1f}")

    def _answered(self, asked: Asked) -> None:
        if asked.deadline is None or asked.cancelled:
            return
        late_s = self.witness.now() - asked.deadline
        if late_s > MARGIN_S + GRACE_S:
            self.fail(f"{asked.key.shown} ended {late_s:.3f} s after its deadline, with {asked.code or 'a value'}")

    def at_end(self) -> None:
        """Nobody is left without an answer."""
        for call in self.world.tap.open_calls.values():
            if call.end.is_open_at_gate and call.until < self.witness.now() - GRACE_S:
                self.fail(f"call {call.id} of {call.end.name} was never answered")


class ByTheTable(Checker):
    """8: a breaker moves only along its table, and stays open for its time."""

    number = 8

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._events = 0
        self._known: dict[tuple[str, str | None], tuple[State, float, int]] = {}
        self._steps = {(before, after) for (before, _), after in TABLE.items()}

    def after_event(self) -> None:
        """Compare every breaker with how it was seen last."""
        self._events += 1
        if self._events % BREAKER_EVERY:
            return
        options = self.world.settings.breaker
        for seen in self.gateway.policies.breakers.states(self.witness.now()):
            name = (seen.agent, seen.task_type)
            state, since, opened = self._known.get(name, ("closed", 0.0, 0))
            self._known[name] = (seen.state, seen.since, seen.opened)
            if seen.state == state:
                if seen.opened > opened + 1:
                    self.fail(f"the breaker of {name} opened {seen.opened - opened} times at once")
                continue
            self.witness.log(
                "gate", f"breaker of {seen.agent} {seen.task_type or '(connection)'}: {state} > {seen.state}"
            )
            if (state, seen.state) not in self._steps:
                self.fail(f"the breaker of {name} went from {state} to {seen.state}")
            elif state == "open" and seen.since - since < options.open_s * (1 - options.open_spread) - GRACE_S:
                self.fail(f"the breaker of {name} was open for {seen.since - since:.3f} s only")

    def gate_started(self) -> None:
        """Breakers are not kept over a restart."""
        self._known.clear()


class OneSpan(Checker):
    """9: every call that came to the gate has exactly one closed span, and every span a parent in its trace.

    Excepted: what a killed gate had not written yet, and drops that were counted. A frame that was sent again may, when
    the gate had answered it already, be a call of its own.
    """

    number = 9

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._delivered: Counter[str] = Counter()
        self._in_killed: set[str] = set()  # calls that came to a life which was killed

    def gate_ended(self, *, killed: bool) -> None:
        """What came in this life."""
        self._delivered.update(self.world.tap.delivered)
        if killed:
            self._in_killed.update(self.world.tap.delivered)

    def after_stop(self, spans: tuple[Span, ...]) -> None:
        """The last gate has stopped in good order and written everything.

        A span that is there twice, letter by letter, was written again after a failure that had written it already.
        """
        known: dict[str, Span] = {}
        for span in spans:
            if known.setdefault(span.span_id, span) != span:
                self.fail(f"two different spans are called {span.span_id}")
        written = Counter(span.call_id for span in known.values() if span.kind == "call")
        for call_id, times in self._delivered.items():
            least = 0 if call_id in self._in_killed else 1
            if not least <= written[call_id] <= times:
                self.fail(f"call {call_id} came {times} times and has {written[call_id]} spans")
        if not self._in_killed:
            for span in spans:
                if span.parent_id and span.parent_id not in known:
                    self.fail(f"{span.kind} span {span.span_id} of call {span.call_id} has a parent that nobody wrote")


class Bounded(Checker):
    """10: every bounded structure is within its bound."""

    number = 10

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._events = 0
        self._maps: list[tuple[str, BoundedMap[Any, Any]]] = []

    def gate_started(self) -> None:
        """Find its maps; others than these are made per peer, and go with it."""
        self._maps = list(bounded_maps(self.gateway))

    def after_event(self) -> None:
        """Look at all maps that were there at the start of this life, and at the known queues."""
        self._events += 1
        if self._events % BOUNDS_EVERY:
            return
        for name, bounded in self._maps:
            if len(bounded) > bounded.limit:
                self.fail(f"{name} holds {len(bounded)}, its bound is {bounded.limit}")
        gateway, options = self.gateway, self.world.settings
        for agent in gateway.policies.slots.states(self.witness.now()):
            if agent.queued > options.slots.queue_max:
                self.fail(f"the queue of {agent.agent} holds {agent.queued}")
        if len(gateway.flights) > options.calls.flights_max or len(gateway.peers) > options.calls.peers_max:
            self.fail(f"{len(gateway.flights)} flights, {len(gateway.peers)} peers")

    def at_end(self) -> None:
        """Agents have forgotten what was acknowledged."""
        for process in self.world.agents:
            running, kept = process.in_hand
            if running + kept > UNITS_MAX or kept:
                self.fail(f"{process.name} still keeps {kept} answers and runs {running} units")


CHECKERS: Final[tuple[type[Checker], ...]] = (
    SoundMachinery,
    OneEffect,
    WithinLimits,
    NobodyWaits,
    InTime,
    ByTheTable,
    OneSpan,
    Bounded,
)
