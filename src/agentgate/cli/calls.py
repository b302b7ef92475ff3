"""`agentgate calls list`, `show` and `settle`."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
import typer

from agentgate.cli import exits, gate_api
from agentgate.cli.exits import CommandError, ExitCode
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import print_json, print_table, say

COLUMNS: Final = ("KEY", "TARGET", "STATE", "CODE", "FIRST SEEN", "TRACE")
PAGE: Final = 1_000
PAGES_MAX: Final = 100  # a key is looked for among so many; with a target it is found at once
SEPARATORS: Final = 3  # in a key as shown; an id has none
EXIT_BY_CODE: Final[dict[str, ExitCode]] = {"outcome_unknown": exits.UNKNOWN}

calls = typer.Typer(help="Look at calls, and settle lost ones.", no_args_is_help=True, rich_markup_mode=None)

KeyOrId = Annotated[
    str,
    typer.Argument(metavar="KEY", help="The key as shown, caller:task_type:business_key:action, or the id of a call."),
]
Target = Annotated[str, typer.Option(metavar="NAME", help="Only calls to this target, as it was named.")]


class State(StrEnum):
    """What a call can have come to."""

    UNKNOWN = "unknown"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Word(StrEnum):
    """What an operator can say."""

    DONE = "done"
    FAILED = "failed"
    NOT_DONE = "not-done"


@calls.callback()
def options() -> None:
    """Look at calls, and settle lost ones."""


@calls.command(name="list")
def list_calls(
    *,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    target: Target = "",
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=PAGE)] = 100,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Keyed calls that the ledger has a record of.

    `unknown`: the agent went away while it worked, and nobody can tell whether it happened; see `settle`.

    Example: agentgate calls list --state unknown
    """
    found = gate_api.read(url, "v1", "calls", query={"state": state, "target": target, "limit": limit})
    if as_json:
        print_json(found)
        return
    if not found["calls"]:
        say("no such calls" if state or target else "no calls yet")
        return
    print_table(COLUMNS, [_row(call) for call in found["calls"]])
    if found["next"] is not None:
        say(f"there are more than {limit}; --limit shows up to {PAGE}, --state and --target choose")


@calls.command()
def show(key: KeyOrId, *, target: Target = "", url: Url = None, as_json: AsJson = False) -> None:
    """What became of a call.

    Exit codes: 0 done or running, 1 failed or not found, 3 no gate answers, 4 outcome unknown.

    Example: agentgate calls show shop:confirm:order_123:run
    """
    status, answer = gate_api.ask(url, "v1", "calls", _id_of(url, key, target))
    if answer.get("code") in ("not_found", "forbidden"):
        raise CommandError(f"nothing is known of {key!r}; `agentgate calls list` shows what there is")
    if as_json:
        print_json(answer)
    elif status == HTTPStatus.ACCEPTED:
        say(f"running: {answer['state'] or 'nothing more is known'}")
    elif status == HTTPStatus.OK:
        print_json(answer["value"])
    else:
        say(f"{answer['code']}: {answer['detail'] or answer['title']}")
        say(f"  {answer['advice']}")
        if answer["code"] == "outcome_unknown":
            say(f"  Once you know: agentgate calls settle {answer.get('key', key)} --as done|failed|not-done")
    if status >= HTTPStatus.BAD_REQUEST:
        raise typer.Exit(EXIT_BY_CODE.get(answer.get("code", ""), exits.FAILED))


@calls.command()
def settle(
    key: KeyOrId,
    *,
    word: Annotated[Word, typer.Option("--as", help="What became of it.")],
    value: Annotated[str, typer.Option(metavar="JSON", help="Its answer, when it is done.")] = "",
    detail: Annotated[str, typer.Option(metavar="TEXT", help="Why, when it has failed.")] = "",
    target: Target = "",
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of a call whose outcome is unknown.

    Look at the target's own records first. `done` and `failed` are what everybody is told from now on; `not-done` frees
    the key, and the next call with it runs. What you say is logged.

    Example: agentgate calls settle shop:confirm:order_123:run --as done --value '{"receipt": "r-17"}'
    """
    body = _word(word, value, detail)
    # A key may have been called at several targets: meant is the lost one. If there is none, the gate says what is.
    settled = gate_api.send(url, body, "v1", "calls", _id_of(url, key, target, State.UNKNOWN, None), "settle")
    if as_json:
        print_json(settled)
    else:
        say(f"{settled['key']} is {'free' if settled['state'] == 'none' else settled['state']} now")


def _word(word: Word, value: str, detail: str) -> dict[str, Any]:
    """The body of the request."""
    if word is Word.DONE:
        if not value:
            raise CommandError("--as done needs --value, the answer as JSON; null if it has none", exits.MISUSED)
        try:
            return {"as": "done", "value": msgspec.json.decode(value)}
        except (msgspec.DecodeError, RecursionError) as error:
            raise CommandError(f"--value is not JSON: {error}; a string needs its quotes", exits.MISUSED) from None
    if value:
        raise CommandError(f"--value says what a done call answered; it means nothing with --as {word}", exits.MISUSED)
    return {"as": "failed", "detail": detail} if word is Word.FAILED else {"as": "not_done"}


def _id_of(url: str | None, key: str, target: str, *states: State | None) -> str:
    """The id of the call with this key, in the first of these states that has one; the id itself is taken as it is."""
    if key.count(":") != SEPARATORS:
        return key
    for state in states or (None,):
        found = _ids_of(url, key, target, state)
        if len(found) > 1:
            named = ", --target ".join(sorted(found))
            raise CommandError(f"{key!r} was called at several: choose with --target {named}")
        if found:
            return found.popitem()[1]
    at = f" at {target}" if target else ""
    raise CommandError(f"there is no call {key!r}{at}; `agentgate calls list` shows what there is")


def _ids_of(url: str | None, key: str, target: str, state: State | None) -> dict[str, str]:
    """The ids of the calls with this key, by target."""
    found: dict[str, str] = {}
    after = None
    for _ in range(PAGES_MAX):
        query = {"state": state, "target": target, "limit": PAGE, "after": after}
        page = gate_api.read(url, "v1", "calls", query=query)
        found |= {call["target"]: call["id"] for call in page["calls"] if call["key"] == key}
        after = page["next"]
        if after is None:
            break
    return found


def _row(call: dict[str, Any]) -> tuple[object, ...]:
    seen = datetime.fromtimestamp(call["first_seen_at"], UTC).astimezone()
    return call["key"], call["target"], call["state"], call["code"], f"{seen:%Y-%m-%d %H:%M:%S}", call["trace_id"]
