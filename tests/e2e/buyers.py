"""Callers with business keys: what they asked, what they were told, and what they still have to ask again."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import Any, Literal, NamedTuple

from agentgate import CallFailed, Gate


class Deal(NamedTuple):
    """One business key and what is to be done about it."""

    target: str
    task_type: str
    key: str
    payload: Any
    effect: Literal["write", "read"] = "write"

    def shown_key(self, caller: str) -> str:
        """The key as handlers see it."""
        return f"{caller}:{self.task_type}:{self.key}:run"


class Failure(NamedTuple):
    """A call that came to an error, and how long its caller was ready to wait (None: as long as it takes)."""

    key: str
    timeout_s: float | None
    error: CallFailed


class Answers:
    """What callers were told, by deal."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.deals: dict[str, Deal] = {}
        self.values: dict[str, list[Any]] = defaultdict(list)
        self.failures: list[Failure] = []

    async def ask(self, gate: Gate, deal: Deal, timeout_s: float | None) -> bool:
        """Call once; whether a value came."""
        key = deal.shown_key(self.caller)
        self.deals[key] = deal
        try:
            value = await gate.call(
                deal.target, deal.task_type, deal.key, deal.payload, effect=deal.effect, timeout=timeout_s
            )
        except CallFailed as error:
            self.failures.append(Failure(key, timeout_s, error))
            return False
        self.values[key].append(value)
        return True

    def codes(self, task_type: str = "") -> Counter[str]:
        """How often which error was met, by one task type or all."""
        return Counter(
            failure.error.code for failure in self.failures if task_type in ("", self.deals[failure.key].task_type)
        )

    def open(self) -> list[Deal]:
        """Deals of which nobody has been told a value."""
        return [deal for key, deal in self.deals.items() if not self.values[key]]

    async def ask_all(self, gate: Gate, deals: list[Deal], *, at_once: int, timeout_s: float) -> None:
        """Ask these deals again, some at a time."""
        places = asyncio.Semaphore(at_once)

        async def again(deal: Deal) -> None:
            async with places:
                await self.ask(gate, deal, timeout_s)

        async with asyncio.TaskGroup() as group:
            for deal in deals:
                group.create_task(again(deal))
