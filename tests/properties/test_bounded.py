"""The bounded map against the plainest model of it: a list of entries in order of use."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.bounded import BoundedMap

KEYS = st.integers(min_value=0, max_value=9)
STEPS = st.lists(st.tuples(st.sampled_from(["set", "get", "peek", "pop"]), KEYS), max_size=80)


@given(st.integers(min_value=1, max_value=6), STEPS)
def test_without_protection_it_is_exactly_least_recently_used(limit: int, steps: list[tuple[str, int]]) -> None:
    """Any order of operations leaves the entries that a list in order of use would leave, in that order."""
    rows: BoundedMap[int, int] = BoundedMap(limit)
    model: dict[int, int] = {}
    for number, (step, key) in enumerate(steps):
        if step == "set":
            rows[key] = number
            model.pop(key, None)
            model[key] = number
            while len(model) > limit:
                del model[next(iter(model))]
        elif step == "get":
            assert rows.get(key) == model.get(key)
            if key in model:
                model[key] = model.pop(key)
        elif step == "peek":
            assert rows.peek(key) == model.get(key)
        else:
            assert rows.pop(key) == model.pop(key, None)
        assert rows.items() == list(model.items())


@given(
    st.integers(min_value=1, max_value=6),
    st.lists(st.tuples(st.sampled_from(["set", "get", "pop", "sweep", "flip"]), KEYS), max_size=120),
)
def test_bound_and_protection_hold_together(limit: int, steps: list[tuple[str, int]]) -> None:
    """Never above the limit; a protected entry leaves only by `pop` or when every entry is protected."""
    protected: set[int] = set()
    rows: BoundedMap[int, int] = BoundedMap(limit, keep=protected.__contains__)
    for number, (step, key) in enumerate(steps):
        before, forced = set(rows), rows.forced
        if step == "set":
            rows[key] = key
            if rows.forced > forced:
                assert before <= protected
            else:
                assert before & protected <= set(rows)
        elif step == "get":
            rows.get(key)
        elif step == "pop":
            rows.pop(key)
        elif step == "sweep":
            rows.sweep(float(number), 5.0)
            assert before & protected <= set(rows)
        else:
            protected ^= {key}
        assert len(rows) <= limit
        assert len(set(rows)) == len(rows)
