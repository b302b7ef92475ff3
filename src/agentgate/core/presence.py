"""Is an instance there? One table machine per instance (DESIGN 4.5).

What is decided: whether one running process of an agent takes new calls, only finishes what it has in hand, may still
come back, or will never be heard of again.

Rules. Every frame is a sign of life, and an instance that has nothing to say sends a beat every `beat_s`. Without any
frame for `silent_s` it is *away*: its link may be dead although nobody closed it. A closed link makes it away at once.
For `grace_s` after that it may come back and go on with its units; then it is *lost*, for good: a process that
returns later starts as a new entry. *Draining* is a one-way street: a process that has begun to leave stays on its
way out even when its link breaks and is made again (*leaving* is away while draining). A gate that starts again does
not know who is still there: what its last snapshot names is *expected* for `expected_s`, which is longer than the
grace, because every agent has to find the gate again first.

How it works. `hear` moves the state along the table; `heard` is the same for the ordinary frame of an instance that
is there, and only writes down the time. No timer is kept: `tick` compares times, `next_deadline` names the next
moment at which it could change anything.

Not covered: what becomes of the units of an instance (the gateway), and whether its handlers make progress; a link
that beats is alive, not busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from agentgate.core.ranges import require
from agentgate.core.table import step

State = Literal["expected", "connected", "draining", "away", "leaving", "lost"]
Event = Literal[
    "hello",  # a connection said who it is
    "beat",  # any frame came
    "drain",  # it takes nothing new from now on
    "closed",  # its connection ended without a good-bye
    "silent",  # no frame for too long
    "over",  # the time in which it could come back has passed
    "gone",  # it said good-bye
]

TABLE: Final[dict[tuple[State, Event], State]] = {
    ("expected", "hello"): "connected",
    ("expected", "beat"): "expected",  # it has to say who it is first
    ("expected", "closed"): "expected",  # its hello was refused; a better one may follow
    ("expected", "over"): "lost",
    ("connected", "hello"): "connected",  # a new link before the old one was seen to break
    ("connected", "beat"): "connected",
    ("connected", "drain"): "draining",
    ("connected", "closed"): "away",
    ("connected", "silent"): "away",
    ("connected", "gone"): "lost",
    ("draining", "hello"): "draining",
    ("draining", "beat"): "draining",
    ("draining", "drain"): "draining",
    ("draining", "closed"): "leaving",
    ("draining", "silent"): "leaving",
    ("draining", "gone"): "lost",
    ("away", "hello"): "connected",
    ("away", "beat"): "connected",  # it was only silent
    ("away", "drain"): "leaving",
    ("away", "closed"): "away",
    ("away", "over"): "lost",
    ("away", "gone"): "lost",
    ("leaving", "hello"): "draining",
    ("leaving", "beat"): "draining",
    ("leaving", "drain"): "leaving",
    ("leaving", "closed"): "leaving",
    ("leaving", "over"): "lost",
    ("leaving", "gone"): "lost",
}

TIME_S_MIN: Final = 0.001  # below a millisecond nothing on a network means anything
BEATS_BEFORE_SILENCE: Final = 2.0  # one late or lost beat must never make an instance silent


@dataclass(frozen=True, kw_only=True, slots=True)
class PresenceOptions:
    """Times of the signs of life, in seconds.

    - `beat_s`, 2: cheap at thousands of links, and three beats fit into the silence.
    - `silent_s`, 6: longer than a garbage collection or a short stall of the network.
    - `grace_s`, 3: a reconnect takes well under a second; work of a dead process should not wait longer.
    - `expected_s`, 10: after a gate's start every agent has to come back, with its pauses between rounds of tries.
    """

    beat_s: float = 2.0
    silent_s: float = 6.0
    grace_s: float = 3.0
    expected_s: float = 10.0

    def __post_init__(self) -> None:
        require(self, "beat_s", "silent_s", "grace_s", "expected_s", low=TIME_S_MIN)
        if self.silent_s < BEATS_BEFORE_SILENCE * self.beat_s:
            raise ValueError(
                f"silent_s ({self.silent_s:g}) must be at least {BEATS_BEFORE_SILENCE:g} times beat_s "
                f"({self.beat_s:g}), or one late beat makes an instance silent"
            )


class Presence:
    """Where one instance stands; `since` is when its state last changed, `heard_at` when it last gave a sign."""

    __slots__ = ("_options", "_until", "heard_at", "since", "state")

    def __init__(self, options: PresenceOptions, now: float, *, expected: bool = False) -> None:
        self._options = options
        self._until = now + options.expected_s  # meaningful while it may come back
        self.state: State = "expected" if expected else "connected"
        self.since = now
        self.heard_at = now

    @property
    def is_linked(self) -> bool:
        """Whether it is heard of: connected or draining."""
        return self.state in ("connected", "draining")

    def heard(self, now: float) -> bool:
        """Write down a sign of life; False when the frame means more than that and `hear` has to be told."""
        self.heard_at = now
        return self.is_linked

    def hear(self, event: Event, now: float) -> State:
        """The state after `event`; raises `IllegalTransition` and changes nothing when the state does not know it."""
        after = step(TABLE, self.state, event)
        if event in ("hello", "beat"):
            self.heard_at = now
        if event in ("closed", "silent") and after in ("away", "leaving"):
            self._until = now + self._options.grace_s
        if after != self.state:
            self.state = after
            self.since = now
        return after

    def tick(self, now: float) -> bool:
        """Apply what the passing of time means; whether the state changed."""
        deadline = self.next_deadline()
        if deadline is None or now < deadline:
            return False
        self.hear("silent" if self.is_linked else "over", now)
        return True

    def next_deadline(self) -> float | None:
        """When `tick` may change the state, if nothing is heard before; None once it is lost."""
        if self.state == "lost":
            return None
        return self.heard_at + self._options.silent_s if self.is_linked else self._until
