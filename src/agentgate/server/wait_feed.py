"""Who waits for whom, as it changes: server-sent events for those who watch.

A watcher gets a snapshot first, then differences (`core.wait_picture`). Pictures are taken once a window for each
tenant that has watchers, so what begins and ends inside one is never sent; while nobody watches a tenant, nothing is
done for it. A watcher who does not read is cut as soon as too much waits for it, and gets a new snapshot when it comes
back: what it has seen before does not matter.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.json import Encoder
from msgspec.structs import replace

from agentgate.core.wait_picture import difference
from agentgate.model import Identity, WaitDifference, WaitPicture, problem
from agentgate.server.problems import Refused
from agentgate.server.wait_pictures import WAITS_MAX

if TYPE_CHECKING:
    from litestar.types import Receive, Scope, Send

    from agentgate.server.wait_pictures import WaitPictures

WINDOW_S: Final = 0.2  # sooner than an eye notices, and most waits are over by then
STILL_HERE_S: Final = 10.0  # proxies close what is silent for a minute, some for half of one
WATCHERS_MAX: Final = 32  # of a tenant; each costs the sending, and all together the taking of pictures
AGAIN_S: Final = 1.0

MEDIA_TYPE: Final = "text/event-stream"
HEADERS: Final = [(b"content-type", MEDIA_TYPE.encode()), (b"x-accel-buffering", b"no")]
STILL_HERE: Final = b": still here\n\n"
RETRY: Final = b"retry: 1000\n\n"

encode: Final = Encoder().encode


class Watcher:
    """One who watches; an ASGI application that sends it what it has to be told, until it leaves or is cut."""

    def __init__(self, identity: Identity, unread_max: int, leave: Callable[[Watcher], None]) -> None:
        self.identity = identity
        self._unread_max = unread_max
        self._unread = 0
        self.has_picture = False  # what it is sent next is a difference from it
        self._leave = leave
        self._waiting: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._is_over = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Answer the request for as long as it lasts."""
        gone = asyncio.get_running_loop().create_task(self._until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": RETRY, "more_body": True})
            while not self._is_over:
                await send({"type": "http.response.body", "body": await self._next(), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.end()
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone

    def tell(self, event: bytes) -> None:
        """Send it this when it can take it; one that does not read is cut."""
        if self._waiting and self._unread + len(event) > self._unread_max:
            self.end()
            return
        self._unread += len(event)
        self._waiting.append(event)
        self._news.set()

    def end(self) -> None:
        """Tell it nothing more; safe twice."""
        if not self._is_over:
            self._is_over = True
            self._waiting.clear()
            self._news.set()
            self._leave(self)

    async def _next(self) -> bytes:
        """What is to be sent next: all that waits, or a sign of life."""
        if not self._waiting:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), STILL_HERE_S)
        if not self._waiting:
            return b"" if self._is_over else STILL_HERE
        event = self._waiting.popleft()
        self._unread -= len(event)
        return event

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.end()


class WaitFeed:
    """All watchers of a server, by tenant.

    `spawn` runs what takes the pictures; `unread_max` is how many bytes may wait for one watcher to take them.
    """

    def __init__(
        self, pictures: WaitPictures, spawn: Callable[[Coroutine[Any, Any, None]], object], unread_max: int
    ) -> None:
        self._pictures = pictures
        self._spawn = spawn
        self._unread_max = unread_max
        self._watchers: dict[str, list[Watcher]] = {}  # of tenants that are being watched
        self._is_over = False

    def __len__(self) -> int:
        """How many watch."""
        return sum(map(len, self._watchers.values()))

    def watch(self, identity: Identity) -> Watcher:
        """Somebody watches its tenant from now on; raises `Refused` when there are too many, or the gate stops."""
        tenant = identity.tenant
        if self._is_over:
            raise Refused(problem("overloaded", retry_after_s=AGAIN_S, detail="the gate stops"))
        if len(self._watchers.get(tenant, ())) >= WATCHERS_MAX:
            detail = f"{WATCHERS_MAX} watch these waits already, which is the bound"
            raise Refused(problem("overloaded", retry_after_s=AGAIN_S, detail=detail))
        watcher = Watcher(identity, self._unread_max, self._left)
        if tenant in self._watchers:
            self._watchers[tenant].append(watcher)
        else:
            self._watchers[tenant] = [watcher]
            self._spawn(self._follow(tenant))
        return watcher

    def end_fallen(self, stands: Callable[[Identity], bool]) -> None:
        """End those who would not be let in any more."""
        for watcher in self._all():
            if not stands(watcher.identity):
                watcher.end()

    def close(self) -> None:
        """The gate stops: everybody's stream ends."""
        self._is_over = True
        for watcher in self._all():
            watcher.end()

    def _all(self) -> list[Watcher]:
        return [watcher for watchers in self._watchers.values() for watcher in watchers]

    def _left(self, watcher: Watcher) -> None:
        self._watchers[watcher.identity.tenant].remove(watcher)

    async def _follow(self, tenant: str) -> None:
        """Take pictures of a tenant while anybody watches."""
        watchers, epoch = self._watchers[tenant], self._pictures.epoch()
        before: WaitPicture | None = None
        try:
            while watchers:
                after = await self._pictures.take(tenant, WAITS_MAX, epoch=epoch)
                before = _tell(watchers, before, after)
                await asyncio.sleep(WINDOW_S)
        finally:
            for watcher in list(watchers):
                watcher.end()
            del self._watchers[tenant]


def _tell(watchers: list[Watcher], before: WaitPicture | None, after: WaitPicture) -> WaitPicture:
    """The news for whoever has the picture before, the whole of it for all others; returns what all have now."""
    change = difference(before, after) if before is not None else None
    if before is not None and change is None:
        after = replace(after, seq=before.seq)  # nothing is new: who comes now has what the others have
    news = event("difference", change) if change is not None else b""
    snapshot = b""
    for watcher in list(watchers):
        if not watcher.has_picture:
            snapshot = snapshot or event("snapshot", after)
            watcher.has_picture = True
            watcher.tell(snapshot)
        elif news:
            watcher.tell(news)
    return after


def event(name: str, what: WaitPicture | WaitDifference) -> bytes:
    """One event as it is sent; JSON has no line breaks of its own."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (what.seq, name.encode(), encode(what))
