"""Promises: who may send a signal that was promised, and when nobody will."""

from __future__ import annotations

from agentgate.core.promises import BROKEN_MAX, LATE_S, Promise, Promiser, Promises

GRACE_S = 5.0
DONE_O1 = Promise("t", "review", "done", "o1")


def review(unit: str, about: str = "o1", *names: str, agent: str = "review", tenant: str = "t") -> Promiser:
    return Promiser(unit, tenant, agent, about, set(names or ("done",)))


def opened(*promisers: Promiser) -> Promises:
    promises = Promises(GRACE_S)
    for promiser in promisers:
        promises.opened(promiser)
    return promises


def test_open_units_of_the_name_and_object_are_candidates() -> None:
    """4.4: tenant, name and object have to fit, and the agent if one is asked for; no object means any."""
    promises = opened(review("u1"), review("u2", "o2"), review("u3", agent="audit"), review("u4", tenant="other"))
    assert promises.candidates("t", "done", "o1", "") == ("u1", "u3")
    assert promises.candidates("t", "done", "o1", "audit") == ("u3",)
    assert promises.candidates("t", "done", "", "") == (), "it is about the object, not about nothing"
    assert promises.candidates("t", "begun", "o1", "") == promises.candidates("t", "done", "o3", "") == ()


def test_who_has_kept_its_promise_is_no_candidate() -> None:
    """4.4: having signalled, it will not be the one; about something else it has not kept it."""
    promises = opened(review("u1"))
    promises.sent("u1", "done", "o2")
    promises.sent("u1", "begun", "o1")
    promises.sent("stranger", "done", "o1")
    assert promises.candidates("t", "done", "o1", "") == ("u1",)
    promises.sent("u1", "done", "o1")
    promises.sent("u1", "done", "o1")
    assert promises.candidates("t", "done", "o1", "") == ()
    assert promises.ended("u1", 1.0, final=True) == []


def test_a_final_end_without_it_breaks_the_promise() -> None:
    """4.4: what it has sent is kept, what it has not is broken; a unit ends once."""
    promises = opened(review("u1", "o1", "begun", "done"))
    promises.sent("u1", "begun", "o1")
    assert promises.ended("u1", 1.0, final=True) == [DONE_O1]
    assert promises.ended("u1", 1.0, final=True) == []
    assert len(promises) == 0
    assert "u1" not in promises


def test_another_unit_of_the_agent_may_still_keep_it() -> None:
    """4.4: as long as one of them is at work on the object; another agent's unit does not count."""
    promises = opened(review("u1"), review("u2"), review("u3", agent="audit"))
    assert promises.ended("u1", 1.0, final=True) == []
    assert promises.ended("u2", 2.0, final=True) == [DONE_O1]
    assert "u3" in promises


def test_an_end_that_is_not_final_leaves_time_for_another_attempt() -> None:
    """4.1, 4.4: the gate may run it again; the promise is broken if nobody has taken it up within the grace."""
    promises = opened(review("u1"), review("u9", "o9"))
    assert promises.next_deadline() is None
    assert promises.ended("u1", 1.0, final=False) == promises.ended("u9", 2.0, final=False) == []
    assert promises.next_deadline() == 1.0 + GRACE_S
    promises.opened(review("u2"))
    assert promises.tick(5.9) == promises.tick(6.0) == []
    assert promises.tick(7.0) == [Promise("t", "review", "done", "o9")]
    assert promises.ended("u2", 8.0, final=True) == [DONE_O1]
    assert promises.next_deadline() is None


def test_a_unit_that_opens_again_is_known_by_what_is_said_last() -> None:
    """4.5: after a restart of the gate its process reports it; nothing is counted twice."""
    promises = opened(review("u1"), review("u1", "o2"))
    assert promises.candidates("t", "done", "o2", "") == ("u1",)
    assert promises.candidates("t", "done", "o1", "") == ()
    assert len(promises) == 1


def test_a_broken_promise_is_remembered_for_a_while() -> None:
    """4.4: for those who come only then, whether its end was final or its grace is over; each by its own time."""
    promises = opened(review("u1"), review("u2", "o2"))
    o2 = DONE_O1._replace(about="o2")
    promises.ended("u1", 1.0, final=True)
    promises.ended("u2", 1.0, final=False)
    assert (promises.is_broken(DONE_O1, 1.0), promises.is_broken(o2, 1.0)) == (True, False)
    promises.tick(6.0)
    until = 1.0 + GRACE_S + LATE_S
    assert (promises.is_broken(DONE_O1, until - 0.1), promises.is_broken(o2, until - 0.1)) == (True, True)
    assert (promises.is_broken(DONE_O1, until), promises.is_broken(o2, until)) == (False, True)
    assert not promises.is_broken(DONE_O1._replace(tenant="other"), 2.0)
    assert promises.next_deadline() is None, "nobody has to look when it is forgotten"


def test_who_promises_it_again_makes_up_for_a_broken_promise() -> None:
    """4.4: from its start on there is somebody to wait for; broken once more, it is remembered from then on."""
    promises = opened(review("u1"))
    promises.ended("u1", 1.0, final=True)
    promises.opened(review("u2"))
    assert not promises.is_broken(DONE_O1, 2.0)
    promises.sent("u2", "done", "o1")
    promises.ended("u2", 3.0, final=True)
    assert not promises.is_broken(DONE_O1, 3.0)
    promises.opened(review("u3"))
    promises.ended("u3", 4.0, final=True)
    assert promises.is_broken(DONE_O1, 3.9 + GRACE_S + LATE_S)


def test_so_many_broken_promises_are_remembered() -> None:
    """Invariant 10: the oldest is forgotten for the newest."""
    promises = opened()
    for number in range(BROKEN_MAX + 1):
        promises.opened(review("u", f"o{number}"))
        promises.ended("u", 1.0, final=True)
    remembered = [promises.is_broken(DONE_O1._replace(about=f"o{number}"), 1.0) for number in range(BROKEN_MAX + 1)]
    assert remembered == [False, *[True] * BROKEN_MAX]
