"""What `agentgate findings` shows to people, at the widths that they have."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any, Final

from rich.console import Console

from agentgate.cli.findings import block
from agentgate.cli.output import WIDTH_IN_A_PIPE
from agentgate.core.findings import KINDS

LAST: Final = 1796035331.27
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
FOUND: Final[dict[str, dict[str, Any]]] = {
    "deadlock": {
        "how": "observed_closing",
        "cycle": "left.cross(o1): lock 'a' > right.cross(o1): signal 'left.done' > left.cross(o1)",
        "trace_id": TRACE,
    },
    "stuck_unit": {
        "instance": "ship-1",
        "unit": "u1a2b",
        "business_key": "",
        "quiet_s": 9.0,
        "timeout_s": 3.0,
        "health": "running",
        "trace_id": TRACE,
    },
    "blocked_loop": {
        "instance": "ship-1",
        "lag_s": 5.25,
        "blocks": "one of 2 at work, the oldest is pay(o1)",
        "units": ["pay(o1)", "pay(o2)"],
        "trace_id": TRACE,
    },
    "breaker_opened": {},
}


def test_a_finding_is_a_block_that_can_be_read(golden: Callable[[str, str], None]) -> None:
    """H3: one block a finding, at 80 and at 120 columns, and in a pipe; nothing is cut."""
    parts = []
    for width in (80, 120, WIDTH_IN_A_PIPE):
        out = StringIO()
        shown = Console(file=out, width=width, no_color=True, highlight=False)
        for count, (kind, evidence) in enumerate(FOUND.items(), 1):
            finding = {"kind": kind, "subject": "left > right", "evidence": evidence, "count": count, "last_seen": LAST}
            shown.print(block({**finding, "advice": KINDS[kind].advice}, width))
            shown.print()
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        assert all(len(line) <= width for line in lines)
        parts.append(f"--- {width} columns\n" + "\n".join(lines) + "\n")
    golden("findings.txt", "".join(parts))


def test_what_agents_said_is_text() -> None:
    """I6: names in a finding move no cursor and colour nothing."""
    finding = {"kind": "deadlock", "subject": "\x1b[31m", "evidence": {"a": "[bold]\n"}, "count": 1, "last_seen": LAST}
    assert "\x1b" not in block({**finding, "advice": "none"}, 80).plain
    assert "a [bold]\\n" in block({**finding, "advice": "none"}, 80).plain
