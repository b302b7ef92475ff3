"""Which mechanisms there are, and how each may be switched.

`observe` records what would have been decided and lets the call go on. A value that a mechanism does not support is
refused: a switch that is accepted and does nothing is worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentgate.core.policy import Mode


@dataclass(frozen=True, kw_only=True, slots=True)
class Mechanism:
    """One switch: what it turns off, and the values it knows; the first is the default."""

    modes: tuple[Mode, ...]
    meaning: str
    when_off: str
    built: bool = True

    @property
    def default(self) -> Mode:
        """What holds when nothing is said."""
        return self.modes[0]


SWITCH: Final[tuple[Mode, ...]] = ("enforce", "off")
SWITCH_WITH_OBSERVE: Final[tuple[Mode, ...]] = ("enforce", "observe", "off")
NOT_BUILT: Final[tuple[Mode, ...]] = ("off",)

# In the order in which a call meets them (DESIGN 4).
MECHANISMS: Final[dict[str, Mechanism]] = {
    "tracing": Mechanism(
        modes=SWITCH, meaning="every call and attempt leaves a span", when_off="no spans; `chains` finds nothing"
    ),
    "rate_limit": Mechanism(
        modes=SWITCH_WITH_OBSERVE, meaning="a token bucket per sender paces its calls", when_off="senders are not paced"
    ),
    "abuse": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="a caller that repeats what was answered `retry: never` is held back from that target",
        when_off="a loop over final answers goes on, and nobody hears of it",
    ),
    "chain_guard": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="limits depth, fan-out and length of chains, and refuses loops",
        when_off="chains are bounded by their deadline alone",
    ),
    "idempotency": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="a repeated key is answered from the ledger and runs once",
        when_off="no look-up and no claim: a repeat runs again",
    ),
    "degradation": Mechanism(
        modes=NOT_BUILT, meaning="levels that shed non-core work", when_off="every call is treated alike", built=False
    ),
    "quota": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="limits by cost, for users, task types and agents",
        when_off="only the rate counts",
    ),
    "cool_down": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="a target that asks for time is left alone by everybody until then",
        when_off="only the call that was told to wait waits",
    ),
    "concurrency": Mechanism(
        modes=("enforce", "observe"),
        meaning="at most `concurrency` units an instance, a bounded queue before it",
        when_off="",
    ),
    "circuit_breaker": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="a failing target is left alone for a while, then tried with a few calls",
        when_off="failing targets are called on and on",
    ),
    "dynamic_timeout": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="an attempt's time-out follows what the target usually takes",
        when_off="every attempt gets the fixed time-out of 10 s",
    ),
    "retry": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="the gate repeats what time can cure",
        when_off="one attempt a call, no second one",
    ),
    "wait_graph": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="finds who waits for whom in a circle, refuses what would close one, and has one of it give way",
        when_off="a circle ends by deadline",
    ),
    "watchdog": Mechanism(
        modes=SWITCH_WITH_OBSERVE,
        meaning="asks after units that show no progress, and answers in place of those that are stuck",
        when_off="who waits for a stuck unit waits until the deadline",
    ),
}


def default_modes() -> dict[str, Mode]:
    """Every mechanism as it is when nothing is said."""
    return {name: mechanism.default for name, mechanism in MECHANISMS.items()}


def read_mode(name: str, value: object) -> Mode:
    """The mode for what the file says; raises `ValueError` naming those that the mechanism knows."""
    mechanism = MECHANISMS[name]
    for mode in mechanism.modes:
        if value == mode:
            return mode
    known = " or ".join(sorted(mechanism.modes))
    if not mechanism.built:
        raise ValueError(f"is not built yet, so it can only be off, not {value!r}")
    raise ValueError(f"can be {known}, not {value!r}")
