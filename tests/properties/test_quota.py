"""Quotas under random histories, against the list of everything that was ever admitted."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.policy import Admit
from agentgate.core.quota import SLICES, QuotaLimit, QuotaOptions, Quotas, QuotaTicket
from agentgate.model import Call, Outcome, failure

LIMITS = (
    QuotaLimit(user="*", units=10, per_s=60),
    QuotaLimit(user="*", task_type="*", units=7, per_s=10, concurrent=4),
    QuotaLimit(task_type="render", units=12.5, per_s=30),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["carol", "dave"]),
        st.sampled_from(["render", "look"]),
        st.sampled_from([0.0, 0.3, 1.0, 2.5, 6.0]),
        st.floats(0.0, 15.0),
        st.sampled_from(["keep", "keep", "end", "unsent"]),
    ),
    max_size=60,
)


def counts(limit: QuotaLimit, made: Call, other: Call) -> bool:
    """Whether a limit that speaks of `made` counts `other` in the same window."""
    for wanted, mine, its in ((limit.user, made.user, other.user), (limit.task_type, made.task_type, other.task_type)):
        if wanted and (its != mine or wanted not in ("*", mine)):
            return False
    return True


@given(STEPS)
def test_no_window_of_any_position_passes_its_limit(steps: list[tuple[str, str, float, float, str]]) -> None:
    """B12: what is admitted fits within all limits; what is refused would not have fitted a slice earlier."""
    policy = Quotas(QuotaOptions(limits=LIMITS))
    now = 0.0
    taken: list[tuple[float, Call]] = []
    running: list[tuple[QuotaTicket, tuple[float, Call]]] = []
    for user, task_type, cost, pause, what in steps:
        now += pause
        made = Call(id="c", target="bank", agent="bank", task_type=task_type, user=user, cost=cost)
        decision = policy.admit(made, now)
        assert all(0 <= standing.reset_s <= standing.per_s for standing in policy.standing(made, now))
        fits = [
            room(limit, made, taken, running, now, slack_s=(limit.per_s or 0.0) / SLICES)
            for limit in LIMITS
            if counts(limit, made, made)
        ]
        if isinstance(decision, Admit):
            assert isinstance(decision.ticket, QuotaTicket)
            assert all(
                room(limit, made, taken, running, now, slack_s=0.0) for limit in LIMITS if counts(limit, made, made)
            )
            taken.append((now, made))
            running.append((decision.ticket, taken[-1]))
        else:
            assert not all(fits)
            assert decision.error.retry_after_ms is not None
            assert 0 < decision.error.retry_after_ms <= 1000 * max(limit.per_s or 0.0 for limit in LIMITS)
            check_time(deepcopy(policy), made, now + decision.error.retry_after_ms / 1000, decision.error.detail)
        if running and what != "keep":
            ticket, entry = running.pop(0)
            policy.settle(ticket, Outcome(value=1) if what == "end" else failure("no_route"), now)
            if what == "unsent":
                taken.remove(entry)


def check_time(policy: Quotas, made: Call, then: float, detail: str) -> None:
    """If nobody else comes, the call fits when it was said to, unless it waits for others to end."""
    if "under way" not in detail:
        later = policy.ask(made, then)
        assert later is None or "under way" in later.detail


def room(
    limit: QuotaLimit,
    made: Call,
    taken: list[tuple[float, Call]],
    running: list[tuple[QuotaTicket, tuple[float, Call]]],
    now: float,
    slack_s: float,
) -> bool:
    """Whether the limit has room for the call, by the list of everything."""
    assert limit.units is not None
    assert limit.per_s is not None
    used = sum(it.cost for at, it in taken if now - at < limit.per_s + slack_s - 1e-9 and counts(limit, made, it))
    at_once = sum(counts(limit, made, it) for _, (_, it) in running)
    return used + made.cost <= limit.units + 1e-6 and (limit.concurrent is None or at_once < limit.concurrent)
