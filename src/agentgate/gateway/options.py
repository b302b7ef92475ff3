"""Times and bounds of the gateway itself; every policy has its own options beside it."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """How long things may take on a call's path."""

    # A root call without a stated time-out: long enough for a chain of model calls, short enough for a person.
    root_deadline_s: float = 30.0
    # A child's deadline ends before its parent's, by the larger of the two: time for the answer to travel back.
    child_margin_s: float = 0.05
    child_margin_share: float = 0.05
    # From "please stop" to zombie.
    stop_grace_s: float = 1.0
    # After a gate's start, recorded units wait this long for their instance to come back.
    recovery_s: float = 10.0
    # A caller whose link is gone may come back for its answers this long.
    peer_grace_s: float = 3.0
    # A connection of a client from which nothing was heard this long is dead (three missed beats).
    silent_s: float = 6.0
    # The check of an unknown key is asked at most this often.
    check_interval_s: float = 5.0
    # One peer's calls in flight at the gate (or one caller's over HTTP); above it the peer itself is at fault.
    peer_calls_max: int = 4096
    # Calls over HTTP that are open at once: each costs some KiB and holds no more than its payload.
    http_calls_max: int = 10_000
    # A keyed call over HTTP that takes longer is answered with 202 and goes on: proxies and people wait longer.
    answer_within_s: float = 3.0
    # Processes connected at once.
    peers_max: int = 10_000
    # Keys in flight at once.
    flights_max: int = 100_000
    # A unit's progress notes that its span keeps.
    notes_max: int = 8

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                msg = f"{field.name} must be above 0, not {value!r}"
                raise ValueError(msg)
