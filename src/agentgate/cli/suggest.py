"""`agentgate config suggest`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agentgate.cli.options import AsJson, ConfigFile
from agentgate.cli.output import print_json, print_table, say, shown

if TYPE_CHECKING:
    from agentgate.config import Settings
    from agentgate.core.suggest import Proposal, Suggestions

SPANS_MAX: Final = 200_000  # the newest; some ten seconds of reading, and more would say the same
HOURS: Final = 24.0
COLUMNS: Final = ("KEY", "NOW", "PROPOSED", "WHY")
NOT_IN_FILE: Final = "(not in the file)"


def suggest(
    file: ConfigFile = None,
    hours: Annotated[
        float, typer.Option("--hours", metavar="HOURS", min=0.01, max=8760.0, help="How far back to look.")
    ] = HOURS,
    *,
    as_json: AsJson = False,
) -> None:
    """Propose thresholds from what a gate has recorded, and say what mechanisms in observe mode would have done.

    Reads the spans beside the store that the configuration names, also while the gate runs; nothing is changed. What
    is proposed is printed as a table on standard error, and as YAML to paste on standard output.

    Example: agentgate config suggest --config agentgate.yaml --hours 168
    """
    from agentgate.app import recorded_spans
    from agentgate.config import load
    from agentgate.core.recorded import Recorded
    from agentgate.core.suggest import suggest as propose

    settings = load(file, os.environ).settings
    recorded = Recorded(settings.breaker.window_s)
    for spans in recorded_spans(settings, hours * 3600, SPANS_MAX):
        recorded.add(spans)
    found = propose(recorded, _current(settings))
    if as_json:
        print_json({"suggestions": found, "yaml": fragment(found)})
        return
    _show(found)


def fragment(found: Suggestions) -> str:
    """What is proposed, as a configuration; empty when nothing is."""
    import yaml

    root: dict[str, Any] = {}
    for proposal in found.proposals:
        if proposal.in_file:
            *sections, last = proposal.key.split(".")
            place = root
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = proposal.proposed
    return yaml.safe_dump(root, sort_keys=False) if root else ""


def _show(found: Suggestions) -> None:
    from agentgate.core.suggest import period

    say(f"from {found.calls} calls and {found.attempts} attempts in {period(found.period_s)}")
    if found.proposals:
        print_table(COLUMNS, [_row(proposal) for proposal in found.proposals], to_stderr=True)
    for silence in found.silent:
        say(f"nothing about {silence.subject}: {silence.why}")
    text = fragment(found)
    if text:
        say("to paste into the configuration, then `agentgate config check`:")
        print(shown_lines(text), end="")
    elif not found.proposals:
        say("nothing is proposed")


def _row(proposal: Proposal) -> tuple[object, ...]:
    figures = ", ".join(f"{name} {value:g}" for name, value in proposal.figures.items())
    now = NOT_IN_FILE if proposal.current is None else str(proposal.current)
    return proposal.key, now, str(proposal.proposed), f"{proposal.reason} ({figures})"


def shown_lines(text: str) -> str:
    """Text of several lines in which nothing but text is left."""
    return "".join(shown(line) + "\n" for line in text.splitlines())


def _current(settings: Settings) -> Any:
    from agentgate.core.suggest import Current

    return Current(
        modes=settings.mechanisms,
        timeout=settings.timeout,
        breaker=settings.breaker,
        rate=settings.rate,
        retry=settings.retry,
        root_deadline_s=settings.calls.root_deadline_s,
    )
