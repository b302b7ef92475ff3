"""`agentgate token create`, `list` and `revoke`: the file of tokens; and the option that shows one to a gate."""

from __future__ import annotations

import datetime as dt
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agentgate.cli import exits
from agentgate.cli.exits import CommandError
from agentgate.cli.options import AsJson, ConfigFile
from agentgate.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from agentgate.core.tokens import Token

LIFETIME: Final = re.compile(r"([1-9][0-9]{0,5})(m|h|d)")
SECONDS: Final = {"m": 60.0, "h": 3600.0, "d": 86_400.0}
FILE_BYTES_MAX: Final = 4_096
TOKEN_VARIABLE: Final = "AGENTGATE_TOKEN"  # noqa: S105 - the name of a variable, no secret

File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="The file of tokens [server.tokens of the configuration].")
]

token = typer.Typer(help="Make and revoke tokens.", no_args_is_help=True, rich_markup_mode=None)


@token.callback()
def options() -> None:
    """Make and revoke the tokens that callers show to a gate.

    The gate reads the file that `server.tokens` names; it looks at it about every second. Only hashes are in it.
    """


@token.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will show it: the caller in keys and for rates.")],
    scope: Annotated[
        list[str],
        typer.Option("--scope", metavar="SCOPE", help="submit, observe, operate, or agent:NAME; may be repeated."),
    ],
    tenant: Annotated[str, typer.Option("--tenant", help="Whose: tenants see nothing of one another.")] = "default",
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", help="How long it is valid: 90d, 12h, 30m [for ever].")
    ] = "",
    *,
    file: File = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, once: nobody can read it again.

    submit: make calls under NAME. agent:NAME: register, serve and call as that agent. observe: read agents, chains,
    breakers. operate: change what runs. All of it within the tenant.

    Example: agentgate token create stock --scope agent:stock --file tokens.json

    Example: agentgate token create shop --scope submit --scope observe --tenant blue --expires 90d
    """
    from agentgate.adapters.clock import SystemChance, SystemClock
    from agentgate.core.tokens import ID_BYTES, SECRET_BYTES, Token, hashed, token_flaw, written
    from agentgate.server import token_file

    path, chance, now = tokens_path(file, config), SystemChance(), SystemClock().wall()
    secret = chance.token_hex(SECRET_BYTES)
    made = Token(
        id=chance.token_hex(ID_BYTES),
        name=name,
        tenant=tenant,
        scopes=tuple(dict.fromkeys(scope)),
        sha256=hashed(secret),
        created_at=round(now, 3),
        expires_at=round(now + lifetime_s(expires), 3) if expires else None,
    )
    if (flaw := token_flaw(made)) is not None:
        raise CommandError(flaw, exits.MISUSED)
    token_file.change(path, lambda tokens: (*tokens, made))
    text = written(made.id, secret)
    if as_json:
        print_json({**_shown(made), "token": text})
        return
    print(text)
    say(f"token {made.id} of {name}, {_until(made)}, is in {path}. It is shown this once: set {TOKEN_VARIABLE} to it")


@token.command(name="list")
def list_tokens(file: File = None, config: ConfigFile = None, *, as_json: AsJson = False) -> None:
    """Every token: whose it is, what it may do, until when. The secrets are not known to anybody.

    Example: agentgate token list --file tokens.json
    """
    from agentgate.adapters.clock import SystemClock
    from agentgate.server import token_file

    path, now = tokens_path(file, config), SystemClock().wall()
    tokens = token_file.read(path)
    if as_json:
        print_json({"tokens": [{**_shown(known), "expired": known.is_over(now)} for known in tokens]})
    elif tokens:
        rows = [
            (known.id, known.name, known.tenant, " ".join(known.scopes), _time(known.created_at), _end(known, now))
            for known in tokens
        ]
        print_table(("ID", "NAME", "TENANT", "SCOPES", "CREATED", "EXPIRES"), rows)
    else:
        say(f"no tokens in {path}; make one with `agentgate token create NAME --scope submit`")


@token.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `agentgate token list` shows it.")],
    file: File = None,
    config: ConfigFile = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Make a token invalid; a running gate ends its links within about a second.

    Example: agentgate token revoke 3f9c02ab17de --file tokens.json
    """
    from agentgate.server import token_file

    path = tokens_path(file, config)
    gone: list[Token] = []

    def without(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        gone.extend(known for known in tokens if known.id == token_id)
        return tuple(known for known in tokens if known.id != token_id)

    if not path.exists():
        token_file.read(path)  # raises, and says what to type
    token_file.change(path, without)
    if not gone:
        raise CommandError(f"there is no token {token_id!r} in {path}; `agentgate token list` shows their ids")
    if as_json:
        print_json({"revoked": _shown(gone[0])})
    else:
        say(f"token {token_id} of {gone[0].name} is revoked")


def tokens_path(file: Path | None, config: Path | None) -> Path:
    """The file of tokens: as said, else as the configuration says."""
    if file is not None:
        return file
    from agentgate.config import load

    named = load(config, os.environ).settings.server.tokens
    if named is None:
        raise CommandError("which file of tokens? Say --file FILE, or set server.tokens", exits.MISUSED)
    return Path(named)


def lifetime_s(text: str) -> float:
    """How many seconds `90d`, `12h` or `30m` are; raises `CommandError` for anything else."""
    parts = LIFETIME.fullmatch(text)
    if parts is None:
        raise CommandError(f"--expires {text}: is like 90d, 12h or 30m", exits.MISUSED)
    return int(parts[1]) * SECONDS[parts[2]]


def use_token_file(path: Path) -> None:
    """From now on this process, and what it starts, shows the token in this file."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"--token-file {path}: {os.strerror(error.errno or 0)}", exits.MISUSED) from None
    text = data.decode(errors="replace").strip()
    if not text or len(data) > FILE_BYTES_MAX:
        raise CommandError(f"--token-file {path}: holds no token", exits.MISUSED)
    os.environ[TOKEN_VARIABLE] = text


def _shown(known: Token) -> dict[str, Any]:
    return {
        "id": known.id,
        "name": known.name,
        "tenant": known.tenant,
        "scopes": known.scopes,
        "created_at": known.created_at,
        "expires_at": known.expires_at,
    }


def _until(known: Token) -> str:
    return "valid for ever" if known.expires_at is None else f"valid until {_time(known.expires_at)}"


def _end(known: Token, now: float) -> str:
    if known.expires_at is None:
        return "never"
    return "expired" if known.is_over(now) else _time(known.expires_at)


def _time(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
