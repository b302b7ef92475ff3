"""`agentgate findings`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agentgate.cli import gate_api
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import print_json, print_table, say

COLUMNS = ("KIND", "SUBJECT", "COUNT", "FIRST SEEN", "LAST SEEN", "EVIDENCE", "WHAT TO DO FIRST")


def findings(url: Url = None, *, as_json: AsJson = False) -> None:
    """What the gate has noticed and somebody should look at, with what to do first.

    Nothing is refused because of a finding. They are kept in memory, the newest thousand, and begin anew with the gate.

    Example: agentgate findings
    """
    found = gate_api.read(url, "v1", "findings")
    if as_json:
        print_json(found)
    elif found["findings"]:
        print_table(COLUMNS, [_row(finding) for finding in found["findings"]])
    else:
        say("nothing was noticed so far")


def _row(finding: dict[str, Any]) -> tuple[object, ...]:
    evidence = ", ".join(f"{name} {_shown(value)}" for name, value in finding["evidence"].items())
    times = (_time(finding[name]) for name in ("first_seen", "last_seen"))
    return finding["kind"], finding["subject"], finding["count"], *times, evidence, finding["advice"]


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _time(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
