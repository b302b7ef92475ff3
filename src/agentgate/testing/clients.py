"""Scripted clients: they call, call again, change their minds, and leave.

A client is a real SDK `Gate` on a simulated connection. What it asks for comes from a book of orders that all clients
share, so that a repeat may come from another process than the first call, as it does when a program was restarted.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence

from agentgate.sdk.calling import CallOptions
from agentgate.sdk.connection import Connect
from agentgate.sdk.gate import Gate
from agentgate.testing.plan import TASK_BY_NAME, WAY_TASK, draw_task
from agentgate.testing.script import ask
from agentgate.testing.witness import Asked, Witness

CONNECT_S = 120.0  # a simulated gate may be away for a while; a client that gives up would end the run
SHELVES = 3  # business keys of exclusive work: few, so that one is wanted by several at a time
RECENT_MAX = 40  # orders that may be repeated
OPEN_MAX = 60  # calls of one client at a time

REPEAT_SHARE = 0.25  # of the calls: an order that somebody has placed already
TWIN_SHARE = 0.05  # of the calls: two at once
OTHER_BODY_SHARE = 0.1  # of the repeats
AGAIN_SHARE = 0.3  # of the repeats of an order whose last end was a stored failure
LEAVE_SHARE = 0.06  # of the calls: the caller leaves before the answer
CLEAN_SHARE = 0.2  # of the orders: a failure leaves no effect, so it may be run again
# What a call may say beside that, and for how many calls.
ODD_OPTIONS: tuple[tuple[CallOptions, float], ...] = (
    ({}, 0.8),
    ({"join": False}, 0.05),
    ({"heavy": True}, 0.05),
    ({"priority": 0}, 0.02),
    ({"priority": 9}, 0.02),
    ({"on_disconnect": "cancel"}, 0.03),
    ({"on_disconnect": "detach"}, 0.03),
)
TIMEOUTS_S = (None, None, 0.3, 1.0, 3.0, 8.0, 20.0)
FINAL_FAILURES = ("rejected", "handler_error", "malformed_output")


class Book:
    """The orders so far."""

    def __init__(self, draws: random.Random, targets: Sequence[str]) -> None:
        self._draws = draws
        self._targets = targets
        self._recent: deque[Asked] = deque(maxlen=RECENT_MAX)
        self._placed = 0

    def next_order(self, caller: str, now: float, timeout_s: float | None) -> Asked:
        """A new order, or a repeat of an earlier one of the same caller."""
        known = [asked for asked in self._recent if asked.caller == caller]
        if known and self._draws.random() < REPEAT_SHARE:
            return self._repeat(self._draws.choice(known), now, timeout_s)
        return self.new_order(caller, now, timeout_s)

    def new_order(self, caller: str, now: float, timeout_s: float | None) -> Asked:
        """An order that nobody has placed before."""
        task = draw_task(self._draws)
        self._placed += 1
        asked = Asked(
            caller=caller,
            target=f"skill:{task.name}" if self._draws.random() < REPEAT_SHARE else self._draws.choice(self._targets),
            task_type=task.name,
            business_key=f"shelf{self._placed % SHELVES}" if task.exclusive else f"o{self._placed}",
            action=f"m{self._placed}" if task.exclusive else self._draws.choice(("run", "run", "more")),
            body="a",
            write=task.effect == "write",
            repeatable=task.repeatable,
            clean=self._draws.random() < CLEAN_SHARE,
            started_at=now,
            deadline=None if timeout_s is None else now + timeout_s,
        )
        self._recent.append(asked)
        return asked

    def _repeat(self, earlier: Asked, now: float, timeout_s: float | None) -> Asked:
        again = earlier.clean and earlier.code in FINAL_FAILURES and self._draws.random() < AGAIN_SHARE
        asked = copy_of(earlier, now, timeout_s)
        asked.again = again
        if not again and self._draws.random() < OTHER_BODY_SHARE:
            asked.body = "b"
        return asked


def copy_of(earlier: Asked, now: float, timeout_s: float | None) -> Asked:
    """The same call, made now."""
    return Asked(
        caller=earlier.caller,
        target=earlier.target,
        task_type=earlier.task_type,
        business_key=earlier.business_key,
        action=earlier.action,
        body=earlier.body,
        write=earlier.write,
        repeatable=earlier.repeatable,
        clean=earlier.clean,
        started_at=now,
        deadline=None if timeout_s is None else now + timeout_s,
    )


class ScriptedClient:
    """One process that calls, at random moments, until it is told to finish."""

    def __init__(
        self, name: str, instance: str, *, connect: Connect, draws: random.Random, witness: Witness, book: Book
    ) -> None:
        self.name = name
        self._gate = Gate(name=name, connect=connect, connect_timeout=CONNECT_S, draw=draws.random, instance=instance)
        self._draws = draws
        self._witness = witness
        self._book = book
        self._finishing = asyncio.Event()
        self.open_calls = 0

    async def run(self, mean_pause_s: float) -> None:
        """Call until told to stop calling; stay connected until cancelled."""
        async with self._gate, asyncio.TaskGroup() as calls:
            while not self._finishing.is_set():
                await asyncio.sleep(self._draws.expovariate(1 / mean_pause_s))
                if self.open_calls < OPEN_MAX and not self._finishing.is_set():
                    self._place(calls)
            await asyncio.Event().wait()

    def finish_calls(self) -> None:
        """Make no further calls of its own."""
        self._finishing.set()

    async def probe(self, target: str, task_name: str, business_key: str, timeout_s: float) -> Asked:
        """One call outside of the script: does this answer?"""
        task = TASK_BY_NAME[task_name]
        now = self._witness.now()
        asked = Asked(
            caller=self.name,
            target=target,
            task_type=task.name,
            business_key=business_key,
            action="run",
            body="a",
            write=task.effect == "write",
            repeatable=task.repeatable,
            started_at=now,
            deadline=now + timeout_s,
        )
        return await ask(self._witness, self._gate, asked, timeout_s)

    async def send(self, target: str, business_key: str, way: tuple[str, ...], takes_s: float) -> Asked:
        """One call whose unit is told how long to take, and whom to call then."""
        asked = Asked(
            caller=self.name,
            target=target,
            task_type=WAY_TASK,
            business_key=business_key,
            action="run",
            body="a",
            way=way,
            takes_s=takes_s,
            write=True,
            repeatable=False,
            started_at=self._witness.now(),
            deadline=None,
        )
        return await ask(self._witness, self._gate, asked, None)

    def _place(self, calls: asyncio.TaskGroup) -> None:
        timeout_s = self._draws.choice(TIMEOUTS_S)
        asked = self._book.next_order(self.name, self._witness.now(), timeout_s)
        odd, weights = zip(*ODD_OPTIONS, strict=True)
        asked.options = self._draws.choices(odd, weights)[0]
        calls.create_task(self._call(asked, timeout_s))
        if self._draws.random() < TWIN_SHARE:
            calls.create_task(self._call(copy_of(asked, asked.started_at, timeout_s), timeout_s))

    async def _call(self, asked: Asked, timeout_s: float | None) -> None:
        self.open_calls += 1
        try:
            if self._draws.random() < LEAVE_SHARE:
                await self._leave_early(asked, timeout_s)
            else:
                await ask(self._witness, self._gate, asked, timeout_s)
        finally:
            self.open_calls -= 1

    async def _leave_early(self, asked: Asked, timeout_s: float | None) -> None:
        """The caller leaves in the middle: what `asyncio.timeout` around a call does."""
        try:
            async with asyncio.timeout(self._draws.expovariate(1 / 0.5)):
                await ask(self._witness, self._gate, asked, timeout_s)
        except TimeoutError:
            return
