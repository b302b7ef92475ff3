"""What was noticed while calls went on, for people to look at: each thing once, with how often and since when.

Decides which findings are kept. The rules:

- A finding is known by tenant, kind and subject. Seen again, it is the same one: it counts on, keeps its first time,
  and takes the newest evidence.
- The number kept is bounded. For room the one goes that has been quiet for longest; what keeps happening stays.
- Every kind has a row in `KINDS`: what it means, what its evidence says, and what to do first. Another kind is a defect
  of ours.

How it works. A bounded map by tenant, kind and subject, and a total a kind that only grows, for the metrics.

Not covered: when something is a finding; the policies and the directory say that. A finding refuses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from agentgate.core.bounded import BoundedMap
from agentgate.core.deadlock import LOOK, WAYS_OUT
from agentgate.model import Finding

FINDINGS_MAX: Final = 1_000  # more than anybody reads, and few enough to be sent in one answer


class Kind(NamedTuple):
    """One kind of finding: what was seen, which figures come with it, what to do first."""

    meaning: str
    evidence: str
    advice: str


KINDS: Final[dict[str, Kind]] = {
    "cards_differ": Kind(
        "two instances of one agent declare its tier, or one task type, in two ways",
        "`instance` that differs, `what` it declares differently",
        "Bring all instances of the agent to the same version; until then the gate believes the one that came first.",
    ),
    "hammering_caller": Kind(
        "a caller goes on repeating a request that was answered `retry: never`, and is held back from the target",
        "`task_type`, the `code` it was answered, `repeats` of that request, `held_s`: for how long",
        "Find the loop in the caller and take it out: the gate retries what time can cure, and nothing else is cured.",
    ),
    "duplicate_parameters": Kind(
        "a caller has an equal write done under another business key, while the first runs or after it ended badly, or "
        "twice in one chain",
        "`keys`: the business keys with equal bodies, the newest last",
        "See with `agentgate chains KEY` whether it was one order placed twice; a business key names the object, and "
        "is never made anew for a retry.",
    ),
    "caller_limit_below_gate": Kind(
        "a caller gives up before the target usually answers, or always after the same time before the gate does",
        "`limit_s`: how long it waits, `usual_s`: what 95 of 100 answers take; or `leaves_after_s`, and `gate_s`: how "
        "long the gate would have gone on",
        "Let the caller wait longer than the gate does, or tell the gate its limit with `timeout`; for work that takes "
        "longer than anybody waits, ask again later with the same key.",
    ),
    "deadlock": Kind(
        "agents waited for one another in a circle, or were about to",
        "`cycle`: who waits for whom and on what, by agent, task type and business key; `how`: `refused` where it "
        "would have closed, or `confirmed` standing, and in observe mode `observed_closing` or `observed_standing`; "
        "`victim`: the unit whose waits were ended, or would have been; `trace_id` of a call in it",
        f"{LOOK} {' '.join(WAYS_OUT.values())}",
    ),
    "stuck_unit": Kind(
        "a unit showed no progress for so long that it was given up, though its process lives",
        "`instance`, `unit`, `business_key`, `quiet_s`: for how long, `timeout_s`: what is normal, `health`: what its "
        "process says of it (`waiting`: the handler has not begun), `trace_id`",
        "See with `agentgate chains TRACE` how far it came. Let honest long work call `ctx.progress`, or declare its "
        "`timeout_s`; a handler that hangs needs limits on what it waits for outside of the gate.",
    ),
    "blocked_loop": Kind(
        "the event loop of an agent's handlers stood still while units of it were late",
        "`instance`, `lag_s`: how far the loop was behind, `blocks`: the unit that was at work, or the oldest of "
        "several, `units`: some of those that were late, `trace_id`",
        "Look at the handler in `blocks` first: what blocks in an async handler (a blocking library, long computing) "
        "belongs in a handler that is not async, or in a thread; one blocked handler holds up all others of its "
        "process.",
    ),
    "unlinked_calls": Kind(
        "an agent that has units open makes calls, and nobody can tell by which of them",
        "`target` and `task_type` of the last such call",
        "Send the header `agentgate-unit-token` of the request that is worked on along with each call that is made for "
        "it (with our SDK: call through `ctx`). Without it no circle and no loop is seen that leads through the call.",
    ),
    "instance_name_shared": Kind(
        "several processes say they are the same instance, and take each other's connection, or registration by HTTP, "
        "over again and again",
        "`takeovers` of what still stood within the last minute; `pids`: the process ids that said so, or `endpoints`",
        "Give every process an instance name of its own (left to the SDK, it is random), or stop the one that was "
        "started twice. If there is only one, look for a network that breaks its connections on one side.",
    ),
    "breaker_opened": Kind(
        "a target failed so often that it is left alone for a while",
        "`open_s`: how long it is left alone this time",
        "Look at the target's own log and at `agentgate breakers`; its callers are on their degraded branches.",
    ),
}


class Findings:
    """All findings of a gate; `totals` counts every report by kind."""

    def __init__(self, findings_max: int = FINDINGS_MAX) -> None:
        self._known: BoundedMap[tuple[str, str, str], Finding] = BoundedMap(findings_max)
        self.totals: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._known)

    def report(
        self, kind: str, subject: str, evidence: Mapping[str, Any], *, tenant: str, at: float, advice: str = ""
    ) -> bool:
        """Something was seen, at this wall time; whether it is the first time. `advice`: better than the kind's own."""
        advice = advice or KINDS[kind].advice
        self.totals[kind] += 1
        name = (tenant, kind, subject)
        known = self._known.get(name)
        if known is not None:
            last_seen = max(at, known.last_seen)
            count = known.count + 1
            known = replace(known, evidence=dict(evidence), advice=advice, count=count, last_seen=last_seen)
            self._known[name] = known
            return False
        self._known[name] = Finding(
            kind=kind,
            subject=subject,
            tenant=tenant,
            evidence=dict(evidence),
            advice=advice,
            count=1,
            first_seen=at,
            last_seen=at,
        )
        return True

    def of(self, tenant: str) -> list[Finding]:
        """A tenant's findings, what was seen last first."""
        mine = [finding for _, finding in self._known.items() if finding.tenant == tenant]
        return sorted(mine, key=lambda finding: finding.last_seen, reverse=True)
