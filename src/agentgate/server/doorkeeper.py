"""Who may come in, and who that is: asked for every request over HTTP and for every link.

Without a file of tokens everybody on this machine is a neighbour. With one, a request shows a token as
`Authorization: Bearer agt_…`. The file is looked at about every second: a token that was made is good from then on, one
that was revoked or has expired is no longer, and the links it has opened are ended. A file that has become unreadable
changes nothing: the tokens that were read last stay good, and the log says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Final

import structlog

from agentgate.core.tokens import Tokens
from agentgate.errors import ConfigError
from agentgate.model import NEIGHBOUR, NOBODY, Identity, Problem, problem
from agentgate.server.access import Access
from agentgate.server.options import ServerOptions
from agentgate.server.token_file import TokenFile

LOOK_S: Final = 1.0  # how long a revoked token may still work; looking is one question to the file system
SCHEME: Final = "bearer"
HOW_TO: Final = "send `Authorization: Bearer TOKEN` (AGENTGATE_TOKEN); `agentgate token create` makes one"

log = structlog.get_logger("agentgate.server")


class Doorkeeper:
    """The door of one server; `wall` is the time in seconds since the epoch. `refused` counts, by code."""

    def __init__(self, options: ServerOptions, wall: Callable[[], float]) -> None:
        self._file = TokenFile(Path(options.tokens)) if options.tokens is not None else None
        self._access = Access((*options.host_names, options.host), by_address=self._file is not None)
        self._wall = wall
        self._tokens = Tokens()
        self._next_expiry = inf
        self._timer: asyncio.TimerHandle | None = None
        self.on_change: Callable[[], None] = lambda: None  # somebody may be no longer who he was
        self.refused: dict[str, int] = {"unauthorized": 0, "forbidden": 0}

    def open(self) -> None:
        """Read the tokens, and follow their file and the time; raises `ConfigError` if they cannot be read."""
        if self._file is None:
            return
        self._take(self._file.read())
        if not len(self._tokens):
            log.warning("no_tokens", reason="nobody can come in until `agentgate token create` has made one")
        self._look_soon(self._file)

    def close(self) -> None:
        """Look at the file no more."""
        if self._timer is not None:
            self._timer.cancel()

    def admit_request(self, headers: Iterable[tuple[bytes, bytes]], *, is_public: bool = False) -> Identity | Problem:
        """As `admit`, for all headers of a request, names in lower case."""
        found: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"authorization": []}
        for name, value in headers:
            if name in found:
                found[name].append(value.decode("latin-1"))
        return self.admit(*found.values(), is_public=is_public)

    def admit(
        self, hosts: Sequence[str], origins: Sequence[str], shown: Sequence[str], *, is_public: bool = False
    ) -> Identity | Problem:
        """Who sends a request with these Host, Origin and Authorization headers, or why it is refused.

        For what is public, whoever shows no valid token is nobody, and that is enough.
        """
        answer = self._admit(hosts, origins, shown)
        if isinstance(answer, Problem):
            if is_public and answer.code == "unauthorized":
                return NOBODY
            self.refused[answer.code] += 1
        return answer

    def stands(self, identity: Identity) -> bool:
        """Whether somebody who was admitted still would be."""
        return identity.is_trusted or self._tokens.stands(identity, self._wall())

    def _admit(self, hosts: Sequence[str], origins: Sequence[str], shown: Sequence[str]) -> Identity | Problem:
        finding = self._access.finding(hosts, origins)
        if finding is not None:
            return problem("forbidden", detail=finding)
        if self._file is None:
            return NEIGHBOUR
        if len(shown) != 1:
            return problem("unauthorized", detail=f"there is {'no' if not shown else 'more than one'} token: {HOW_TO}")
        scheme, _, token = shown[0].partition(" ")
        if scheme.lower() != SCHEME:
            return problem("unauthorized", detail=f"this is no token: {HOW_TO}")
        identity = self._tokens.identify(token.strip(" "), self._wall())
        return identity or problem("unauthorized", detail="this token is unknown, revoked or expired")

    def _take(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._next_expiry = tokens.next_expiry(self._wall()) or inf

    def _look_soon(self, file: TokenFile) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look, file)

    def _look(self, file: TokenFile) -> None:
        self._look_soon(file)
        try:
            tokens = file.read_if_changed()
        except ConfigError as error:
            log.error("tokens_not_read", reason=str(error), kept=len(self._tokens))  # noqa: TRY400 - the reason says it all
            tokens = None
        if tokens is not None:
            log.info("tokens_read", tokens=len(tokens))
        elif self._wall() < self._next_expiry:
            return
        self._take(tokens if tokens is not None else self._tokens)
        self.on_change()
