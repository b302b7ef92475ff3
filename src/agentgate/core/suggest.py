"""Proposes thresholds from what was recorded, with the figures they rest on (REQUIREMENTS I2).

What is decided: for each threshold that the past has something to say about, whether another value would fit it better;
and for each mechanism in observe mode, whether what it would have done is a reason against enforcing it. Rules:

- Too few data propose nothing, and say so. A threshold is proposed only when it would differ clearly: settings that
  follow every week's traffic are nobody's settings any more.
- The past shows what is ordinary. So a threshold is set where ordinary work has room below it, never so that a known
  failure just passes; where the past may have been a failure, the reason says so.
- Enforcing is proposed when at most one call in a hundred would have been refused or cut and ended well all the same.
  Waits, answers from the ledger and further attempts are what their mechanisms are for, and no reason against them.
- Heavy work and skills with a time of their own have their own limits, and say nothing about the common ones.

Values are in the units of the configuration file. What belongs on an agent's card, and not into the file, is marked.

Not covered: how often a proposal was right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import ceil, floor, log10
from typing import Final, NamedTuple

from msgspec import Struct

from agentgate.core.backoff import BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.core.policy import Mode
from agentgate.core.rate import RateOptions
from agentgate.core.recorded import Recorded, Target, quantile
from agentgate.core.timeout import TimeoutOptions

CALLS_MIN: Final = 200  # fewer say little about one in a hundred
PERIOD_MIN_S: Final = 3600.0  # of watching a mechanism: minutes have no peak in them
ANSWERS_MIN: Final = 200  # of one target, for its slowest hundredth
WINDOWS_MIN: Final = 20  # windows of time with enough outcomes, for the worst twentieth
LAST_TRIES_MIN: Final = 50  # calls that came to their last attempt
HARM_MAX: Final = 0.01  # of the calls, that enforcing may end otherwise
CUT_MAX: Final = 0.05  # of a target's attempts; above it, it hung, and its durations are those of the lucky ones
NICE: Final = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)

MIN_MS_LEAST: Final = 500.0  # below it a pause of the runtime looks like a hang
FACTOR_MOST: Final = 5.0
RATE_LEAST: Final = 10.0
BURST_LEAST: Final = 50.0  # the fan-out that one unit is allowed
RATIO_LEAST: Final = 0.1
RATIO_MOST: Final = 0.9
ATTEMPTS_MOST: Final = 5


class Current(Struct, frozen=True, kw_only=True):
    """The settings as they are."""

    modes: Mapping[str, Mode]
    timeout: TimeoutOptions
    breaker: BreakerOptions
    rate: RateOptions
    retry: BackoffOptions
    root_deadline_s: float


class Proposal(Struct, frozen=True, kw_only=True):
    """Another value for a key. `in_file` False: it goes onto the card of an agent, and `key` says which."""

    key: str
    current: float | str | None
    proposed: float | str
    reason: str
    figures: dict[str, float]
    in_file: bool = True


class Silence(Struct, frozen=True, kw_only=True):
    """About this nothing is proposed, and why."""

    subject: str
    why: str


class Would(NamedTuple):
    """A note of observe mode: whose it is, what would have been done, and whether the call would have failed by it."""

    mechanism: str
    did: str
    harms: bool


# Every note that a call may carry, in the order of the path.
NOTES: Final[dict[str, Would]] = {
    "would_pace": Would("rate_limit", "made {} wait", harms=False),
    "would_rate_limit": Would("rate_limit", "refused {}", harms=True),
    "would_chain_limit": Would("chain_guard", "refused {}", harms=True),
    "would_deadlock": Would("wait_graph", "refused {} that would have closed a circle of waits", harms=True),
    "would_release": Would("watchdog", "answered in place of {} whose unit was stuck", harms=True),
    "would_loop": Would("chain_guard", "refused {} as loops", harms=True),
    "would_replay": Would("idempotency", "answered {} from the ledger", harms=False),
    "would_join": Would("idempotency", "answered {} with the run of the same key", harms=False),
    "would_conflict": Would("idempotency", "refused {} whose key has another body", harms=True),
    "would_overload_keys": Would("idempotency", "refused {} for too many keys at work", harms=True),
    "would_store_down": Would("idempotency", "refused {} while the store did not answer", harms=True),
    "would_cool_down": Would("cool_down", "held back {}", harms=True),
    "would_queue": Would("concurrency", "made {} wait", harms=False),
    "would_overload": Would("concurrency", "refused {}", harms=True),
    "would_open": Would("circuit_breaker", "refused {}", harms=True),
    "would_cut": Would("dynamic_timeout", "cut {}", harms=True),
    "would_retry": Would("retry", "tried {} again", harms=False),
    "would_hold_back": Would("abuse", "held back {}", harms=True),
    "would_quota_exhausted": Would("quota", "refused {} beyond their quota", harms=True),
}

Said = Iterator[Proposal | Silence]


class Suggestions(Struct, frozen=True, kw_only=True):
    """What is proposed, about what nothing is, and what both rest on."""

    period_s: float
    calls: int
    attempts: int
    proposals: list[Proposal]
    silent: list[Silence]


def suggest(recorded: Recorded, current: Current) -> Suggestions:
    """Everything that the past has to say."""
    rules: tuple[Callable[[Recorded, Current], Said], ...] = (
        _modes, _timeouts, _breaker, _rate, _retry, _concurrency,
    )  # fmt: skip
    said = [item for rule in rules for item in rule(recorded, current)]
    return Suggestions(
        period_s=round(recorded.period_s, 1),
        calls=recorded.calls,
        attempts=recorded.attempts,
        proposals=[item for item in said if isinstance(item, Proposal)],
        silent=[item for item in said if isinstance(item, Silence)],
    )


def _modes(recorded: Recorded, current: Current) -> Said:
    for mechanism, mode in current.modes.items():
        if mode != "observe":
            continue
        key = f"mechanisms.{mechanism}"
        if recorded.calls < CALLS_MIN:
            yield Silence(subject=key, why=f"{_count(recorded.calls)} calls were recorded, {CALLS_MIN} are needed")
            continue
        if recorded.period_s < PERIOD_MIN_S:
            why = f"only {period(recorded.period_s)} were recorded, {period(PERIOD_MIN_S)} are needed"
            yield Silence(subject=key, why=why)
            continue
        notes = {note: recorded.would[note] for note, would in NOTES.items() if would.mechanism == mechanism}
        fails = [note for note in notes if NOTES[note].harms]
        done = [NOTES[note].did.format(_count(count)) for note, count in notes.items() if count]
        harm = sum(recorded.would_but_done[note] for note in fails)
        done_or_not = " and ".join(done) if done else "touched none"
        what = f"in {period(recorded.period_s)} it would have {done_or_not} of {_count(recorded.calls)} calls"
        if sum(notes[note] for note in fails):
            what += f", and {_count(harm)} of those that it would have failed ended well"
        if harm > HARM_MAX * recorded.calls:
            yield Silence(subject=key, why=f"observe it further: {what}")
        else:
            counts = {note: float(count) for note, count in notes.items() if count}
            figures = {"calls": float(recorded.calls), **counts}
            yield Proposal(key=key, current="observe", proposed="enforce", reason=what, figures=figures)


def _timeouts(recorded: Recorded, current: Current) -> Said:
    options = current.timeout
    limit_ms = options.max_s * 1000
    fit = {
        f"{agent} {task_type}": sorted(target.durations)
        for (agent, task_type), target in recorded.targets.items()
        if _is_telling(target, limit_ms)
    }
    if not fit:
        most = max((len(target.durations) for target in recorded.targets.values()), default=0)
        why = f"no target with the common limits has {ANSWERS_MIN} answers and few time-outs; the most are {most}"
        yield Silence(subject="dynamic_timeout", why=why)
        return
    name, slowest = max(fit.items(), key=lambda item: quantile(item[1], 0.99))
    figures = _figures(slowest)
    needed_ms = figures["p99"] * options.safety_factor
    slow = f"{name} is the slowest: 99 of 100 answers take {figures['p99']:.0f} ms"
    yield from _longest(options, needed_ms, min(3600.0, current.root_deadline_s) * 1000, slow, figures)
    least_ms = nice(max(MIN_MS_LEAST, 2 * needed_ms))
    if least_ms <= options.min_s * 500:
        reason = f"{slow}, so a hang can be found sooner"
        yield _proposal("dynamic_timeout.min_ms", options.min_s * 1000, least_ms, reason, figures)
    yield from _factor(options, fit)


def _longest(options: TimeoutOptions, needed_ms: float, most_ms: float, slow: str, figures: dict[str, float]) -> Said:
    limit_ms = options.max_s * 1000
    if needed_ms > limit_ms:
        longer_ms = min(nice(needed_ms), most_ms)
        if longer_ms > limit_ms:
            yield _proposal("dynamic_timeout.max_ms", limit_ms, longer_ms, f"{slow}, which needs more room", figures)
        return
    shorter_ms = max(nice(2 * needed_ms), options.min_s * 1000)
    if shorter_ms <= limit_ms / 2:
        yield _proposal(
            "dynamic_timeout.max_ms", limit_ms, shorter_ms, f"{slow}, so no hang has to last longer", figures
        )


def _factor(options: TimeoutOptions, fit: Mapping[str, list[float]]) -> Said:
    """The spread above P95 is what the factor is for; below the shortest time-out it does not matter."""
    governed = {
        name: durations
        for name, durations in fit.items()
        if quantile(durations, 0.95) * options.safety_factor > options.min_s * 1000
    }
    if not governed:
        return
    name, durations = max(governed.items(), key=lambda item: quantile(item[1], 0.99) / quantile(item[1], 0.95))
    figures = _figures(durations)
    spread = figures["p99"] / figures["p95"]
    if spread > options.safety_factor:
        wider = min(FACTOR_MOST, ceil(spread * 11) / 10)
        reason = f"one in a hundred answers of {name} takes {spread:.1f} times its P95 or more, and is cut"
        yield _proposal("dynamic_timeout.safety_factor", options.safety_factor, wider, reason, figures)


def _is_telling(target: Target, limit_ms: float) -> bool:
    if len(target.durations) < ANSWERS_MIN or target.longest_timeout_ms > limit_ms:
        return False
    return target.cut <= CUT_MAX * (target.cut + len(target.durations))


def _breaker(recorded: Recorded, current: Current) -> Said:
    options = current.breaker
    shares = sorted(
        target.faults[window] / outcomes
        for target in recorded.targets.values()
        for window, outcomes in target.outcomes.items()
        if outcomes >= options.outcomes_min
    )
    key = "circuit_breaker.error_ratio"
    if len(shares) < WINDOWS_MIN:
        why = (
            f"{len(shares)} windows of {options.window_s:g} s have {options.outcomes_min} outcomes of one target, "
            f"{WINDOWS_MIN} are needed"
        )
        yield Silence(subject=key, why=why)
        return
    figures = _figures(shares, digits=4)
    said = f"in 95 of 100 windows at most {figures['p95']:.1%} of the outcomes are faults"
    if figures["p95"] >= options.error_ratio:
        wider = min(RATIO_MOST, ceil(figures["p95"] * 30) / 20)
        reason = f"{said}, and it opens at fewer; mend the target if that is not its ordinary state"
        yield _proposal(key, options.error_ratio, wider, reason, figures)
        return
    closer = max(RATIO_LEAST, ceil(figures["p99"] * 40) / 20)
    if closer <= options.error_ratio / 2:
        yield _proposal(key, options.error_ratio, closer, f"{said}, so it can open sooner", figures)


def _rate(recorded: Recorded, current: Current) -> Said:
    key = "rate_limit.per_second"
    peaks = {caller: sender.calls for (_, caller), sender in recorded.senders.items()}
    if recorded.calls < CALLS_MIN:
        yield Silence(subject=key, why=f"{_count(recorded.calls)} calls were recorded, {CALLS_MIN} are needed")
        return
    busiest = max(peaks, key=lambda caller: max(peaks[caller].values()))
    seconds = peaks[busiest]
    in_one = max(seconds.values())
    in_ten = max(sum(seconds[second + later] for later in range(10)) for second in list(seconds)) / 10
    figures = {"n": float(seconds.total()), "peak_1s": float(in_one), "peak_10s_mean": round(in_ten, 1)}
    options = current.rate
    said = f"{busiest} is the busiest sender, with {in_one} calls in its busiest second and {in_ten:.1f}/s over ten"
    per_s = max(RATE_LEAST, nice(3 * in_ten))
    if in_ten * 1.2 > options.rate_per_s or per_s <= options.rate_per_s / 4:
        yield _proposal(key, options.rate_per_s, per_s, said, figures)
        burst = nice(max(BURST_LEAST, 2.0 * in_one, per_s))
        if burst != options.burst:
            yield _proposal("rate_limit.burst", options.burst, burst, said, figures)


def _retry(recorded: Recorded, current: Current) -> Said:
    last = current.retry.attempts_max
    key = "retry.max_attempts"
    came = recorded.reached[last]
    if current.modes.get("retry") != "enforce" or last < 2:  # noqa: PLR2004 - one attempt is no retry
        return
    if came < LAST_TRIES_MIN:
        yield Silence(subject=key, why=f"{came} calls came to their last attempt, {LAST_TRIES_MIN} are needed")
        return
    share = recorded.ended_well[last] / came
    figures = {"n": float(came), "ended_well": float(recorded.ended_well[last]), "share": round(share, 3)}
    said = f"of {_count(came)} calls that came to attempt {last}, {share:.0%} ended well with it"
    if share <= CUT_MAX:
        yield _proposal(key, last, last - 1, f"{said}, so it only adds load", figures)
    elif share >= 1 / 2 and last < ATTEMPTS_MOST:
        yield _proposal(key, last, last + 1, f"{said}, so one more would save some", figures)


def _concurrency(recorded: Recorded, current: Current) -> Said:
    observed = current.modes.get("concurrency") == "observe"
    for (agent, instance), runs in sorted(recorded.instances.items()):
        total = len(runs.intervals)
        waited = [wait_ms for wait_ms in sorted(runs.waits) if wait_ms >= 1]
        over = recorded.would_at[agent]["would_queue"] + recorded.would_at[agent]["would_overload"] if observed else 0
        if total < CALLS_MIN or max(len(waited), over) < CUT_MAX * total:
            continue
        most = runs.most_at_once()
        figures = {"n": float(total), "waited": float(max(len(waited), over)), "most_at_once": float(most)}
        if observed:
            proposed, reason = most, f"{_count(over)} calls would have waited at {agent}; so many ran at once"
        else:
            figures["wait_p95_ms"] = round(quantile(waited, 0.95), 1)
            proposed = 2 * most
            reason = f"{len(waited) / total:.0%} of its calls waited for room, with at most {most} at once"
        key = f"concurrency on the card of {agent} (or another instance beside {instance})"
        yield Proposal(key=key, current=None, proposed=proposed, reason=reason, figures=figures, in_file=False)


def nice(value: float) -> float:
    """The next round number from this one up."""
    if value <= 0:
        return 0.0
    power = 10.0 ** floor(log10(value))
    found = next(step * power for step in NICE if step * power >= value * (1 - 1e-9))
    return round(found, 6)


def _proposal(key: str, current: float, proposed: float, reason: str, figures: dict[str, float]) -> Proposal:
    now, then = (int(value) if value == int(value) else value for value in (current, proposed))
    return Proposal(key=key, current=now, proposed=then, reason=reason, figures=figures)


def _figures(values: list[float], digits: int = 1) -> dict[str, float]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {
        "n": float(len(values)),
        **{name: round(quantile(values, share), digits) for name, share in shares.items()},
        "max": round(values[-1], digits),
    }


def _count(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def period(seconds: float) -> str:
    """A time as people say it."""
    if seconds >= 2 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 2 * 60 else f"{seconds:.0f} s"
