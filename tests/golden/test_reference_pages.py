"""Reference pages are made from the code that they describe, and are up to date."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Final

from agentgate.config import Row, load, rows
from agentgate.config.keys import NOT_BUILT
from agentgate.core.findings import KINDS
from agentgate.errors import CODES
from agentgate.server.api import HANDLERS
from agentgate.server.metric_rows import ROWS
from agentgate.server.openapi import document
from tests.conftest import Golden

HELP: Final = Path(__file__).with_name("help")

CONFIGURATION: Final = """# Configuration

One YAML file (`--config FILE`, or the one that `AGENTGATE_CONFIG` names), and over it the environment:
`AGENTGATE__SECTION__KEY=value`. Keys that do not exist are refused with the nearest right one. What holds is told by
`agentgate config show`, what is odd by `agentgate config check`; `agentgate config schema` prints a JSON Schema for
editors.

This page is made from the table that reads the file. Every default is the value that a gate starts with.
"""

ERRORS: Final = """# Errors

Every error has a `code`, says what kind of `fault` it was, whether the request was `sent` (the target may have acted on
it), whether a `retry` of the same request can help (`after` some time, or `never`), and carries an `advice` that a
person or an LLM agent can act on. The gate has retried what could be cured: never loop over an error.

The table has the usual advice. Where an error has a cause of its own, so has its advice: that of `needs_human`, say,
depends on whether news did not come, a promise was broken, a unit gave way to a circle, or one hangs and still runs.

This page is made from the table in `agentgate/errors.py`.

| code | meaning | fault | retry | HTTP | advice |
|---|---|---|---|---|---|
"""

ROUTES: Final = """# Routes

Every path of the HTTP API, and the scope that a token needs for it, where the gate asks for tokens. The OpenAPI
document at `/schema` has the rest; [HTTP](http.md) explains the calls.

This page is made from the route table of the server.

| method | path | scope | what |
|---|---|---|---|
"""

FINDINGS: Final = """# Findings

What the gate notices while calls go on and somebody should look at: `agentgate findings`, or `GET /v1/findings`. A
finding says what it is about, how often and since when it was seen, with the figures of the last time and what to do
first. Seen again it counts on. Findings are kept in memory, a thousand at most (the one that was quiet for longest
goes), and are counted by kind in the metric `agentgate_findings_total`; the first sight of each is a line in the log.

No call is refused because of a finding. This page is made from the table in `agentgate/core/findings.py`.

| kind | what was seen | evidence | what to do first |
|---|---|---|---|
"""

COMMANDS: Final = """# Commands

What `--help` of every command says; this page is made from it.
"""

METRICS: Final = """# Metrics

`GET /metrics` in the text format of Prometheus. Names of agents appear in no label, of which there may be thousands;
`agentgate agents`, `agentgate breakers` and `agentgate chains` have them.

This page is made from the table that `/metrics` is written from. Counters begin at 0 with the gate: look at their rate.

| metric | type | label | meaning | when to worry |
|---|---|---|---|---|
"""


def test_the_page_of_the_configuration(page: Golden) -> None:
    """I7: every key with its default, what it means, and what too high and too low do."""
    parts = [CONFIGURATION]
    for section, found in groupby(rows(load()), key=lambda row: row.name.partition(".")[0]):
        parts.append(f"\n## {section}\n\n| key | takes | default | meaning |\n|---|---|---|---|\n")
        parts += [key_line(row) for row in found]
    parts.append("\n## Accepted, without effect yet\n\n")
    parts += [f"- `{name}`: {why}\n" for name, why in NOT_BUILT.items()]
    page("reference/configuration.md", "".join(parts))


def key_line(row: Row) -> str:
    meaning = ". ".join([row.meaning, *(said[0].upper() + said[1:] for said in row.consequences)])
    return f"| `{row.name}` | {row.takes} | `{row.default}` | {meaning} |\n"


def test_the_page_of_the_errors(page: Golden) -> None:
    """I3: every code that a caller may meet, and what to do about it."""
    lines = [
        f"| `{code}` | {info.title} | {info.fault} | {info.retry} | {info.http_status} | {info.advice} |\n"
        for code, info in CODES.items()
    ]
    page("reference/errors.md", ERRORS + "".join(lines))


def test_the_page_of_the_findings(page: Golden) -> None:
    """Every kind of finding: what it means, which figures come with it, and what to do first."""
    lines = [f"| `{name}` | {kind.meaning} | {kind.evidence} | {kind.advice} |\n" for name, kind in KINDS.items()]
    page("reference/findings.md", FINDINGS + "".join(lines))


def test_the_page_of_the_commands(page: Golden) -> None:
    """I3: the help of every command, as the command prints it."""
    parts = [COMMANDS]
    for file in sorted(HELP.glob("*.txt")):
        title = "agentgate" if file.stem == "agentgate" else f"agentgate {file.stem.replace('_', ' ')}"
        parts.append(f"\n## {title}\n\n```text\n{file.read_text(encoding='utf-8').strip()}\n```\n")
    page("reference/commands.md", "".join(parts))


def test_the_page_of_the_metrics(page: Golden) -> None:
    """H2: every metric that `/metrics` gives, what it means, and when to worry."""
    lines = [
        f"| `{row.full_name}` | {row.kind} | {f'`{row.label}`' if row.label else ''} | {row.meaning} | {row.worry} |\n"
        for row in ROWS
    ]
    page("reference/metrics.md", METRICS + "".join(lines))


def test_the_page_of_the_routes(page: Golden) -> None:
    """I6: every route with the scope it needs, from the table that the server is made from."""
    lines = [
        f"| {method.upper()} | `{path}` | {operation['x-agentgate-scope'] or 'none'} | {operation['summary']} |\n"
        for path, operations in sorted(document(HANDLERS)["paths"].items())
        for method, operation in sorted(operations.items())
    ]
    page("reference/routes.md", ROUTES + "".join(lines))
