"""Equal writes under different keys, by example."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.duplicates import KEYS_SHOWN, WRITES_MAX, DuplicateOptions, Duplicates
from agentgate.core.keys import fingerprint
from agentgate.model import Call, Outcome, failure

ORDER = {"sku": "A-7", "n": 2}


OK = Outcome(value=1)


def write(key: str, payload: Any = ORDER, **more: Any) -> Call:
    named = {"id": "c", "target": "bank", "task_type": "pay", "business_key": key, "caller": "shop"}
    return Call(**{**named, "payload": payload, **more})


def note(duplicates: Duplicates, key: str, now: float, payload: Any = ORDER, **more: Any) -> list[str] | None:
    return duplicates.note(write(key, payload, **more), fingerprint(payload), now)


def test_an_equal_write_under_another_key_is_noticed() -> None:
    """C6: the finding names the business keys, the newest last, and no more than somebody reads."""
    duplicates = Duplicates(DuplicateOptions())
    assert note(duplicates, "o1", 0.0) is None
    assert note(duplicates, "o2", 1.0) == ["o1", "o2"]
    assert note(duplicates, "o1", 2.0) is None
    found = [note(duplicates, f"o{number}", 3.0) for number in range(3, 20)]
    assert found[-1] == [f"o{number}" for number in range(20 - KEYS_SHOWN, 20)]


def test_what_is_no_duplicate() -> None:
    """C6: other bodies, callers, targets, task types and tenants, a second action, and bodies that say nothing."""
    duplicates = Duplicates(DuplicateOptions())
    note(duplicates, "o1", 0.0)
    assert note(duplicates, "o2", 0.0, {"sku": "A-7", "n": 3}) is None
    for more in ({"caller": "desk"}, {"target": "mint"}, {"task_type": "refund"}, {"tenant": "other"}):
        assert note(duplicates, "o2", 0.0, **more) is None
    assert note(duplicates, "o1", 0.0, action="again") is None
    empty: list[Any] = [None, {}, [], ""]
    for nothing in empty:
        assert note(duplicates, "o1", 0.0, nothing) is None
        assert note(duplicates, "o2", 0.0, nothing) is None


def test_what_was_long_ago_begins_anew() -> None:
    """C6: after the window an equal body is a new order; while equals keep coming the window goes on."""
    duplicates = Duplicates(DuplicateOptions(window_s=60.0))
    note(duplicates, "o1", 0.0)
    assert note(duplicates, "o2", 60.0) == ["o1", "o2"]
    assert note(duplicates, "o3", 119.0) == ["o1", "o2", "o3"]
    assert note(duplicates, "o4", 179.5) is None


def test_it_is_bounded_and_can_be_off() -> None:
    """F110: names from outside fill no map; off, nothing is remembered."""
    duplicates, off = Duplicates(DuplicateOptions()), Duplicates(DuplicateOptions(window_s=None))
    for number in range(WRITES_MAX + 10):
        note(duplicates, f"o{number}", 0.0, number + 1)
        assert note(off, f"o{number}", 0.0) is None
    assert (len(duplicates), len(off)) == (WRITES_MAX, 0)
    with pytest.raises(ValueError, match="window_s must be a number from 1"):
        DuplicateOptions(window_s=0.0)


@pytest.mark.parametrize(
    ("outcome", "more", "is_noticed"),
    [
        (OK, {}, False),
        (failure("no_route"), {}, False),
        (failure("deadline_exceeded", sent=True), {}, True),
        (failure("outcome_unknown", sent=True), {}, True),
        (OK, {"parent_unit": "u1", "trace_id": "t1"}, True),
    ],
)
def test_only_who_may_have_tried_again_is_noticed(outcome: Outcome, more: dict[str, Any], is_noticed: bool) -> None:
    """C6: two orders that end well are two orders; after a bad end, or within one chain, an equal is suspicious."""
    duplicates = Duplicates(DuplicateOptions())
    note(duplicates, "o1", 0.0, **more)
    duplicates.ended(write("o1", **more), fingerprint(ORDER), outcome)
    assert (note(duplicates, "o2", 1.0, **more) is not None) is is_noticed


def test_each_end_is_its_own() -> None:
    """C6: of several equals under way, those that ended well are no longer named, and chains are apart."""
    duplicates = Duplicates(DuplicateOptions())
    note(duplicates, "o1", 0.0)
    note(duplicates, "o2", 0.0)
    duplicates.ended(write("o1"), fingerprint(ORDER), OK)
    duplicates.ended(write("o9"), fingerprint(ORDER), OK)
    duplicates.ended(write("o1"), "another body", OK)
    assert note(duplicates, "o3", 1.0) == ["o2", "o3"]
    assert note(duplicates, "o4", 1.0, parent_unit="u1", trace_id="t1") is None
    assert note(duplicates, "o5", 1.0, parent_unit="u2", trace_id="t2") is None
