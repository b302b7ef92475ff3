"""Watchers of the waits in virtual time: what they are sent, how often, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from agentgate.app import Platform
from agentgate.core.wait_picture import applied
from agentgate.model import NEIGHBOUR, Identity, Skill, WaitDifference, WaitPicture
from agentgate.server.problems import Refused
from agentgate.server.wait_feed import STILL_HERE_S, WATCHERS_MAX, WINDOW_S, WaitFeed
from agentgate.server.wait_pictures import WaitPictures
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

UNREAD_MAX = 20_000  # bytes: some twenty differences
SKILLS = (Skill(task_type="block"),)
ACME = Identity(tenant="acme", name="ops", token="t1")


class Browser:
    """The client's side of one stream."""

    def __init__(self, feed: WaitFeed, identity: Identity = NEIGHBOUR) -> None:
        self.events: list[tuple[int, str, Any]] = []
        self.comments = 0
        self.status = 0
        self.reads = asyncio.Event()
        self.reads.set()
        self._gone = asyncio.Event()
        app: Any = feed.watch(identity)
        self.task: asyncio.Task[None] = asyncio.get_running_loop().create_task(app({}, self._receive, self._send))

    def leave(self) -> None:
        self._gone.set()

    @property
    def names(self) -> list[str]:
        return [name for _, name, _ in self.events]

    @property
    def picture(self) -> WaitPicture:
        """What it knows from all that it was sent."""
        _, _, first = self.events[0]
        picture = msgspec.convert(first, WaitPicture)
        for _, _, data in self.events[1:]:
            picture = applied(picture, msgspec.convert(data, WaitDifference))
        return picture

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            assert (b"content-type", b"text/event-stream") in message["headers"]
        for block in message.get("body", b"").decode().split("\n\n")[:-1]:
            self._take(block)

    def _take(self, block: str) -> None:
        fields = dict(row.split(": ", 1) for row in block.splitlines())
        if "data" in fields:
            self.events.append((int(fields["id"]), fields["event"], msgspec.json.decode(fields["data"])))
        self.comments += block.startswith(": ")


@contextlib.asynccontextmanager
async def fed() -> AsyncIterator[tuple[Platform, WaitFeed, set[asyncio.Task[None]]]]:
    """A gate, its feed, and the tasks that take pictures."""
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async with gate() as platform:
        feed = WaitFeed(WaitPictures(platform.gateway, platform.clock), spawn, UNREAD_MAX)
        yield platform, feed, tasks
        feed.close()
        while tasks:
            await asyncio.wait(tasks)


class Waiting:
    """An agent and a caller of it, who can wait for one another's answers."""

    def __init__(self, platform: Platform) -> None:
        self.agent = WirePeer(platform, "a", skills=SKILLS, concurrency=8).connect()
        self._shop = WirePeer(platform, "shop").connect()

    async def begin(self, key: str) -> Invoked:
        _ = self._shop.call("a", "block", key)
        return await self.agent.next()

    def end(self, unit: Invoked) -> None:
        self.agent.answer(unit, "done")


def test_a_watcher_gets_a_snapshot_and_then_what_changes() -> None:
    """H3: a snapshot at once, then differences with growing numbers that add up to what stands."""

    async def story() -> None:
        async with fed() as (platform, feed, _):
            waiting = Waiting(platform)
            first = await waiting.begin("o1")
            browser = Browser(feed)
            await asyncio.sleep(0.01)
            assert (browser.status, browser.names) == (200, ["snapshot"])
            assert [wait.business_key for wait in browser.picture.waits] == ["o1"]
            second = await waiting.begin("o2")
            await asyncio.sleep(WINDOW_S * 1.5)
            waiting.end(first)
            await asyncio.sleep(WINDOW_S * 1.5)
            assert browser.names == ["snapshot", "difference", "difference"]
            assert [wait.business_key for wait in browser.picture.waits] == ["o2"]
            numbers = [number for number, _, _ in browser.events]
            assert numbers == sorted(set(numbers))
            assert [data["seq"] for _, _, data in browser.events] == numbers
            waiting.end(second)
            await asyncio.sleep(WINDOW_S * 1.5)
            assert browser.picture.waits == ()

    play(story)


def test_what_begins_and_ends_within_a_window_is_never_sent() -> None:
    """H3: a hundred calls that are answered at once are no news; nothing is sent while nothing changes."""

    async def story() -> None:
        async with fed() as (platform, feed, _):
            waiting, browser = Waiting(platform), Browser(feed)
            await asyncio.sleep(WINDOW_S / 2)
            for number in range(100):
                waiting.end(await waiting.begin(f"o{number}"))
            await asyncio.sleep(STILL_HERE_S * 2.5)
            assert browser.names == ["snapshot"]
            assert browser.comments == 2

    play(story)


