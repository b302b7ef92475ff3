"""`agentgate findings`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agentgate.cli import gate_api
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import console, print_json, say, shown

if TYPE_CHECKING:
    from rich.text import Text

WIDTH_MAX: Final = 100  # longer lines are hard to read, in a pipe as well
INDENT: Final = "  "


def findings(url: Url = None, *, as_json: AsJson = False) -> None:
    """What the gate has noticed and somebody should look at, with what to do first.

    Nothing is refused because of a finding. They are kept in memory, the newest thousand, and begin anew with the gate.

    Example: agentgate findings
    """
    found = gate_api.read(url, "v1", "findings")
    if as_json:
        print_json(found)
        return
    out = console()
    for place, finding in enumerate(found["findings"]):
        if place:
            out.print()
        out.print(block(finding, out.width))
    if not found["findings"]:
        say("nothing was noticed so far")


def block(finding: dict[str, Any], width: int) -> Text:
    """One finding for people: what and how often, its evidence, what to do first; in lines of at most this width."""
    from rich.text import Text

    text = Text(shown(finding["kind"]), style="bold yellow")
    text.append(f"  {shown(finding['subject'])}", style="not bold default")
    text.append(f"  {_times(finding)}", style="not bold dim default")
    fitting = min(width, WIDTH_MAX)
    for line in _evidence(finding["evidence"], fitting):
        text.append(f"\n{line}", style="not bold default")
    for line in _wrapped(shown(finding["advice"]), fitting):
        text.append(f"\n{line}", style="not bold cyan")
    return text


def _times(finding: dict[str, Any]) -> str:
    count, last = finding["count"], f"last {_time(finding['last_seen'])}"
    return f"once, {_time(finding['last_seen'])}" if count == 1 else f"{count} times, {last}"


def _evidence(evidence: dict[str, Any], width: int) -> Iterator[str]:
    """`name value` pairs, as many on a line as fit; what is empty says nothing."""
    line = ""
    for name, value in evidence.items():
        if value in ("", None, [], {}):
            continue
        pair = shown(f"{name} {_shown(value)}")
        if line and len(INDENT + line + INDENT + pair) > width:
            yield from _wrapped(line, width)
            line = ""
        line += f"{INDENT if line else ''}{pair}"
    if line:
        yield from _wrapped(line, width)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=INDENT,
        subsequent_indent=INDENT * 2,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _time(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
