"""A whole gate in this process, for `serve` and `dev`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from agentgate.cli import exits
from agentgate.cli.exits import CommandError
from agentgate.config import Given, Settings, load

if TYPE_CHECKING:
    from agentgate.app import Platform, Ports
    from agentgate.server.service import ServerService

T = TypeVar("T")

# Allocations between two looks at the young objects (a few hundred calls), then how many of these between two looks
# at the older ones.
COLLECTOR_THRESHOLDS: Final = (50_000, 20, 100)

DESCRIPTORS_WANTED: Final = 16_384  # a link is a descriptor, and the usual soft limit of 1024 is for desktops


def read_settings(
    file: Path | None, host: str | None, port: int | None, store: str | None, tokens: str | None = None
) -> Settings:
    """The configuration, with what was said on the command line over it."""
    flags = (
        ("server.host", host, "--host"),
        ("server.port", port, "--port"),
        ("store", store, "--store"),
        ("server.tokens", tokens, "--tokens"),
    )
    given = [Given(name, value, place) for name, value, place in flags if value is not None]
    return load(file, os.environ, given).settings


def store_of(settings: Settings) -> str:
    """The store in words; to be asked before it is opened, which makes what is not there yet.

    A gate that begins anew because a path was misspelt has forgotten every key; so it says that it does.
    """
    path, url = settings.store.path, settings.store.url
    if path is None or path.exists():
        return f"store {url}"
    return f"store {url} (new)" if path.parent.exists() else f"store {url} (new, in the new folder {path.parent})"


def start_logs(level: str) -> None:
    """Logs of this process; raises `CommandError` for a level that does not exist."""
    from agentgate.server.logs import Level, configure_logs

    for known in get_args(Level):
        if level == known:
            configure_logs(known)
            return
    raise CommandError(f"--log-level {level}: can be {', '.join(get_args(Level))}", exits.MISUSED)


def run_gate(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run on the fastest event loop there is."""
    raise_descriptor_limit()
    calm_collector()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main())


@contextlib.asynccontextmanager
async def open_gate(settings: Settings, ports: Ports | None = None) -> AsyncIterator[tuple[Platform, ServerService]]:
    """A platform, in the real outside world if `ports` are none, with its server; leaving it drains and stops both."""
    from agentgate.app import build, system_ports
    from agentgate.server.service import ServerService

    async with (
        build(settings, ports or system_ports(settings)) as platform,
        ServerService(
            settings.server,
            gateway=platform.gateway,
            directory=platform.directory,
            spans=platform.spans,
            clock=platform.clock,
        ) as server,
    ):
        yield platform, server


def calm_collector() -> None:
    """Look for cycles of garbage less often, and not among what was there at the start.

    A call makes hundreds of objects that live for milliseconds and are no cycles. With the interpreter's own thresholds
    the collector took a quarter of the gate's time under load, walking calls that were merely in flight.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def raise_descriptor_limit() -> None:
    """As many open files as this user may have, within reason."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(DESCRIPTORS_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    return uvloop.new_event_loop
