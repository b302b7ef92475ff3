"""What is known of a run while it runs: written by those who watch it, shown by the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from agentgate.cli.demo.clients import Ending
from agentgate.cli.demo.gauges import Counts

EVENTS_MAX: Final = 200

Clock = Callable[[], float]


@dataclass(kw_only=True)
class Story:
    """The run so far. `clock` gives seconds."""

    orders: int
    clock: Clock
    on_event: Callable[[float, str], None] = lambda _at_s, _text: None
    began_at: float = 0.0
    endings: dict[str, Ending] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    events: list[tuple[float, str]] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    breakers: list[dict[str, Any]] = field(default_factory=list)
    instances: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.began_at = self.clock()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.clock() - self.began_at

    def tell(self, text: str) -> None:
        """Something worth a line happened."""
        event = (self.seconds, text)
        self.events = [*self.events[-EVENTS_MAX:], event]
        self.on_event(*event)

    def end(self, ending: Ending) -> None:
        """An order has its outcome."""
        self.endings[ending.order_id] = ending
        self.statuses[ending.receipt["status"] if ending.receipt else ending.code] += 1
