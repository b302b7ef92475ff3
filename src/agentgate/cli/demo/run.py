"""One run, from the first process to the last: start everybody, send orders, cause trouble, count what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import agentgate
from agentgate import Gate
from agentgate.adapters.clock import SystemClock
from agentgate.cli.demo.clients import send_orders
from agentgate.cli.demo.crew import CrewProblem, Member, free_port, ready, started
from agentgate.cli.demo.faults import cause_trouble
from agentgate.cli.demo.gauges import Gauges
from agentgate.cli.demo.judge import judge, read_effects
from agentgate.cli.demo.plan import Plan, make_plan, read_orders
from agentgate.cli.demo.result import Result
from agentgate.cli.demo.story import Story
from agentgate.core.deadlocks import How

AGENTS: Final = ("intent", "order", "stock", "review", "notify", "marketing", "chit_chat", "sentiment")
EFFECTS: Final = "effects.sqlite"
TROUBLE: Final = "trouble"
WATCH_EVERY_S: Final = 0.5
CLOCK: Final = SystemClock()
CIRCLES: Final[dict[How, str]] = {
    "refused": "the first circle of waits is refused where it would close",
    "confirmed": "the first circle of waits is found, and one in it gives way",
    "observed_closing": "the first circle of waits closes, and nobody opens it",
    "observed_standing": "the first circle of waits is found, and nobody opens it",
}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the user asked for."""

    orders: int
    faults: bool
    seed: int


@dataclass(frozen=True, kw_only=True)
class Crew:
    """Who is there: where the gate is, how to look at it, and the processes."""

    url: str
    gauges: Gauges
    members: tuple[Member, ...]


def new_story(wish: Wish) -> Story:
    """An empty story of this run."""
    return Story(orders=wish.orders, clock=CLOCK.now)


async def run_demo(wish: Wish, story: Story, folder: Path) -> Result:
    """Run it in this folder, which is left with the logs and the effects; raises `CrewProblem` when it cannot."""
    example = find_example()
    plan = make_plan(read_orders(example / "orders.csv", wish.orders), seed=wish.seed, faults=wish.faults)
    async with _crew(wish, story, folder, example) as crew:
        await _work(plan, story, folder, crew)
        counts = await crew.gauges.counts()
        wait_graph = await crew.gauges.wait_graph()
        story.tell("every order has its answer; stopping")
    return Result(
        verdict=judge(story.endings.values(), wish.orders, read_effects(folder / EFFECTS)),
        counts=counts,
        seconds=story.seconds,
        seed=wish.seed,
        faults=wish.faults,
        wait_graph=wait_graph,
    )


async def _work(plan: Plan, story: Story, folder: Path, crew: Crew) -> None:
    """Send all orders while things go wrong; what only watches ends with the last answer."""
    try:
        await _send_and_watch(plan, story, folder, crew)
    except BaseExceptionGroup as group:
        ended, _ = group.split(CrewProblem)
        if ended is None:
            raise
        raise ended.exceptions[0] from None


async def _send_and_watch(plan: Plan, story: Story, folder: Path, crew: Crew) -> None:
    async with Gate(crew.url, name="shop") as gate, asyncio.TaskGroup() as everything:
        beside = [everything.create_task(member.ended()) for member in crew.members]
        beside.append(everything.create_task(_watch(crew.gauges, story)))
        beside.append(everything.create_task(cause_trouble(plan, folder / TROUBLE, crew.gauges, story)))
        await send_orders(gate, plan, story.end)
        for task in beside:
            task.cancel()


def find_example() -> Path:
    """The folder with the agents: inside the installed package, or beside it in a checkout."""
    installed = Path(str(resources.files(agentgate))) / "examples" / "support"
    checkout = Path(agentgate.__file__).parents[2] / "examples" / "support"
    for folder in (installed, checkout):
        if (folder / "orders.csv").is_file():
            return folder
    raise CrewProblem(f"the example is neither in {installed} nor in {checkout}; install agentgate again")


@contextlib.asynccontextmanager
async def _crew(wish: Wish, story: Story, folder: Path, example: Path) -> AsyncIterator[Crew]:
    """The gate and the agents, all there; leaving stops the agents first."""
    port = free_port()
    gauges = Gauges(port)
    (folder / TROUBLE).mkdir()
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "AGENTGATE_URL": url,
        "SUPPORT_EFFECTS": str(folder / EFFECTS),
        "SUPPORT_TROUBLE": str(folder / TROUBLE),
        "SUPPORT_FAULTS": "on" if wish.faults else "off",
        "SUPPORT_SEED": str(wish.seed),
    }
    story.tell("starting a gate and eight agents")
    serve = ["serve", "--port", str(port), "--store", f"sqlite:{folder / 'gate.sqlite'}"]
    run = ["run", *(str(example / f"{name}.py") for name in AGENTS)]
    async with (
        started("gate", serve, folder, environment) as gate,
        started("agents", run, folder, environment) as agents,
    ):
        await ready([gate, agents], gauges, len(AGENTS))
        story.tell(f"everybody is there; the gate is at {url}")
        yield Crew(url=url, gauges=gauges, members=(gate, agents))


async def _watch(gauges: Gauges, story: Story) -> None:
    """Keep the picture of the gate fresh, and tell of the first circle; a missed look does no harm."""
    is_told = False
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            story.counts = await gauges.counts()
            if story.counts.deadlocks_found and not is_told and (circle := first_circle(await gauges.findings())):
                story.tell(circle)
                is_told = True
            story.breakers = await gauges.breakers()
            story.instances = await gauges.instances()
        await asyncio.sleep(WATCH_EVERY_S)


def first_circle(findings: list[dict[str, Any]]) -> str:
    """What the gate did about the circle of waits that it noticed first; empty: it has noticed none."""
    circles = [finding for finding in findings if finding["kind"] == "deadlock"]
    if not circles:
        return ""
    first = min(circles, key=lambda finding: finding["first_seen"])
    return f"{CIRCLES[first['evidence']['how']]}: {first['subject']}"
