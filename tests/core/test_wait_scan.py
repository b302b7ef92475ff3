"""The timer's scan by example: what counts, which knots are reported, and what is too large."""

from __future__ import annotations

from agentgate.core.wait_scan import Scan
from tests.properties.wait_kit import At, Graph, Slots


def test_young_waits_are_not_looked_at() -> None:
    """DESIGN 4.4: only waits older than a period count; a knot with a young one is found when it is older."""
    graph = Graph("a", "b")
    graph.wait("a", ("b",), since=1.0)
    graph.wait("b", ("a",), since=5.0)
    assert graph.scan(older_than=4.9) == []
    assert graph.scan(older_than=5.0) == [frozenset("ab")]
    assert graph.scan(older_than=5.0) == [frozenset("ab")], "a knot that still stands is found again"


def test_a_knot_that_is_only_suspected_says_so() -> None:
    """DESIGN 4.4: a cycle through a signal is reported, and named as suspected."""
    graph = Graph("a", "b")
    graph.wait("a", ("b",), certain=False)
    graph.wait("b", ("a",))
    tangle = Scan(graph.waits, older_than=0.0).step(1_000)
    assert tangle is not None
    assert not tangle.knot("a").certain


def test_whoever_is_free_once_another_knot_is_undone_is_left_alone() -> None:
    """Invariant 3, one victim a knot: `u` and `v` wait for one another or for a knot; only that knot is reported."""
    graph = Graph("u", "v", "x", "y")
    graph.wait("u", ("v", "x"))
    graph.wait("v", ("u",))
    graph.wait("x", ("y",))
    graph.wait("y", ("x",))
    assert graph.scan() == [frozenset("xy")]
    graph.wait("u", ("v",))
    assert set(graph.scan()) == {frozenset("xy"), frozenset("uv")}


def test_the_wait_that_holds_a_member_is_named() -> None:
    """D3: of a member's waits those are given that hold it in the knot, for one of them is to be given up."""
    graph = Graph("a", "b", "c")
    knotted = graph.wait("a", ("b",))
    graph.wait("a", ("c",))
    graph.wait("b", ("a",))
    tangle = Scan(graph.waits, older_than=0.0).step(1_000)
    assert tangle is not None
    assert tangle.waits_of("a") == [knotted]


def test_a_knot_that_is_undone_meanwhile_is_not_reported() -> None:
    """F67, F70: whatever was read before, right before the report it is read again."""
    graph = Graph("a", "b")
    graph.wait("a", ("b",))
    closing = graph.wait("b", ("a",))
    steps = 0
    scan = Scan(graph.waits, older_than=0.0)
    while scan.step(1) is None:
        steps += 1
    for undone_after in range(steps):
        closing.aim = At([("a",)])
        scan = Scan(graph.waits, older_than=0.0)
        for _ in range(undone_after):
            assert scan.step(1) is None
        closing.aim = At([])
        while not scan.done:
            assert scan.step(1) is None


def test_what_only_looked_like_a_knot_is_counted() -> None:
    """D2: undone between the first reading and the second, it is a phantom; nobody is told, and people see how many."""
    phantoms = set()
    for undone_after in range(20):
        graph = Graph("a", "b")
        graph.wait("a", ("b",))
        closing = graph.wait("b", ("a",))
        scan = Scan(graph.waits, older_than=0.0)
        found = [scan.step(1) for _ in range(undone_after)]
        closing.aim = At([])
        while not scan.done:
            found.append(scan.step(1))
        phantoms.add(scan.phantoms)
        assert not (scan.phantoms and any(found))
    assert phantoms == {0, 1}


def test_a_scan_says_who_cannot_get_on() -> None:
    """D2: the dead are those of a knot and whoever waits for them, pools among them; not who merely waits."""
    graph = Graph("a", "b", "behind", "free")
    pool = Slots(["a"])
    graph.wait("a", ("b",))
    graph.wait("b", (pool,))
    graph.wait("behind", ("b",))
    graph.wait("free", ("gone",))
    scan = Scan(graph.waits, older_than=0.0)
    assert scan.dead == frozenset()
    while not scan.done:
        scan.step(100)
    assert scan.dead == {"a", "b", "behind", pool}


def test_what_stands_is_found_whatever_moves_beside_it() -> None:
    """D2: `a` and `b` stand still; that `c`, tied to them, goes away in the middle of the scan never hides them."""
    for undone_after in range(100):
        graph = Graph("a", "b", "c")
        graph.wait("a", ("b",), ("c",))
        graph.wait("b", ("a",))
        beside = graph.wait("c", ("a",))
        scan = Scan(graph.waits, older_than=0.0)
        found: set[str] = set()
        steps = 0
        while not scan.done:
            tangle = scan.step(1)
            found |= set() if tangle is None else {facts.unit for facts in tangle.members}
            steps += 1
            if steps == undone_after:
                graph.close(beside)
        assert found >= {"a", "b"}


def test_a_part_that_is_too_large_is_made_smaller_or_given_up() -> None:
    """D2: two rings that are tied together by alternatives do for one another; a ring that is too large is counted."""
    graph = Graph(*"abcdef")
    for unit, following in zip("abc", "bca", strict=True):
        graph.wait(unit, (following,))
    graph.wait("a", ("d",))
    for unit, following in zip("def", "efd", strict=True):
        graph.wait(unit, (following,))
    graph.wait("d", ("a",))
    assert graph.scan() == [frozenset("abcdef")]
    found = []
    scan = Scan(graph.waits, older_than=0.0, confirm_max=3)
    while not scan.done:
        if (tangle := scan.step(10)) is not None:
            found.append({facts.unit for facts in tangle.members})
    assert found == [set("def"), set("abc")] or found == [set("abc"), set("def")]
    scan = Scan(graph.waits, older_than=0.0, confirm_max=2)
    while not scan.done:
        assert scan.step(10) is None
    assert scan.too_large == 2


def test_a_step_is_bounded() -> None:
    """D2: however large the graph, a step does what its budget says, one piece at least."""
    graph = Graph(*(f"u{number}" for number in range(500)))
    pool = Slots([f"u{number}" for number in range(8)])
    for number in range(500):
        graph.wait(f"u{number}", (pool,))
    scan = Scan(graph.waits, older_than=0.0)
    steps = 0
    while not scan.done:
        scan.step(50)
        steps += 1
    assert steps > 500 / 50
