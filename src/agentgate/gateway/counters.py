"""What happened so far, as plain integers: cheap to count, read at scrape time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Counters:
    """Totals since the gate's start."""

    calls: int = 0
    attempts: int = 0
    retries: int = 0  # attempts after the first
    retries_saved: int = 0  # attempts left when a call met an open breaker
    replays: int = 0
    joins: int = 0
    messages: int = 0  # frames of calls and answers through the gate
    late_answers: int = 0
    lost_units: int = 0
    zombies: int = 0
    rejoined_units: int = 0
    probes: int = 0  # processes asked how their late units are
    woken_units: int = 0  # late units whose repeated waits were ended
    released_units: Counter[str] = field(default_factory=Counter)  # units given up, by what their callers were told
    checks: int = 0
    locks_lost: int = 0  # leases that ended while they were held
    signals: int = 0  # that were taken
    waits: Counter[str] = field(default_factory=Counter)  # for signals, by the code they ended with; "" is a signal
    protocol_errors: int = 0
    http_answers: Counter[str] = field(default_factory=Counter)  # of HTTP agents, by class of status, or how it failed
    registrations: int = 0  # hellos of agents that were taken
    registrations_put_off: int = 0  # and those that were told to come again
    outcomes: Counter[str] = field(default_factory=Counter)  # by code; "" is success
    would: Counter[str] = field(default_factory=Counter)  # decisions of observe mode
