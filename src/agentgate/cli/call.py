"""`agentgate call`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import msgspec
import typer

from agentgate.cli import exits
from agentgate.cli.exits import CommandError
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import print_json, say
from agentgate.errors import CallFailed, OutcomeUnknown
from agentgate.model.outcome import Outcome

PAYLOAD_BYTES_MAX: Final = 1_048_576  # no gate takes more


def call(  # noqa: PLR0913 - the options of a call
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="An agent's name, or skill:TASK_TYPE for any agent that handles it.")
    ],
    task_type: Annotated[str, typer.Argument(metavar="TASK_TYPE", help="What it is to do.")],
    business_key: Annotated[
        str, typer.Argument(metavar="BUSINESS_KEY", help="What it is about; a repeat with the same one runs once.")
    ] = "",
    payload: Annotated[str, typer.Argument(metavar="PAYLOAD", help="JSON, @FILE, or - for standard input.")] = "",
    *,
    read: Annotated[bool, typer.Option("--read", help="It changes nothing: no business key, no ledger.")] = False,
    action: Annotated[str, typer.Option(help="Tells several effects on one business key apart.")] = "run",
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The call's deadline [30].", min=0.001)
    ] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 9, 9 first [5].", min=0, max=9)] = None,
    heavy: Annotated[bool, typer.Option("--heavy", help="It may take much longer than usual.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Run a key again that is stored as failed.")] = False,
    user: Annotated[str, typer.Option(metavar="NAME", help="On whose behalf; quotas count by it [cli].")] = "",
    no_join: Annotated[bool, typer.Option("--no-join", help="Do not wait for the same key if it runs now.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make one call and print the answer.

    Exit codes: 0 done, 1 failed or refused, 3 no gate answers, 4 outcome unknown.

    Example: agentgate call stock_agent reserve order_123 '{"sku": "A-7", "n": 2}'

    Example: agentgate call --read skill:lookup lookup "" @query.json
    """
    value = read_payload(payload, sys.stdin.buffer)
    options = {
        "action": action,
        "effect": "read" if read else "write",
        "timeout": timeout,
        "priority": priority,
        "heavy": heavy,
        "again": again,
        "join": not no_join,
        "user": user,
    }
    try:
        outcome = asyncio.run(_call(url, target, task_type, business_key, value, options))
    except CallFailed as error:
        _show_failure(error, as_json=as_json)
        raise typer.Exit(exits.UNKNOWN if isinstance(error, OutcomeUnknown) else exits.FAILED) from None
    show_answer(outcome, as_json=as_json)


async def _call(
    url: str | None, target: str, task_type: str, business_key: str, payload: Any, options: dict[str, Any]
) -> Outcome:
    from agentgate.sdk.credentials import credentials
    from agentgate.sdk.gate import Gate
    from agentgate.sdk.greeting import LinkRefused

    logging.getLogger("agentgate").addHandler(logging.NullHandler())  # what it says, this command says itself
    name = None if credentials() else "cli"  # a token has a name of its own
    try:
        async with Gate(url, name=name) as gate:
            outcome: Outcome = await gate.call(target, task_type, business_key, payload, returns=Outcome, **options)
            return outcome
    except LinkRefused as refusal:
        raise CommandError(f"the gate refuses this command: {refusal}", exits.MISUSED) from None


def read_payload(text: str, stdin: BinaryIO) -> Any:
    """The payload from the command line, a file or standard input; nothing at all is null."""
    if not text:
        return None
    raw, where = text.encode(), "the payload"
    if text == "-":
        raw, where = stdin.read(PAYLOAD_BYTES_MAX + 1), "standard input"
    elif text.startswith("@"):
        raw, where = _read_file(Path(text[1:])), text[1:]
    if len(raw) > PAYLOAD_BYTES_MAX:
        raise CommandError(f"{where} is larger than {PAYLOAD_BYTES_MAX} bytes", exits.MISUSED)
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = "; a string needs its quotes: '\"text\"'" if where == "the payload" else ""
        raise CommandError(f"{where} is not JSON: {error}{hint}", exits.MISUSED) from None


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(PAYLOAD_BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", exits.MISUSED) from None


def show_answer(outcome: Outcome, *, as_json: bool) -> None:
    """Print the value, and say so when it stands in for another."""
    if as_json:
        print_json({"status": "done", "value": outcome.value, "degraded": outcome.degraded})
        return
    print_json(outcome.value)
    if outcome.degraded:
        say("degraded: this is the answer of the degraded handler; the call itself has none yet, and may still happen")


def _show_failure(error: CallFailed, *, as_json: bool) -> None:
    status = "unknown" if isinstance(error, OutcomeUnknown) else "failed"
    if as_json:
        fields = ("code", "fault", "sent", "retry", "retry_after_ms", "advice", "detail")
        print_json({"status": status, "error": {name: getattr(error, name) for name in fields}})
        return
    happened = "it was sent" if error.sent else "nothing was sent"
    again = "" if error.retry_after_ms is None else f"; may work again in {error.retry_after_ms / 1000:g} s"
    say(f"{status}: {error}")
    say(f"  {happened}{again}")
    if error.advice:
        say(f"  {error.advice}")
