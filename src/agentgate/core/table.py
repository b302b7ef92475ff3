"""State machines as tables: the one helper they share.

A table maps (state, event) to the next state. A pair that is not in the table is a defect of the caller: it raises,
and nothing has changed.

Tests enumerate the tables, and diagrams in the docs are drawn from them, so that neither can say something else than
the code does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

State = TypeVar("State", bound=str)
Event = TypeVar("Event", bound=str)


class IllegalTransition(Exception):
    """An event that the state does not know."""

    def __init__(self, state: str, event: str) -> None:
        super().__init__(f"no transition for event {event!r} in state {state!r}")
        self.state = state
        self.event = event


def step(table: Mapping[tuple[State, Event], State], state: State, event: Event) -> State:
    """The state after `event`; raises `IllegalTransition` when the table has no such pair."""
    try:
        return table[state, event]
    except KeyError:
        raise IllegalTransition(state, event) from None
