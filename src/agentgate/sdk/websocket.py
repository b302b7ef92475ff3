"""The SDK's own connection: a WebSocket to the gate's `/link`."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agentgate.errors import ConfigError
from agentgate.model.link import LINK_PATH, SUBPROTOCOL
from agentgate.sdk.connection import Connect, Connection, LinkClosed
from agentgate.sdk.credentials import credentials
from agentgate.sdk.greeting import LinkRefused

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

URL_DEFAULT: Final = "http://127.0.0.1:7070"
MESSAGE_BYTES_MAX: Final = 4_194_304  # several of the largest payloads (1 MiB) in one message
REASON_CHARS_MAX: Final = 300
# An upgrade that is answered so will be answered so again.
CODE_BY_STATUS: Final = {401: "unauthorized", 403: "forbidden"}
# The library writes whole requests, token included, to its log when that listens to details.
_QUIET: Final = logging.getLogger("agentgate.link.socket")
_QUIET.setLevel(logging.INFO)
_LOOPBACK: Final = re.compile(r"127(\.\d{1,3}){3}")
_SCHEMES: Final = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}


def gate_url(url: str | None) -> str:
    """Where the gate is: as said, else as `AGENTGATE_URL` says, else on this machine. Raises `ConfigError`."""
    chosen = url or os.environ.get("AGENTGATE_URL") or URL_DEFAULT
    parts = urlsplit(chosen)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ConfigError(f"the gate's address is like {URL_DEFAULT}, not {chosen!r} (AGENTGATE_URL)")
    return chosen.rstrip("/")


def websocket(url: str) -> Connect:
    """How to connect to the gate at this address; `AGENTGATE_TOKEN`, if set, says who is there.

    Connecting raises `LinkRefused` when the gate does not take the token, `LinkClosed` for any other reason.
    """
    parts = urlsplit(url)
    address = f"{_SCHEMES[parts.scheme]}://{parts.netloc}{parts.path}{LINK_PATH}"
    options: dict[str, Any] = {"additional_headers": credentials()}
    if _is_loopback(parts.hostname or ""):
        options["proxy"] = None  # a proxy of the environment does not lead back to this machine

    async def connect() -> Connection:
        from websockets.asyncio import client  # noqa: PLC0415 - takes long to load, and not every import connects
        from websockets.exceptions import InvalidStatus, WebSocketException  # noqa: PLC0415 - as above
        from websockets.typing import Subprotocol  # noqa: PLC0415 - as above

        try:
            socket = await client.connect(
                address,
                subprotocols=[Subprotocol(SUBPROTOCOL)],
                compression=None,  # messages are small and local; deflate would cost more than all the rest
                ping_interval=None,  # the link has its own beats
                max_size=MESSAGE_BYTES_MAX,
                open_timeout=None,  # the link limits connecting and greeting together
                close_timeout=1,
                logger=_QUIET,
                **options,
            )
        except InvalidStatus as error:
            code = CODE_BY_STATUS.get(error.response.status_code)
            if code is None:
                raise LinkClosed(f"{url} is no gate, or refuses: {error}") from error
            raise LinkRefused(f"{code}: {_sentence(error.response.body)}", code) from None
        except WebSocketException as error:
            raise LinkClosed(f"{url} is no gate, or refuses: {error}") from error
        return _WebSocket(socket, WebSocketException)

    return connect


class _WebSocket:
    """A `Connection` on a WebSocket of the websockets library."""

    def __init__(self, socket: ClientConnection, failures: type[Exception]) -> None:
        self._socket = socket
        self._failures = failures

    async def send(self, data: bytes) -> None:
        """One message; it is UTF-8 already, so it is sent as text without being decoded."""
        try:
            await self._socket.send(data, text=True)
        except self._failures as error:
            raise LinkClosed(str(error)) from error

    async def recv(self) -> bytes | str:
        """The next message, undecoded."""
        try:
            return await self._socket.recv(decode=False)
        except self._failures as error:
            raise LinkClosed(str(error)) from error

    async def close(self) -> None:
        """The closing handshake."""
        await self._socket.close()


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or _LOOPBACK.fullmatch(host) is not None


def _sentence(body: bytes | bytearray | None) -> str:
    """What the gate says, as one line of text whatever it has sent."""
    text = " ".join((body or b"").decode(errors="replace").split())
    return "".join(letter for letter in text if letter.isprintable())[:REASON_CHARS_MAX]
