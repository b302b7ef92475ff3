"""Small standing waits on a gate in virtual time, and what `agentgate waits` shows of them."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Awaitable, Callable
from io import StringIO
from typing import Final

from rich.console import Console

from agentgate.app import Platform
from agentgate.cli.wait_trees import shown_picture
from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.policy import Mode
from agentgate.model import Skill
from agentgate.server.wait_pictures import WaitPictures
from agentgate.testing.loop import run_virtual
from tests.sim.wire_peer import WirePeer, gate

WIDTH: Final = 120
SKILLS: Final = (Skill(task_type="draft"), Skill(task_type="improve"), Skill(task_type="print"))


class Desk:
    """Three agents with one thread each, and who asks them."""

    def __init__(self, platform: Platform) -> None:
        self.writer, self.editor, self.printer = (
            WirePeer(platform, name, skills=SKILLS, concurrency=1).connect()
            for name in ("writer_agent", "editor_agent", "printer_agent")
        )
        self.shop = WirePeer(platform, "shop").connect()


async def _ask(asker: WirePeer, target: str, task_type: str, key: str, token: str = "") -> None:
    _ = asker.call(target, task_type, key, token=token, timeout_ms=60_000)
    await sleep(0.5)


async def _three(desk: Desk) -> str:
    """A page on its way through all three; returns the token of the last unit."""
    await _ask(desk.shop, "writer_agent", "draft", "page_1")
    drafts = await desk.writer.next()
    await _ask(desk.writer, "editor_agent", "improve", "page_1", drafts.params.token)
    improves = await desk.editor.next()
    await _ask(desk.editor, "printer_agent", "print", "page_1", improves.params.token)
    prints = await desk.printer.next()
    return prints.params.token


async def _slow(desk: Desk) -> None:
    await _three(desk)
    await _ask(desk.shop, "writer_agent", "draft", "page_2")
    await sleep(4)


async def _circle(desk: Desk) -> None:
    await _ask(desk.printer, "writer_agent", "draft", "cover_1", await _three(desk))
    await _ask(desk.shop, "editor_agent", "improve", "page_2")


STORIES: Final[dict[str, tuple[Mode, Callable[[Desk], Awaitable[None]]]]] = {
    "slow": ("enforce", _slow),
    "circle": ("observe", _circle),
}


def picture_of(names: list[str]) -> str:
    """What is shown at the end of a story, as text."""
    mode, story = STORIES[names[0]]

    async def told() -> str:
        out = StringIO()
        async with gate(settings=Settings(mechanisms={**default_modes(), "wait_graph": mode})) as platform:
            await story(Desk(platform))
            picture = await WaitPictures(platform.gateway, platform.clock).take("default")
            Console(file=out, width=WIDTH, no_color=True, highlight=False).print(shown_picture(picture))
        return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())

    return f"```text\n{run_virtual(told)}```\n"
