"""Who waits for whom, as trees for people: what waits stands above what it waits for.

A unit that is waited for is shown once in full, with its own waits below it; where it comes again, a line says that it
is above. So a tree is as long as there are waits, and ends where a circle closes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentgate.cli.output import shown

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text
    from rich.tree import Tree

    from agentgate.model import Party, StandingKnot, Wait, WaitPicture

NOBODY: Final = "nobody waits for anybody"
OFF: Final = "the wait graph is off: nobody refuses or opens a circle; with the watchdog off, units are not seen either"
MINUTE_S: Final = 60.0
WORDS: Final = {
    "call": "",  # the usual case
    "slot": "queues for a slot",
    "exclusive": "queues for its turn with this key",
    "join": "has joined the same key",
    "lock": "waits for a lock",
    "signal": "waits for a signal",
    "task": "waits for a task",
    "first": "waits for the first of several",
}


def shown_picture(picture: WaitPicture, *, at: float | None = None) -> RenderableType:
    """Everything, circles on top; `at` is the moment by the gate's clock that times are counted to."""
    from rich.console import Group
    from rich.text import Text

    at = picture.at if at is None else at
    parts: list[RenderableType] = [knot_lines(knot) for knot in picture.knots]
    parts += trees_of(picture.waits, at)
    if picture.mode == "off":
        parts.append(Text(OFF, style="yellow"))
    if not picture.waits:
        parts.append(Text(NOBODY, style="dim"))
    if picture.truncated:
        parts.append(Text(f"only the first {len(picture.waits)} waits are shown", style="yellow"))
    return Group(*parts)


def knot_lines(knot: StandingKnot) -> Text:
    """A circle that stands, and what to do about it."""
    from rich.text import Text

    text = Text("circle of waits" if knot.certain else "circle of waits, suspected", style="bold red")
    text.append(f"  {shown(knot.text)}", style="red")
    if knot.units > knot.cycle_count:
        text.append(f"  ({knot.units} units in all)", style="red")
    text.append(f"\n  {shown(knot.advice)}", style="not bold default")
    return text


def trees_of(waits: tuple[Wait, ...], at: float) -> list[Tree]:
    """One tree for whoever waits and is not waited for, callers from outside first; circles begin anywhere."""
    return list(_Forest(waits, at).trees())


class _Forest:
    def __init__(self, waits: tuple[Wait, ...], at: float) -> None:
        self._waits = waits
        self._at = at
        self._of_unit: dict[str, list[Wait]] = defaultdict(list)
        for wait in waits:
            if wait.waiter.unit:
                self._of_unit[wait.waiter.unit].append(wait)
        self._done: set[str] = set()  # waits that have their line
        self._seen: set[str] = set()  # units that were shown as waited for

    def trees(self) -> Iterator[Tree]:
        waited_for = {party.unit for wait in self._waits for party in wait.holders}
        roots = [wait for wait in self._waits if not wait.waiter.unit]
        heads = [wait for wait in self._waits if wait.waiter.unit and wait.waiter.unit not in waited_for]
        for wait in (*roots, *heads, *self._waits):
            if wait.id not in self._done:
                self._seen.add(wait.waiter.unit)
                yield self._tree(wait)

    def _tree(self, root: Wait) -> Tree:
        """In the order of reading, so that "above" is true; without recursion: how deep it is, is not up to us."""
        from rich.tree import Tree

        tree = Tree(self._line(root))
        ahead = self._below(root, tree)
        while ahead:
            node, held = ahead.pop()
            if isinstance(held, int):
                node.add(f"… and {held} more")
                continue
            is_first = held.unit not in self._seen
            self._seen.add(held.unit)
            waits = [wait for wait in self._of_unit[held.unit] if wait.id not in self._done] if is_first else []
            if not waits:
                node.add(self._end(held, is_first=is_first))
            lines = [(wait, node.add(self._line(wait))) for wait in waits]
            for wait, line in reversed(lines):
                ahead += self._below(wait, line)
        return tree

    def _below(self, wait: Wait, node: Tree) -> list[tuple[Tree, Party | int]]:
        """What comes below a wait that has its line now, the last first: its holders, and how many are not named."""
        self._done.add(wait.id)
        more = wait.holders_count - len(wait.holders)
        return [*([(node, more)] if more > 0 else []), *((node, party) for party in reversed(wait.holders))]

    def _line(self, wait: Wait) -> Text:
        from rich.text import Text

        text = Text(shown(_name(wait.waiter)))
        text.append(shown(f" → {wait.target} {wait.task_type} {wait.business_key}".rstrip()), style="bold")
        if WORDS.get(wait.kind, wait.kind):
            text.append(f"  {shown(WORDS.get(wait.kind, wait.kind))}", style="yellow")
        text.append(f"  for {_period(self._at - wait.since)}", style="cyan")
        text.append(f", until {_time(wait.deadline)}", style="dim")
        if wait.behind:
            text.append("  behind a circle", style="red")
        if not wait.certain:
            text.append("  suspected", style="magenta")
        return text

    def _end(self, party: Party, *, is_first: bool) -> Text:
        """Who is waited for and waits for nobody, or is shown elsewhere."""
        from rich.text import Text

        text = Text(shown(_name(party)))
        if not is_first or self._of_unit[party.unit]:
            text.append("  shown above", style="dim")
        else:
            text.append("  at work", style="green")
        return text


def _name(party: Party) -> str:
    return f"{party.agent} {party.task_type} {party.business_key}".rstrip()


def _period(seconds: float) -> str:
    return f"{max(0.0, seconds):.1f} s" if seconds < MINUTE_S else f"{seconds / MINUTE_S:.1f} min"


def _time(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, UTC).strftime("%H:%M:%SZ")
