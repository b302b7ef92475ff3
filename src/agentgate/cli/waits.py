"""`agentgate waits`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from agentgate.cli import exits, gate_api
from agentgate.cli.exits import CommandError
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import console, print_json, say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from agentgate.model import WaitPicture

PER_SECOND: Final = 4
WAITS_SHOWN: Final = 100


def waits(
    url: Url = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, as it changes, until Ctrl-C.")] = False,
    limit: Annotated[int, typer.Option(help="At most so many; --watch shows 1000.", min=1, max=1000)] = WAITS_SHOWN,
    as_json: AsJson = False,
) -> None:
    """Who waits for whom now, as a tree; circles on top.

    What waits stands above what it waits for. `--watch` goes on as it changes, until Ctrl-C,
    which is its regular end: exit code 0. In a pipe each picture has its time above it.
    With --json each of its lines is one object: a snapshot, then differences.

    Example: agentgate waits --watch
    """
    if watch:
        with contextlib.suppress(KeyboardInterrupt):
            _watch(url, as_json=as_json)
        return
    found = gate_api.read(url, "v1", "waits", query={"limit": limit})
    if as_json:
        print_json(found)
        return
    from agentgate.cli.wait_trees import NOBODY, OFF, shown_picture
    from agentgate.model import WaitPicture

    picture = msgspec.convert(found, WaitPicture)
    if picture.waits:
        console().print(shown_picture(picture))
    else:
        say(NOBODY if picture.mode != "off" else f"{NOBODY}; {OFF}")


def _watch(url: str | None, *, as_json: bool) -> None:
    """Until the gate ends it, which is an error."""
    events = gate_api.events(url, "v1", "waits", "stream")
    with contextlib.closing(events):
        if as_json:
            for name, data in events:
                print_json({"event": name, **msgspec.json.decode(data)}, in_one_line=True)
        elif console().is_terminal:
            _draw(events)
        else:
            _print(events)
    base = gate_api.base_url(url)
    raise CommandError(f"the gate at {base} ended the stream: it stops, or this reader was too slow", exits.NO_GATE)


class _Live:
    """The picture as of now, between two changes as well."""

    def __init__(self) -> None:
        from agentgate.adapters.clock import SystemClock

        self._now = SystemClock().now
        self._picture: WaitPicture | None = None
        self._came_at = 0.0

    def take(self, name: str, data: bytes) -> None:
        """What the stream says."""
        from agentgate.core.wait_picture import applied
        from agentgate.model import WaitDifference, WaitPicture

        if name == "snapshot":
            self._picture = msgspec.json.decode(data, type=WaitPicture)
        elif name == "difference" and self._picture is not None:
            self._picture = applied(self._picture, msgspec.json.decode(data, type=WaitDifference))
        self._came_at = self._now()

    @property
    def stamp(self) -> str:
        """When the last picture was taken, by the gate's clock."""
        at = 0.0 if self._picture is None else self._picture.at
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")

    def shown(self) -> RenderableType:
        """For people, with times that go on."""
        from agentgate.cli.wait_trees import shown_picture

        if self._picture is None:
            return ""
        return shown_picture(self._picture, at=self._picture.at + self._now() - self._came_at)


def _draw(events: Iterator[tuple[str, bytes]]) -> None:
    """One picture that changes."""
    from rich.live import Live

    live = _Live()
    with Live(console=console(), refresh_per_second=PER_SECOND, get_renderable=live.shown) as screen:
        for event in events:
            live.take(*event)
            screen.refresh()


def _print(events: Iterator[tuple[str, bytes]]) -> None:
    """One picture below the other, each with its time, for whoever reads lines."""
    live = _Live()
    for event in events:
        live.take(*event)
        console().print(f"at {live.stamp}", live.shown(), "", sep="\n")
