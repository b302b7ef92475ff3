"""The watchdog: which units have shown no progress for too long, and what is done about each.

Decides when the process of a unit is asked how it is, and when a unit is given up. The rules (D7, DESIGN 4.4):

- Progress is a progress note that the unit has not given before, a call that it has not made before, a result that it
  has not had before, or the end of a wait for a lock or a signal that it has not waited for before. A sign of life of
  its process is none, nor is asking the same again for the same answer.
- A unit is watched from its time-out on; who answers in time costs nothing. After `quiet_factor` times its time-out
  without progress its process is asked (*ask*).
- A process that answers that its handlers' event loop is blocked is told apart from one whose handler is stuck: its
  units may only stand in line behind another one. They get twice their time-out more, the others once. Then the unit is
  given up (*release*).
- A unit that has gone on by asking again what it had asked before is woken first (*wake*): those waits end, further
  ones are refused, and it gets its time-out once more to do something else.
- A unit that waits for anything new is judged by that: what it waits for is watched by itself.
- A process that does not answer and gives no sign of life either is none of the watchdog's: its instance is lost, with
  its units, by the rules of presence.
- What was given up stays so. Any progress before that begins the time anew.

How it works. One entry for each unit that is watched, with a state of `TABLE`, the time at which its state is over, and
hashes of what it has said, asked and got. What it did before it was watched is not known: the same once more is taken
for new, once. `tick` looks at all entries; they are the open units that are late, and there are few.

Not covered: what a time-out is (`core.timeout`), and what becomes of a call whose unit is given up (the gateway).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, NamedTuple

from msgspec import Struct, field

from agentgate.core.bounded import BoundedMap
from agentgate.core.keys import fingerprint
from agentgate.core.open_wait import OpenWait
from agentgate.core.ranges import require
from agentgate.core.table import step
from agentgate.core.waits import Waits
from agentgate.model import Call, Outcome

State = Literal[
    "working",  # its time since the last progress is not over
    "asked",  # its process has not answered yet
    "stuck",  # its process lives, its event loop too
    "blocked",  # its process lives, its event loop does not
    "woken",  # its repeated waits were ended
    "released",  # nobody waits for it any more
]
Event = Literal[
    "quiet",  # the time of the state is over
    "repeating",  # the same, and since its last progress it has asked again what it had asked before
    "alive",  # its process has answered
    "behind",  # the same, and its event loop is blocked
    "progress",
]

TABLE: Final[dict[tuple[State, Event], State]] = {
    ("working", "quiet"): "asked",
    ("working", "repeating"): "asked",
    ("asked", "alive"): "stuck",
    ("asked", "behind"): "blocked",
    ("stuck", "behind"): "blocked",
    ("stuck", "quiet"): "released",
    ("blocked", "quiet"): "released",
    ("woken", "quiet"): "released",
    ("stuck", "repeating"): "woken",
    ("blocked", "repeating"): "woken",
    ("woken", "repeating"): "released",
    ("asked", "progress"): "working",
    ("stuck", "progress"): "working",
    ("blocked", "progress"): "working",
    ("woken", "progress"): "working",
}

Action = Literal["ask", "wake", "release"]
_ACTIONS: Final[dict[State, Action]] = {"asked": "ask", "woken": "wake", "released": "release"}
_MORE: Final[dict[State, float]] = {"stuck": 1.0, "blocked": 2.0, "woken": 1.0}  # time-outs; any other state: no end

NO_PROGRESS: Final = "no_progress"  # the code of waits that were ended because they repeat
NO_CALLS: Final = frozenset({"lock", "signal", "first"})  # kinds of waits that are not for one call
SEEN_MAX: Final = 256  # notes, calls and results remembered of a unit: five times the calls that a chain allows it


@dataclass(frozen=True, kw_only=True)
class WatchdogOptions:
    """How long a unit may show no progress. Times in seconds.

    - `look_s`, 1: between two looks; the shortest times that matter are some seconds.
    - `quiet_factor`, 2: times its time-out before its process is asked (D7).
    - `least_s`, 5: the shortest time-out that counts, where the skill declares none: what mostly takes a moment may
      take seconds once, and nobody has said that this is wrong.
    - `lag_s`, 1: an event loop that is so late is blocked; a long pause of the collector or a busy loop is below.
    """

    look_s: float = 1.0
    quiet_factor: float = 2.0
    least_s: float = 5.0
    lag_s: float = 1.0

    def __post_init__(self) -> None:
        require(self, "look_s", low=0.01, high=3600.0)
        require(self, "quiet_factor", low=1.0, high=100.0)
        require(self, "least_s", low=0.0, high=3600.0)
        require(self, "lag_s", low=0.01, high=3600.0)


class Step(NamedTuple):
    """What has to be done about a unit, after so many seconds without progress.

    `behind`: the event loop of its process is blocked, so it may only stand in line.
    """

    unit: str
    action: Action
    quiet_s: float
    behind: bool = False


class _Watch(Struct, eq=False):
    """A unit that is late. Times in monotonic seconds."""

    timeout_s: float
    moved_at: float
    until: float  # its state is over
    state: State = "working"
    is_repeating: bool = False
    seen: BoundedMap[tuple[str, ...], None] = field(default_factory=lambda: BoundedMap(SEEN_MAX))
    repeats: set[OpenWait] = field(default_factory=set)  # open waits for what was asked before

    def has_asked(self, wait: OpenWait) -> bool:
        """Whether everything that this wait is for was asked before."""
        return self.repeats.issuperset(wait.parts or (wait,))


class Watchdog:
    """The units that are late; `graph` knows what they wait for."""

    def __init__(self, graph: Waits, options: WatchdogOptions) -> None:
        self._graph = graph
        self._options = options
        self._watches: dict[str, _Watch] = {}

    def __len__(self) -> int:
        return len(self._watches)

    def __iter__(self) -> Iterator[str]:
        return iter(self._watches)

    def __contains__(self, unit: object) -> bool:
        return unit in self._watches

    def begin(self, unit: str, timeout_s: float, moved_at: float) -> None:
        """Watch a unit whose time-out has passed; `moved_at`: when it began, or showed progress last."""
        until = moved_at + self._options.quiet_factor * timeout_s
        self._watches[unit] = _Watch(timeout_s=timeout_s, moved_at=moved_at, until=until)

    def end(self, unit: str) -> None:
        """It has ended; safe twice."""
        self._watches.pop(unit, None)

    def state(self, unit: str) -> State:
        """How a watched unit is."""
        return self._watches[unit].state

    def noted(self, unit: str, note: str, now: float) -> None:
        """It has given a progress note."""
        self._saw(self._watches[unit], ("note", note), now)

    def asks(self, wait: OpenWait, call: Call, now: float) -> bool:
        """It begins to wait for this call; False: it has asked the same before, was woken, and is refused."""
        watch = self._watches[wait.unit]
        if self._saw(watch, _asked(call), now):
            return True
        watch.is_repeating = True
        watch.repeats.add(wait)
        return watch.state != "woken"

    def got(self, unit: str, call: Call, outcome: Outcome, now: float) -> None:
        """A call of it came to this."""
        if outcome.code != NO_PROGRESS:
            said = outcome.code or fingerprint(outcome.value)
            self._saw(self._watches[unit], (*_asked(call), said), now)

    def over(self, wait: OpenWait, now: float) -> None:
        """A wait is over, whatever it came to; of a unit that is watched or not. That of a call is told by `got`."""
        watch = self._watches.get(wait.unit)
        if watch is not None:
            watch.repeats.discard(wait)
            if wait.kind in NO_CALLS:
                self._saw(watch, (wait.kind, wait.target, wait.task_type, wait.business_key), now)

    def heard(self, unit: str, lag_s: float, now: float) -> bool:
        """Its process has answered, or given a sign of life after it was asked; True: its event loop is blocked."""
        watch = self._watches[unit]
        event: Event = "behind" if lag_s >= self._options.lag_s else "alive"
        if (watch.state, event) not in TABLE:
            return False
        self._enter(watch, event, now)
        return watch.state == "blocked"

    def repeated(self, unit: str) -> list[OpenWait]:
        """The waits of a watched unit for what it has asked before."""
        watch = self._watches[unit]
        return [wait for wait in self._graph.of(unit) if watch.has_asked(wait)]

    def tick(self, now: float) -> list[Step]:
        """What has to be done now, in the order in which the units came to be watched."""
        steps = []
        for unit, watch in self._watches.items():
            if now < watch.until:
                continue
            if not all(map(watch.has_asked, self._graph.of(unit))):
                continue
            behind = watch.state == "blocked"
            self._enter(watch, "repeating" if watch.is_repeating else "quiet", now)
            steps.append(Step(unit, _ACTIONS[watch.state], now - watch.moved_at, behind))
        return steps

    def _saw(self, watch: _Watch, sign: tuple[str, ...], now: float) -> bool:
        """Whether this is progress."""
        is_new = sign not in watch.seen
        watch.seen[sign] = None
        if is_new and watch.state != "released":
            if watch.state != "working":
                watch.state = step(TABLE, watch.state, "progress")
            watch.is_repeating = False
            watch.moved_at = now
            watch.until = now + self._options.quiet_factor * watch.timeout_s
        return is_new

    def _enter(self, watch: _Watch, event: Event, now: float) -> None:
        watch.state = step(TABLE, watch.state, event)
        watch.until = now + _MORE[watch.state] * watch.timeout_s if watch.state in _MORE else inf


def _asked(call: Call) -> tuple[str, ...]:
    """Equal for calls that ask the same."""
    return call.target, call.task_type, call.business_key, call.action, fingerprint(call.payload)