def test_whoever_comes_later_or_again_gets_a_snapshot_of_its_own() -> None:
    """H3: with or without a Last-Event-ID, a stream begins with everything; then all get the same differences."""

    async def story() -> None:
        async with fed() as (platform, feed, _):
            waiting, early = Waiting(platform), Browser(feed)
            await asyncio.sleep(1.1)
            await waiting.begin("o1")
            await asyncio.sleep(1.1)
            late = Browser(feed)
            await asyncio.sleep(1.1)
            await waiting.begin("o2")
            await asyncio.sleep(1.1)
            assert (early.names, late.names) == (["snapshot", *["difference"] * 2], ["snapshot", "difference"])
            assert early.events[-1] == late.events[-1]
            assert early.picture == late.picture

    play(story)


def test_nothing_is_computed_while_nobody_watches() -> None:
    """I4: pictures are taken for tenants with watchers, and by one task for all of a tenant's."""

    async def story() -> None:
        async with fed() as (_, feed, tasks):
            assert not tasks
            watchers = [Browser(feed), Browser(feed), Browser(feed, ACME)]
            await asyncio.sleep(1)
            assert (len(feed), len(tasks)) == (3, 2)
            for browser in watchers:
                browser.leave()
            await asyncio.sleep(1)
            assert (len(feed), len(tasks)) == (0, 0)
            assert all(browser.task.done() for browser in watchers)
            again = Browser(feed)
            await asyncio.sleep(1)
            assert again.names == ["snapshot"]

    play(story)


def test_a_watcher_that_does_not_read_is_cut() -> None:
    """B14: what waits for one watcher is bounded; the others go on."""

    async def story() -> None:
        async with fed() as (platform, feed, _):
            waiting, quick, slow = Waiting(platform), Browser(feed), Browser(feed)
            await asyncio.sleep(WINDOW_S)
            slow.reads.clear()
            for number in range(40):
                unit = await waiting.begin(f"o{number}")
                await asyncio.sleep(WINDOW_S)
                waiting.end(unit)
            await asyncio.sleep(1)
            assert len(feed) == 1
            assert quick.picture.waits == ()
            assert len(quick.events) > 40
            slow.reads.set()
            await slow.task
            assert len(slow.events) <= 2, "it was on its way"

    play(story)


def test_watchers_are_bounded() -> None:
    """B14: a tenant has so many; the next one is told to come again, other tenants are not concerned."""

    async def story() -> None:
        async with fed() as (_, feed, _):
            watchers = [Browser(feed) for _ in range(WATCHERS_MAX)]
            with pytest.raises(Refused) as refused:
                feed.watch(NEIGHBOUR)
            assert (refused.value.error.code, refused.value.error.retry) == ("overloaded", "after")
            Browser(feed, ACME)
            watchers[0].leave()
            await asyncio.sleep(0.01)
            Browser(feed)
            await asyncio.sleep(0.01)

    play(story)


def test_streams_end_with_the_gate_and_with_their_tokens() -> None:
    """I6: whoever would not be let in any more is sent nothing more; a stopping gate ends all streams."""

    async def story() -> None:
        async with fed() as (_, feed, _):
            own, stranger = Browser(feed), Browser(feed, ACME)
            await asyncio.sleep(0.01)
            feed.end_fallen(lambda identity: identity is not ACME)
            await asyncio.sleep(0.01)
            assert (own.task.done(), stranger.task.done()) == (False, True)
            feed.close()
            await asyncio.sleep(0.01)
            assert own.task.done()
            with pytest.raises(Refused, match="the gate stops"):
                feed.watch(NEIGHBOUR)

    play(story)


def test_watchers_end_when_no_picture_can_be_taken() -> None:
    """B14: after a defect nobody is left hanging, and whoever comes again is served."""

    async def story() -> None:
        async with fed() as (platform, feed, tasks):
            browser = Browser(feed)
            await asyncio.sleep(0.01)
            [task] = tasks
            task.cancel()
            await asyncio.sleep(0.01)
            assert (browser.task.done(), len(feed)) == (True, 0)
            await Waiting(platform).begin("o1")
            again = Browser(feed)
            await asyncio.sleep(0.01)
            assert len(again.picture.waits) == 1

    play(story)
