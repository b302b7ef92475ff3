"""How a connection begins: who this process is, and what the gate answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from agentgate.errors import CODES, LinkDown
from agentgate.model.card import Card
from agentgate.model.link import Frame, HelloParams, LockReport, UnitReport, Welcome
from agentgate.sdk import wire
from agentgate.sdk.connection import Connection, LinkClosed

HELLO_ID: Final = "hello"


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Who connects: an agent with its card, or a client without one. `instance` is random per process."""

    agent: str
    instance: str
    card: Card | None = None
    pid: int = 0


class LinkRefused(LinkDown):
    """The gate refuses this process for good and names a code; the message is the gate's own sentence."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NotNow(LinkClosed):
    """The gate cannot take this process now, and may say when to come back."""

    def __init__(self, message: str, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class _RefusalData(msgspec.Struct, frozen=True):
    """What the `data` of a refused hello may hold."""

    code: str | None = None
    retry_after_ms: int | None = None


async def greet(
    connection: Connection,
    identity: Identity,
    units: tuple[UnitReport, ...],
    calls: tuple[str, ...],
    locks: tuple[LockReport, ...] = (),
) -> tuple[Welcome, list[Frame]]:
    """Say hello; returns the welcome, and the messages that came in one frame with it.

    Raises `LinkRefused`, `NotNow`, `WireError` or what the connection raises.
    """
    hello = HelloParams(
        agent=identity.agent,
        instance=identity.instance,
        card=identity.card,
        units=units,
        calls=calls,
        locks=locks,
        sdk="python",
        pid=identity.pid,
    )
    await connection.send(wire.request(HELLO_ID, "hello", hello))
    while True:
        frames = wire.read(await connection.recv())
        for place, frame in enumerate(frames):
            if frame.id == HELLO_ID and frame.method is None:
                return _welcome(frame), frames[place + 1 :]


def _welcome(frame: Frame) -> Welcome:
    if frame.error is None:
        return wire.body(frame.result, Welcome)
    try:
        data = msgspec.convert(frame.error.data or {}, _RefusalData)
    except msgspec.ValidationError:
        data = _RefusalData()
    if data.code in CODES and CODES[data.code].retry == "never":
        raise LinkRefused(frame.error.message, data.code)
    raise NotNow(frame.error.message, None if data.retry_after_ms is None else data.retry_after_ms / 1000)


def not_connected(url: str, error: Exception | None) -> str:
    """Why there is no link, and what to type, in one sentence."""
    if isinstance(error, NotNow):
        return f"the gate at {url} does not take this process: {error}"
    why = f" ({error})" if error is not None and str(error) else ""
    return f"no gate answers at {url}{why}; start one with `agentgate serve`, or set AGENTGATE_URL to where it is"
