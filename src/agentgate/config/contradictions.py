"""Settings that are allowed and still make no sense, alone or together; `config check` names them (REQUIREMENTS I7).

A table: the keys that are concerned, when it holds, why that is bad, and what to do. Nothing here stops a gate from
starting; what can never be right is refused where the options are made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct

from agentgate.config.describe import Row, rows
from agentgate.config.loader import MECHANISM_PREFIX, Loaded
from agentgate.config.mechanisms import MECHANISMS
from agentgate.config.settings import MEMORY, Settings
from agentgate.server.options import LOOPBACK_HOSTS

FACTOR_LOW: Final = 1.4  # below it, ordinary spread counts as time-out
PROBES_BEFORE_SILENCE: Final = 2
QUICK_CALL_S: Final = 0.1  # what a call of an ordinary service takes; of a model it is ten times as much
BEATS_MISSED: Final = 2.0  # a process whose link is fine may be late with one beat
DAY_H: Final = 24.0


class Contradiction(Struct, frozen=True, kw_only=True):
    """What makes no sense: the keys with their values and where those come from, why, and what to do."""

    keys: tuple[Row, ...]
    why: str
    remedy: str

    @property
    def text(self) -> str:
        """One sentence for people."""
        named = " and ".join(f"{row.name} = {row.value} ({row.origin})" for row in self.keys)
        return f"{named}: {self.why}; {self.remedy}"


class Rule(NamedTuple):
    """One way to contradict oneself."""

    keys: tuple[str, ...]
    holds: Callable[[Settings], bool]
    why: str
    remedy: str


def contradictions(loaded: Loaded) -> list[Contradiction]:
    """Everything that is odd, in the order of the table."""
    known = {row.name: row for row in rows(loaded)}
    return [
        Contradiction(keys=tuple(known[name] for name in rule.keys), why=rule.why, remedy=rule.remedy)
        for rule in RULES
        if rule.holds(loaded.settings)
    ]


def _observed(name: str) -> Rule:
    return Rule(
        (MECHANISM_PREFIX + name,),
        lambda settings: settings.mechanisms[name] == "observe",
        "it only says what it would do",
        "see `agentgate config suggest`, then enforce it",
    )


def _tries_s(settings: Settings) -> float:
    """What all attempts of a call take when each is cut as soon as can be, without the random part of the waits."""
    retry = settings.retry
    waits_s = sum(min(retry.base_s * 2.0**number, retry.cap_s) for number in range(retry.attempts_max - 1))
    return retry.attempts_max * settings.timeout.min_s + waits_s


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        ("store",),
        lambda s: s.store.url == MEMORY,
        "a restart forgets every key, so repeats run again",
        "name a file, as in sqlite:agentgate.sqlite",
    ),
    Rule(
        ("mechanisms.idempotency",),
        lambda s: s.mechanisms["idempotency"] == "off",
        "a repeated key runs again",
        "enforce it, or observe it first",
    ),
    Rule(
        ("idempotency.ttl_hours", "calls.root_deadline_seconds"),
        lambda s: s.ledger.ttl_s < s.calls.root_deadline_s,
        "the record of a key ends before the chain does that it belongs to, and a repeat runs again",
        "keep records for at least as long as the longest chain of calls takes; a day is usual",
    ),
    Rule(
        ("tracing.keep_days", "idempotency.ttl_hours"),
        lambda s: s.store.span_days * DAY_H * 3600 < s.ledger.ttl_s,
        "an outcome is replayed whose spans are gone, and nobody can see where it came from",
        "keep spans for as long as records",
    ),
    Rule(
        ("calls.recovery_seconds", "presence.expected_seconds"),
        lambda s: s.calls.recovery_s < s.presence.expected_s,
        "after a restart, work of agents that are still expected is called unknown",
        "let recovery take at least as long",
    ),
    Rule(
        ("calls.silent_seconds", "presence.beat_seconds"),
        lambda s: s.calls.silent_s < BEATS_MISSED * s.presence.beat_s,
        "one late beat ends the link of a client",
        "allow for two beats at least, better three",
    ),
    Rule(
        ("concurrency.lease_ttl_seconds", "presence.beat_seconds"),
        lambda s: s.locks.lease_s < BEATS_MISSED * s.presence.beat_s,
        "one late beat takes the locks of a living holder",
        "allow for two beats at least; longer than an agent may be silent is better",
    ),
    Rule(
        ("presence.silent_seconds", "agents.probe_seconds"),
        lambda s: s.presence.silent_s < PROBES_BEFORE_SILENCE * s.agents.probe_s,
        "one late probe takes an HTTP agent away",
        "allow for two probes at least",
    ),
    Rule(
        ("server.host",),
        lambda s: s.server.host not in LOOPBACK_HOSTS,
        "the gate speaks plain HTTP, so tokens and payloads can be read on the way",
        "put a proxy that speaks TLS in front of it",
    ),
    Rule(
        ("server.idle_seconds", "presence.silent_seconds"),
        lambda s: s.server.idle_s < s.presence.silent_s,
        "links are cut before an agent counts as silent",
        "set it above the silence of agents",
    ),
    Rule(
        ("server.frame_bytes_max", "payload.bytes_max"),
        lambda s: s.server.frame_bytes_max < 2 * s.payload.bytes_max,
        "a payload that is allowed may not fit a message, and ends the link",
        "let a message hold twice the largest payload",
    ),
    Rule(
        ("dynamic_timeout.safety_factor",),
        lambda s: s.timeout.safety_factor < FACTOR_LOW,
        "ordinary spread counts as time-out",
        f"set it to {FACTOR_LOW} or more; 1.6 is usual",
    ),
    Rule(
        ("calls.root_deadline_seconds", "dynamic_timeout.default_ms"),
        lambda s: s.calls.root_deadline_s < s.timeout.default_s,
        "callers give up before the gate would: attempts at targets that are not known yet are cut by the deadline",
        "let callers wait longer, or the gate less",
    ),
    Rule(
        ("dynamic_timeout.max_ms", "calls.root_deadline_seconds"),
        lambda s: s.timeout.max_s > s.calls.root_deadline_s,
        "the deadline of most calls ends first, so the longest time-outs never come true",
        "let callers wait for as long as an attempt may take",
    ),
    Rule(
        ("circuit_breaker.trial_timeout_seconds", "dynamic_timeout.max_ms"),
        lambda s: s.breaker.trial_timeout_s < s.timeout.max_s,
        "a trial counts as failed while its attempt may still run, so a slow target stays cut off",
        "let a trial take as long as an attempt may",
    ),
    Rule(
        ("circuit_breaker.heavy_trial_timeout_seconds", "dynamic_timeout.heavy_max_ms"),
        lambda s: s.breaker.heavy_trial_timeout_s < s.timeout.heavy_max_s,
        "a heavy trial counts as failed while its attempt may still run, so heavy work stays cut off",
        "let a heavy trial take as long as a heavy attempt may",
    ),
    Rule(
        ("circuit_breaker.outcomes_min", "rate_limit.per_second"),
        lambda s: (
            s.mechanisms["rate_limit"] == "enforce" and s.breaker.outcomes_min > s.rate.rate_per_s * s.breaker.window_s
        ),
        "the calls of one sender never fill the window, so the ratio of faults never counts",
        "ask for fewer outcomes, or look further back (circuit_breaker.window_seconds)",
    ),
    Rule(
        ("concurrency.ejection_faults", "circuit_breaker.faults_in_a_row"),
        lambda s: s.slots.ejection_faults >= s.breaker.faults_in_a_row,
        "one broken instance opens the breaker of its whole agent before it is put out",
        "put an instance out after fewer faults than open a breaker",
    ),
    Rule(
        ("concurrency.queue_max", "calls.root_deadline_seconds"),
        lambda s: s.slots.queue_max * QUICK_CALL_S / s.slots.concurrency_default > s.calls.root_deadline_s,
        f"the last of a full queue waits past its deadline, even where a call takes {QUICK_CALL_S:g} s",
        "let fewer wait, or more run at once (concurrency.default)",
    ),
    Rule(
        ("retry.max_attempts", "calls.root_deadline_seconds"),
        lambda s: s.mechanisms["retry"] != "off" and _tries_s(s) > s.calls.root_deadline_s,
        "the last attempts never begin: even the shortest time-outs and the waits between fill the deadline",
        "make fewer attempts, wait less between them, or let callers wait longer",
    ),
    Rule(
        ("retry.backoff_base_ms", "retry.backoff_max_ms"),
        lambda s: s.retry.base_s > s.retry.cap_s,
        "the first wait is above the longest, so no wait ever grows",
        "set the longest wait above the first",
    ),
    Rule(
        ("chain_guard.calls_max", "chain_guard.fan_out_max"),
        lambda s: s.chain.calls_max < s.chain.fan_out_max,
        "one unit may make more calls than its whole chain",
        "let a chain have more calls than a unit",
    ),
    Rule(
        ("rate_limit.burst", "chain_guard.fan_out_max"),
        lambda s: s.mechanisms["rate_limit"] == "enforce" and s.rate.burst < s.chain.fan_out_max,
        "a fan-out that is allowed has to wait at the entrance",
        "let a sender send at once what a unit may call",
    ),
    *(_observed(name) for name, known in MECHANISMS.items() if "observe" in known.modes),
)
