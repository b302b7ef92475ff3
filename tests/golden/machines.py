"""State machines as diagrams, and the retry table as a table, from what the code steps through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

from agentgate.core import breaker, instances, ledger, lock, presence, unit_life, watchdog
from agentgate.core.attempts import Ending, Next, after_attempt


class Machine(NamedTuple):
    """A table, and where its machines begin."""

    table: Mapping[Any, str]  # (state, event) -> state
    starts: tuple[str, ...]


MACHINES: Final[dict[str, Machine]] = {
    "ledger": Machine(ledger.TABLE, ("none",)),
    "breaker": Machine(breaker.TABLE, ("closed",)),
    "unit": Machine(unit_life.TABLE, ("claiming",)),
    "lock": Machine(lock.TABLE, ("waiting",)),
    "presence": Machine(presence.TABLE, ("connected", "expected")),
    "standing": Machine(instances.TABLE, ("in",)),
    "watchdog": Machine(watchdog.TABLE, ("working",)),
}

ENDINGS: Final[dict[Ending, str]] = {
    "answered": "was answered",
    "not_sent": "never reached the target",
    "try_later": "`TryLater`: nothing happened",
    "throttled": "`TryLater` for everyone, or a target's 429",
    "timed_out": "was sent and timed out",
    "lost": "was sent, then instance or connection were lost",
    "handler_raised": "raised in the handler",
    "rejected": "a business no",
    "malformed": "an answer that does not fit its declaration",
    "refused": "refused by the gate, a wrong request, or its caller left",
}
NEXT: Final[dict[Next, str]] = {
    "final": "final",
    "retry": "another attempt",
    "wait_on": "wait on for the same unit",
    "ask_check": "ask the check; without one `outcome_unknown`",
}


def diagram_of(names: list[str]) -> str:
    """The machine of this name, in the language of mermaid: one arrow for every two states, with its events."""
    table, starts = MACHINES[names[0]]
    arrows: dict[tuple[str, str], list[str]] = {}
    for (before, event), after in table.items():
        arrows.setdefault((before, after), []).append(event)
    alive = {before for before, _ in table}
    drawn = [
        *(f"[*] --> {start}" for start in starts),
        *(f"{before} --> {after}: {' / '.join(events)}" for (before, after), events in arrows.items()),
        *(f"{end} --> [*]" for end in dict.fromkeys(table.values()) if end not in alive),
    ]
    return "".join(["```mermaid\nstateDiagram-v2\n", *(f"    {line}\n" for line in drawn), "```\n"])


def attempts(_: list[str]) -> str:
    """What follows an attempt."""
    lines = ["| the attempt | a read, or a skill declared `repeatable` | any other write |\n|---|---|---|\n"]
    for ended in get_args(Ending):
        safe, write = (NEXT[after_attempt(ended, repeatable=repeatable)] for repeatable in (True, False))
        lines.append(f"| {ENDINGS[ended]} | {safe} | {write} |\n")
    return "".join(lines)
