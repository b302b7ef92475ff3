"""The shape of a stage: `async (passage, onward) -> Outcome`, built from the gateway's parts.

A stage may answer by itself, or go onward and look at what came back. Faults for drills have the same shape. One that
does not look at what comes back need not be a coroutine: it hands on what `onward` gives it, which costs less than to
wait for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.model import Outcome

Onward: TypeAlias = "Callable[[Passage], Awaitable[Outcome]]"


async def answered(outcome: Outcome) -> Outcome:
    """What a stage that is no coroutine answers by itself."""
    return outcome


class Stage(Protocol):
    """One step of a call's path.

    `mechanism` names the switch that concerns it; None: there is none. Switched off, a stage is not on the path, or
    stays on it in a plain form (`stays`).
    """

    name: ClassVar[str]
    mechanism: ClassVar[str | None]
    stays: ClassVar[bool]

    def __init__(self, parts: Parts) -> None: ...

    def __call__(self, passage: Passage, onward: Onward) -> Awaitable[Outcome]:
        """Take a passage one stage further."""
        ...
