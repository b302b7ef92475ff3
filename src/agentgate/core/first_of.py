"""A wait for whichever of several things ends first, as one aim in the wait graph (DESIGN 4.4, `ctx.first`).

Decides who has to come before such a wait ends. Each thing has groups of its own, all of which must come, and any of
the things is enough. Said as the graph wants it, all of some groups, that is one group for each way of picking one
group of every thing. The rules:

- A thing that will come by itself ends the wait: then it is for nobody.
- Of all ways to pick, only so many are looked at as the thing with the most groups has. The wait needs every one of
  them, so what is left out may make it look livelier than it is, never deader: there is no false alarm.

So the answer is exact for one thing, and where each has a single group: running calls and signals. Only of calls that
queue for a slot and a key at the same time some are taken for live that are not, which then end by their deadlines.

Not covered: what becomes of the things when the wait is ended (`gateway.awaiting`).
"""

from __future__ import annotations

from collections.abc import Sequence

from agentgate.core.open_wait import Aim, Group


class FirstOf:
    """The aim of a wait for the first of these to end."""

    __slots__ = ("_aims",)

    def __init__(self, aims: Sequence[Aim]) -> None:
        self._aims = aims

    def groups(self) -> Sequence[Group]:
        """Who has to come, as of now."""
        things = [[group for group in aim.groups() if group] for aim in self._aims]  # one without members has come
        if not all(things):
            return ()
        return [_union([thing[min(at, len(thing) - 1)] for thing in things]) for at in range(max(map(len, things)))]


def _union(groups: Sequence[Group]) -> Group:
    return tuple(dict.fromkeys(member for group in groups for member in group))
