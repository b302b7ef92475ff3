"""The figures of a run: what each is, and what it means in a few words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentgate.cli.demo.gauges import Counts
from agentgate.cli.demo.judge import Verdict


@dataclass(frozen=True, kw_only=True)
class Result:
    """Everything that is reported of a run."""

    verdict: Verdict
    counts: Counts
    seconds: float
    seed: int
    faults: bool
    wait_graph: str = "enforce"  # the mode of the gate that was run

    @property
    def holds(self) -> bool:
        """Whether the bars hold."""
        return self.verdict.holds and self.counts.deadlocks_resolved == self.counts.deadlocks_found

    def as_json(self) -> dict[str, Any]:
        """One flat object; every name is explained in `MEANINGS`."""
        verdict, counts = self.verdict, self.counts
        return {
            "orders": verdict.orders,
            "completed": verdict.kinds["completed"],
            "degraded": verdict.kinds["degraded"],
            "failed": verdict.kinds["failed"],
            "unknown": verdict.kinds["unknown"],
            "declined": verdict.declined,
            "completion_rate": round(verdict.completion_rate, 4),
            "effects": verdict.effects,
            "effects_twice": verdict.effects_twice,
            "duplicates_answered": counts.replays + counts.joins,
            "answers_differ": verdict.answers_differ,
            "calls": counts.calls,
            "retries": counts.retries,
            "retries_saved": counts.retries_saved,
            "breaker_opened": counts.breaker_opened,
            "checks": counts.checks,
            "malformed": counts.malformed,
            "deadlocks_found": counts.deadlocks_found,
            "deadlocks_resolved": counts.deadlocks_resolved,
            "longest_wait_ms": counts.longest_wait_ms,
            "messages": counts.messages,
            "messages_full_mesh": counts.messages * (counts.agents - 1),
            "e2e_p50_ms": verdict.percentile_ms(0.50),
            "e2e_p95_ms": verdict.percentile_ms(0.95),
            "seconds": round(self.seconds, 1),
            "agents": counts.agents,
            "seed": self.seed,
            "faults": "on" if self.faults else "off",
            "wait_graph": self.wait_graph,
        }


# In the order and groups in which people read them.
MEANINGS: dict[str, dict[str, str]] = {
    "Orders": {
        "orders": "handed to the team",
        "completed": "got a definite answer, and the customer knows it",
        "declined": "of them with a justified no: sold out, or not to be trusted",
        "degraded": "back-ordered, because something did not work",
        "failed": "ended in an error",
        "unknown": "nobody can say how they ended",
        "completion_rate": "completed or degraded; the bar is 0.99",
    },
    "Effects": {
        "effects": "rows in the agents' own file: reserved, confirmed, notified, ...",
        "effects_twice": "done twice for the same order, counted in that file; the bar is 0",
        "duplicates_answered": "repeated calls that got the first one's answer and were not run again",
        "answers_differ": "repeats that were told something else than the first",
        "checks": "times a new process was asked what the killed one had done",
    },
    "Faults": {
        "breaker_opened": "times a failing target was left alone for a while",
        "retries_saved": "attempts that were not made because a breaker was open",
        "retries": "attempts after the first, all made by the gate",
        "malformed": "answers that did not fit their schema; the order went on without",
    },
    "Waits": {
        "deadlocks_found": "circles of agents that wait for one another: refused where they would close, or found",
        "deadlocks_resolved": "of them those of which nobody had to wait for a time-out; the bar is all",
        "longest_wait_ms": "the longest that an agent waited for another",
    },
    "Traffic": {
        "calls": "between clients and agents, all through the gate",
        "messages": "frames of calls and answers",
        "messages_full_mesh": "the same, had each gone to every agent",
        "e2e_p50_ms": "half of the orders were answered within this time",
        "e2e_p95_ms": "95 % of the orders were",
        "seconds": "from the first process to the last",
    },
}
