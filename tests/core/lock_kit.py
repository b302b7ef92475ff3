"""Locks of a gate in its third life, and requests for them."""

from __future__ import annotations

import itertools
from typing import Any

from agentgate.core.lock import LockTicket
from agentgate.core.locks import LockOptions, Locks
from agentgate.model import Problem

EPOCH = 3

_ids = itertools.count(1)


def locks_of(**options: Any) -> Locks:
    return Locks(LockOptions(**options), draw=lambda: 0.5, epoch=EPOCH)


def asked(locks: Locks, *names: str, now: float = 0.0, process: str = "p1", **fields: Any) -> LockTicket:
    """A request that is taken."""
    qualified = locks.names("default", names)
    assert isinstance(qualified, tuple)
    number = next(_ids)
    fields = {"unit": f"u{number}", "owner": "agent", "deadline": now + 10.0, **fields}
    ticket = LockTicket(id=f"l{number}", names=qualified, process=process, **fields)
    assert locks.request(ticket, now) is None
    return ticket


def refused(locks: Locks, *names: str, now: float = 0.0, process: str = "p1", **fields: Any) -> Problem:
    """The refusal of a request."""
    qualified = locks.names("default", names)
    assert isinstance(qualified, tuple)
    fields = {"owner": "agent", "deadline": now + 10.0, **fields}
    refusal = locks.request(LockTicket(id=f"l{next(_ids)}", names=qualified, process=process, **fields), now)
    assert refusal is not None
    return refusal


def news(locks: Locks, now: float = 0.0) -> list[tuple[LockTicket, str]]:
    """What is new about requests that nobody gave up."""
    told = [(ticket, problem.code if problem is not None else "") for ticket, problem in locks.tick(now)]
    return [(ticket, code) for ticket, code in told if code or ticket.state != "ended"]


def claimed(locks: Locks, epoch: int, *names: str, process: str = "p1", **fields: Any) -> tuple[bool, LockTicket]:
    ticket = LockTicket(id=f"l{next(_ids)}", names=names, process=process, **fields)
    return locks.claim_again(ticket, epoch, 0.0), ticket
