"""A client of the gate: calls agents, handles nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack, overload

from agentgate.errors import LinkDown
from agentgate.model.link import DrainParams, InvokeParams, StopKind, Welcome
from agentgate.sdk import clock
from agentgate.sdk.calling import CallOptions, call_params, check_options, exchange, value_of
from agentgate.sdk.connection import Connect
from agentgate.sdk.credentials import credentials
from agentgate.sdk.greeting import Identity, not_connected
from agentgate.sdk.link import Link
from agentgate.sdk.websocket import gate_url, websocket

T = TypeVar("T")

NAME_DEFAULT: Final = "client"


class Gate:
    """A connection to the gate, for programs that are not agents.

        async with Gate(name="shop") as gate:
            receipt = await gate.call("order_agent", "confirm", "order_123", {...})

    `url`: as `AGENTGATE_URL` says by default, else http://127.0.0.1:7070. `name`: who calls, in keys and for rates; as
    `AGENTGATE_NAME` says by default, else the name of the token in `AGENTGATE_TOKEN`, else "client". Entering waits
    `connect_timeout` seconds for a gate to answer and raises `LinkDown` with a sentence if none does; once entered, it
    reconnects by itself, and calls under way survive that. `connect` replaces the WebSocket, `draw` the chance, in
    simulations.
    """

    def __init__(
        self,
        url: str | None = None,
        name: str | None = None,
        *,
        connect_timeout: float = 5.0,
        connect: Connect | None = None,
        draw: Callable[[], float] = clock.draw,
        instance: str | None = None,
    ) -> None:
        self._url = gate_url(url)
        self.name = name or os.environ.get("AGENTGATE_NAME") or ("" if credentials() else NAME_DEFAULT)
        self._connect_timeout_s = connect_timeout
        self._receiver = _Client()
        self._link = Link(
            connect or websocket(self._url),
            Identity(agent=self.name, instance=instance or clock.new_instance(), pid=os.getpid()),
            draw=draw,
            receiver=self._receiver,
        )
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Connect; raises `LinkDown` when no gate answers in time."""
        running = self._running = asyncio.get_running_loop().create_task(self._link.run(), name="agentgate-link")
        up = asyncio.get_running_loop().create_task(self._receiver.up.wait())
        try:
            await asyncio.wait({running, up}, timeout=self._connect_timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up.cancel()
        if self._receiver.up.is_set():
            self.name = self.name or self._receiver.name
            return self
        refused = running.exception() if running.done() else None
        await self._stop()
        raise refused or LinkDown(not_connected(self._url, self._receiver.last_error))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; calls that are still waited for fail with `cancelled`."""
        await self._stop()

    @overload
    async def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: type[T],
        **options: Unpack[CallOptions],
    ) -> T: ...

    @overload
    async def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...

    async def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call an agent by name, or `skill("reserve")`, and wait for its answer.

        A write needs a business key; with the same one, and the same `action`, it runs once however often it is called.
        `returns`: the type to read the answer as; `Outcome` says more: whether it is `degraded`, or `replayed`.
        Options: `effect` ("read" promises that nothing changes and needs no key), `timeout` (seconds, 30), `action`
        ("run"; tells several effects on one business key apart), `heavy` (more time an attempt), `priority` (0 to 9, 9
        first), `again` (run a key again that is stored as failed), `join` (False: say so when the key runs already,
        instead of waiting for it), `on_disconnect` ("cancel" or "detach": what becomes of the work when this process is
        gone), `user` (on whose behalf: quotas count by it, down the whole chain; this client by default). Raises
        `CallFailed`, or `OutcomeUnknown` when nobody can tell whether the effect happened.
        """
        if self._running is None:
            raise LinkDown("this Gate is not connected: use `async with Gate(...) as gate:`")
        self._link.require_process()
        check_options(options)
        params = call_params(
            target, task_type, business_key, payload, bytes_max=self._link.payload_bytes_max, **options
        )
        timeout = options.get("timeout")
        deadline = None if timeout is None else self._link.now() + timeout
        return value_of(await exchange(self._link, params, deadline), returns)

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        self._link.close()
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await asyncio.shield(running)
        except TimeoutError:
            running.cancel()
            await asyncio.wait({running})
        except LinkDown:
            pass


class _Client:
    """The `Receiver` of a process without handlers."""

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.name = ""  # as the gate knows this process
        self.last_error: Exception | None = None

    def start(self, unit: str, params: InvokeParams, deadline: float) -> None:
        """The link refuses units of a process without a card."""

    def stop(self, unit: str, kind: StopKind, reason: str) -> None:
        """There are no units."""

    def drain(self, params: DrainParams) -> None:
        """A gate that drains closes the connection; the next gate is found by reconnecting."""

    def link_up(self, welcome: Welcome) -> None:
        """Entered, or connected again."""
        self.name = welcome.agent
        self.up.set()

    def link_down(self, error: Exception) -> None:
        """Remembered for the error message."""
        self.last_error = error

    def runs(self, unit: str) -> bool:  # noqa: ARG002 - the shape of a `Receiver`
        """There are no units."""
        return False

    def lag_ms(self) -> float:
        """The link and its user share the loop."""
        return 0.0
