"""A target whose answers take as long as a script says, called at a rate, with learnt time-outs.

Time is simulated: attempts overlap, answers come in the order in which they end, a write's late answer comes when its
work ends, a read that was cut is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import exp, inf
from random import Random
from statistics import mean

from agentgate.core.timeout import TimeoutOptions, TimeoutPlan, Timeouts
from agentgate.model import Call, Effect

HANGS = inf
DEADLINE_S = 60.0  # of every call: no time-out of 30 s is cut short, and half a minute is left to explore

# Draws the duration of the call with this number.
Script = Callable[[Random, int], float]


@dataclass(frozen=True)
class Attempt:
    """What became of one call."""

    timeout_s: float  # without exploring
    duration_s: float
    cut: bool


def run(script: Script, *, seed: int, calls: int, rate_per_s: float, effect: Effect = "write") -> list[Attempt]:
    """Call the target so often, at random moments with that mean rate."""
    durations, arrivals = Random(f"durations {seed}"), Random(f"arrivals {seed}")
    policy = Timeouts(TimeoutOptions(), Random(f"chance {seed}").random)
    numbers = count()
    ends: list[tuple[float, int, partial[None]]] = []
    attempts: list[Attempt] = []
    now = 0.0

    def later(at: float, tell: Callable[[TimeoutPlan, float], None], plan: TimeoutPlan, after_s: float) -> None:
        heappush(ends, (at + after_s, next(numbers), partial(tell, plan, after_s)))

    for number in range(calls):
        now += arrivals.expovariate(rate_per_s)
        while ends and ends[0][0] <= now:
            heappop(ends)[2]()
        made = Call(id="c", target="b", agent="b", task_type="t", effect=effect, deadline=now + DEADLINE_S)
        plan = policy.plan(made, now)
        duration_s = script(durations, number)
        cut = duration_s > plan.timeout_s
        attempts.append(Attempt(plan.plain_s, duration_s, cut))
        if not cut:
            later(now, policy.answered, plan, duration_s)
            continue
        later(now, policy.cut, plan, plan.timeout_s)
        if effect == "write" and duration_s <= DEADLINE_S:
            later(now, policy.late, plan, duration_s)
    return attempts


def around(median_s: float, sigma: float) -> Script:
    """Log-normal durations; sigma 0.4 is a handler with some variation, 0.8 one with a long tail."""
    return lambda chance, _: median_s * exp(sigma * chance.gauss(0.0, 1.0))


def sometimes(share: float, one: Script, other: Script) -> Script:
    """That share of the calls by one script, the rest by the other; the rest does not depend on the share."""

    def duration(chance: Random, number: int) -> float:
        usual, chosen = other(chance, number), chance.random() < share
        return one(chance, number) if chosen else usual

    return duration


def between(first: int, last: int, one: Script, other: Script) -> Script:
    """Calls from `first` up to `last` by one script, the rest by the other."""

    def duration(chance: Random, number: int) -> float:
        usual = other(chance, number)
        return one(chance, number) if first <= number < last else usual

    return duration


def uniform(shortest_s: float, longest_s: float) -> Script:
    """Durations between two bounds."""
    return lambda chance, _: chance.uniform(shortest_s, longest_s)


def hang(_chance: Random, _number: int) -> float:
    """Never answers."""
    return HANGS


def mean_timeout_s(attempts: Sequence[Attempt]) -> float:
    """The mean of what calls that do not explore got."""
    return mean(attempt.timeout_s for attempt in attempts)


def cut_share(attempts: Sequence[Attempt]) -> float:
    """The share of calls that were cut although they would have been answered."""
    return mean(attempt.cut and attempt.duration_s < HANGS for attempt in attempts)
