"""Which processes the gate can know about: those whose connection delivers what both ends send.

What a process does while its connection is cut, swallows frames or stands still, the gate hears later or never. Whoever
compares the two has to know how old the gate's picture of a process may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentgate.testing.connection import AgentEnd
from agentgate.testing.processes import AgentProcess


@dataclass(slots=True)
class _Stretch:
    """One connection while it was sound; `before` is when the one before it was seen sound last."""

    link: AgentEnd
    since: float
    seen_at: float
    before: float


class Soundness:
    """What was seen of all processes; `look` often."""

    def __init__(self, agents: Iterable[AgentProcess]) -> None:
        self._agents = agents
        self._stretches: dict[str, _Stretch] = {}  # by instance, the last one

    def look(self, now: float) -> None:
        """See who is sound now."""
        for process in self._agents:
            link, life = process.sound_link, process.life
            if link is None or life is None:
                continue
            known = self._stretches.get(life.instance)
            if known is not None and known.link is link:
                known.seen_at = now
            else:
                before = known.seen_at if known is not None else now
                self._stretches[life.instance] = _Stretch(link, now, now, before)

    def settled(self, instance: str, now: float, lag_s: float) -> bool:
        """Whether it is sound, as of the last look, and has been for so long."""
        known = self._stretches.get(instance)
        return known is not None and known.seen_at == now and now - known.since >= lag_s

    def horizon(self, instance: str, now: float, lag_s: float) -> float:
        """From when the gate's picture of this process may be."""
        known = self._stretches.get(instance)
        if known is None:
            return 0.0
        if known.seen_at < now:
            return known.seen_at - lag_s
        return now - lag_s if now - known.since >= lag_s else known.before - lag_s
