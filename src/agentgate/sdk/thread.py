"""The link on a thread and an event loop of its own.

A handler that blocks the handlers' loop without holding the interpreter's lock (a slow C call, a blocking socket) then
does not look like a dead agent: beats go on, and `BeatParams.lag_ms` tells of the blocked loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial

from agentgate.errors import LinkDown
from agentgate.sdk import clock
from agentgate.sdk.bridge import Bridge, BridgedPort, BridgedReceiver
from agentgate.sdk.link import Link
from agentgate.sdk.port import LinkPort, Receiver


class LinkThread:
    """Runs a link beside the running loop, which is the handlers'."""

    def __init__(self, link: Link) -> None:
        home = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = home.create_future()  # done when the link has ended; holds its error
        self._link = link
        self._home = Bridge(home)
        self._loop = asyncio.new_event_loop()
        self._there = Bridge(self._loop)
        self._thread = threading.Thread(target=self._run, name="agentgate-link", daemon=True)

    def task_port(self) -> LinkPort:
        """The link for code on the handlers' loop."""
        return BridgedPort(self._link, self._there, clock.monotonic, home=self._home)

    def thread_port(self) -> LinkPort:
        """The link for handlers in threads."""
        return BridgedPort(self._link, self._there, clock.monotonic)

    def start(self, receiver: Receiver) -> None:
        """Begin to connect."""
        self._link.receiver = BridgedReceiver(receiver, self._home, clock.monotonic)
        self._thread.start()

    def close(self) -> None:
        """End the link, after sending what is on its way out."""
        with contextlib.suppress(LinkDown):  # it has ended by itself
            self._there.post(self._link.close)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._link.run())
        except BaseException as raised:  # noqa: BLE001 - reported at home, whatever it is
            error = raised
        with contextlib.suppress(LinkDown):  # nobody is at home any more
            self._home.post(partial(self._report, error))

    def _report(self, error: BaseException | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)
