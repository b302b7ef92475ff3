"""The whole platform in one virtual loop, from one seed (DESIGN 11).

`app.build` puts the platform together as it always does; only its ports are simulated. Around it live scripted agents
and clients with real SDK links, and supervisors that start what was killed. A run has three phases: load, load with
the faults that the seed draws, and quiet, in which everything must come to rest within a bound and answer again.

    world = World(seed=7)
    run_virtual(world.run)      # raises `Broken`, whose text has the seed, the invariant and the last lines of the log

The same seed takes the same path. There are no threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from agentgate.adapters.memory import MemorySpanStore, MemoryStore
from agentgate.adapters.sqlite import SqliteStore
from agentgate.app import Platform, Ports, build
from agentgate.config import Settings
from agentgate.ports.store import Store
from agentgate.runtime.runner import InlineRunner
from agentgate.testing.cast import TIGHT, Role, draw_cast, draw_settings
from agentgate.testing.clients import Book, ScriptedClient
from agentgate.testing.connection import CALM, AgentEnd, Direction, Network
from agentgate.testing.faults import FaultMix, StoreMood, draw_mix
from agentgate.testing.faulty_store import FaultySpanStore, FaultyStore, StoreWeather
from agentgate.testing.invariants import CHECKERS, OneSpan
from agentgate.testing.losses import Losses
from agentgate.testing.plan import TASKS
from agentgate.testing.ports import SeededChance, VirtualClock
from agentgate.testing.processes import AgentProcess, GateProcess, Surroundings
from agentgate.testing.tangles import Tangler
from agentgate.testing.tap import Tap
from agentgate.testing.witness import LINES_SHOWN, Broken, Witness

StoreKind = Literal["memory", "sqlite"]
Build = Callable[[Settings, Ports], Platform]

# Far above the longest deadline: also in quiet a handler may fail now and then, and a breaker whose trial met that is
# open for another minute.
QUIET_S_MAX: Final = 900.0
LOOK_S: Final = 0.5  # how often the quiet phase looks whether all is at rest


@dataclass(frozen=True, kw_only=True, slots=True)
class Length:
    """How long the phases last, and how much the clients call: the mean pause between two calls of one."""

    load_s: float = 6.0
    faults_s: float = 24.0
    pause_s: float = 0.25


class World:
    """One run. `build` puts the platform together; a test of the world itself hands in a broken one."""

    def __init__(  # noqa: PLR0913 - what a test may set, by name
        self,
        seed: int,
        store: StoreKind = "memory",
        *,
        directory: Path | None = None,
        mix: FaultMix | None = None,
        length: Length | None = None,
        settings: Settings | None = None,
        cast: Mapping[str, Role] | None = None,
        build: Build = build,
    ) -> None:
        self.seed = seed
        self.store_kind = store
        self.length = length or Length()
        draws = self._draws = random.Random(seed)
        self.mix = mix or draw_mix(draws)
        self.settings = settings or draw_settings(draws)
        self.cast = cast or draw_cast(draws)
        self._build = build
        self._faulty = False  # whether the phase of faults is on
        self._calm = True  # whether it has not begun
        self._chance = SeededChance(random.Random(draws.random()))
        self._store_weather = StoreWeather(random.Random(draws.random()))
        self._store: Store = self._make_store(directory)
        self._spans = MemorySpanStore()
        self.totals: Counter[str] = Counter()  # what the gate has counted, over all its lives
        self.agents: list[AgentProcess] = []
        self.clients: list[ScriptedClient] = []

    def _make_store(self, directory: Path | None) -> Store:
        if self.store_kind == "memory":
            return MemoryStore(self.settings.ledger)
        assert directory is not None, "a store on disk needs a directory"
        return SqliteStore(directory / f"world-{self.seed}.sqlite", InlineRunner(), self.settings.ledger)

    async def run(self) -> None:
        """All three phases; raises `Broken` as soon as an invariant does not hold."""
        loop = asyncio.get_running_loop()
        self._clock = VirtualClock(loop.time)
        self.witness = Witness(loop.time)
        self.tap = Tap(loop.time)
        self.heard_at: dict[str, float] = {}  # when a frame of this process last came to a gate
        loop.set_exception_handler(self._on_loose_end)
        self._raise_the_curtain()
        try:
            async with asyncio.TaskGroup() as group:
                play = group.create_task(self._play(group), name="play")
                self.witness.stop = play.cancel
        except* Broken:
            pass
        if self.witness.broken is not None:
            raise Broken(self.witness.broken.invariant, self._report(self.witness.broken))

    @property
    def platform(self) -> Platform | None:
        """The platform of the gate that runs now."""
        return self._gate.platform

    def trace(self) -> list[str]:
        """The log of the run, one line for each transition."""
        return self.witness.lines()

    def is_alive(self, instance: str) -> bool:
        """Whether this process runs, and no gate has given it up."""
        here = any(agent.life is not None and agent.life.instance == instance for agent in self.agents)
        return here and instance not in self.losses.lost

    def has_lost(self, agent: str, since: float) -> bool:
        """Whether a gate has given up an instance of this agent since then."""
        return self.losses.since(agent, since)

    @property
    def one_way_s(self) -> float:
        """How long a frame may be under way; what the phase of faults has delayed is soon there after it."""
        weather = CALM if self._calm else self.mix.weather
        return weather.latency_s[1] + (weather.slow_s if weather.slow_share else 0.0)

    @property
    def slack_s(self) -> float:
        """How much later than the agents the gate may know of a wait, and they of its word."""
        rate, mood = self.settings.rate, StoreMood() if self._calm else self.mix.store
        return 2 * (self.one_way_s + (mood.slow_s if mood.slow_share else 0.0)) + rate.parked_max / rate.rate_per_s

    def _raise_the_curtain(self) -> None:
        draws = self._draws
        self._network = Network(random.Random(draws.random()), watch=self._watch)
        self._gate = GateProcess(
            self._make_platform,
            network=self._network,
            witness=self.witness,
            draws=random.Random(draws.random()),
            on_start=self._on_gate_start,
        )
        targets = tuple(self.cast)
        around = Surroundings(
            network=self._network,
            witness=self.witness,
            draws=random.Random(draws.random()),
            targets=targets,
            fault_share=lambda: self.mix.handler_fault_share if self._faulty else 0.0,
        )
        self.agents = [
            AgentProcess(name, number, role, around)
            for name, role in self.cast.items()
            for number in range(role.instances)
        ]
        book = Book(random.Random(draws.random()), targets)
        self.clients = [
            ScriptedClient(
                name,
                f"client-{number}",
                connect=self._dialler(name),
                draws=random.Random(draws.random()),
                witness=self.witness,
                book=book,
            )
            for number, name in enumerate(("shop", "shop", "desk"))
        ]
        self.checkers = [kind(self) for kind in CHECKERS]
        self.losses = Losses(self)

    def _dialler(self, name: str) -> Callable[[], Any]:
        async def dial() -> AgentEnd:
            return await self._network.dial(name)

        return dial

    def _make_platform(self) -> tuple[Platform, Callable[[], None]]:
        store = FaultyStore(self._store, self._store_weather)
        spans = FaultySpanStore(self._spans, self._store_weather)

        def cut_off() -> None:
            store.die()
            spans.die()
            self._gate_ended(killed=True)

        ports = Ports(clock=self._clock, chance=self._chance, store=store, spans=spans)
        return self._build(self.settings, ports), cut_off

    def _on_gate_start(self) -> None:
        self.tap = Tap(self.witness.now)
        if self.platform is not None:
            self.losses = Losses(self, self.losses)
            self.platform.directory.listen(self.losses)
        for checker in self.checkers:
            checker.gate_started()

    def _gate_ended(self, *, killed: bool) -> None:
        if self.platform is not None:
            gateway = self.platform.gateway
            counts = {name: count for name, count in vars(gateway.counters).items() if isinstance(count, int)}
            knots = gateway.waits.deadlocks
            found = {f"knots_{how}": count for how, count in knots.by_how.items()}
            self.totals.update({**counts, **found, "openings": gateway.policies.breakers.opened_total, "lives": 1})
        for checker in self.checkers:
            checker.gate_ended(killed=killed)

    def _watch(self, direction: Direction, end: AgentEnd, data: bytes) -> None:
        self.tap.watch(direction, end, data)
        if direction == "up":
            self.heard_at[end.process] = self.witness.now()
        if self.platform is not None:
            for checker in self.checkers:
                checker.after_event()

    def _on_loose_end(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.witness.fail(0, f"{context.get('message')}: {context.get('exception')!r}")

    # The phases.

    async def _play(self, group: asyncio.TaskGroup) -> None:
        try:
            await self._three_acts(group)
        except asyncio.CancelledError:
            if self.witness.broken is None:
                raise
            raise self.witness.broken from None

    async def _three_acts(self, group: asyncio.TaskGroup) -> None:
        gate = group.create_task(self._gate.run(), name="gate")
        await self._gate.up.wait()
        agents = [group.create_task(agent.run(), name=agent.name) for agent in self.agents]
        clients = [group.create_task(client.run(self.length.pause_s), name=client.name) for client in self.clients]
        self._say("load")
        tangler = self._tangler(group)
        tangles = [group.create_task(tangler.run())] if tangler is not None else []
        await asyncio.sleep(self.length.load_s)
        await self._go_through_faults(group)
        await _end(tangles)
        await self._come_to_rest()
        for checker in self.checkers:
            checker.at_end()
        await _end([*agents, *clients])
        self._gate_ended(killed=False)
        await _end([gate])
        for checker in self.checkers:
            if isinstance(checker, OneSpan):
                checker.after_stop(self._spans.spans)
        self.witness.log("world", "ended")

    async def _go_through_faults(self, group: asyncio.TaskGroup) -> None:
        self._say(f"faults: {self.mix.describe()}")
        self._faulty, self._calm = True, False
        self._network.weather = self.mix.weather
        self._store_weather.mood = self.mix.store
        chaos = [
            group.create_task(self._at_random(self.mix.agent_killed_every_s, self._kill_agent)),
            group.create_task(self._at_random(self.mix.agent_paused_every_s, self._pause_agent)),
            group.create_task(self._at_random(self.mix.gate_killed_every_s, self._kill_gate)),
        ]
        await asyncio.sleep(self.length.faults_s)
        await _end(chaos)
        self._faulty = False
        self._network.weather = CALM
        self._store_weather.mood = StoreMood()

    def _tangler(self, group: asyncio.TaskGroup) -> Tangler | None:
        """Who closes circles of waits on purpose, in a world whose agents are narrow enough."""
        if self.cast is not TIGHT:
            return None
        draws = random.Random(self._draws.random())
        return Tangler(
            self.clients[0], self.cast, self.agents, witness=self.witness, draws=draws, spawn=group.create_task
        )

    async def _at_random(self, every_s: float, event: Callable[[random.Random], Any]) -> None:
        draws = random.Random(self._draws.random())
        while every_s:
            await asyncio.sleep(draws.expovariate(1 / every_s))
            await event(draws)

    async def _kill_agent(self, draws: random.Random) -> None:
        draws.choice(self.agents).kill()

    async def _pause_agent(self, draws: random.Random) -> None:
        await draws.choice(self.agents).pause(self.mix.pause_s)

    async def _kill_gate(self, _: random.Random) -> None:
        self._gate.kill()

    async def _come_to_rest(self) -> None:
        """No new orders; then everything ends, every agent is back, and every agent answers."""
        self._say("quiet")
        until = self.witness.now() + QUIET_S_MAX
        for client in self.clients:
            client.finish_calls()
        await self._within(until, "all calls are answered", lambda: not self.witness.waiting)
        await self._within(until, "every handler has ended", lambda: not self.witness.live_runs)
        await self._within(until, "every agent is connected", self._all_connected)
        for name in self.cast:
            await self._probe(name, until)
        await self._within(until, "every handler that a probe set off has ended", lambda: not self.witness.live_runs)
        await self._within(until, "every answer is acknowledged", self._all_acknowledged)
        await asyncio.sleep(LOOK_S)  # for what is still on the wire: nobody acknowledges the answer to a read

    async def _within(self, until: float, what: str, holds: Callable[[], bool]) -> None:
        while not holds():
            if self.witness.now() > until:
                self.witness.fail(7, f"after {QUIET_S_MAX:g} s of quiet it does not hold that {what}")
            await asyncio.sleep(LOOK_S)

    def _all_connected(self) -> bool:
        platform = self.platform
        if platform is None:
            return False
        here = {name for route in platform.directory.snapshot().routes for name in route.instances}
        return all(agent.life is not None and agent.life.instance in here for agent in self.agents)

    def _all_acknowledged(self) -> bool:
        return all(agent.in_hand == (0, 0) for agent in self.agents)

    async def _probe(self, name: str, until: float) -> None:
        """Every agent answers every kind of work again: its breakers close, its slots are free."""
        client, tries = self.clients[0], 0
        for task in TASKS:
            while True:
                tries += 1
                asked = await client.probe(name, task.name, f"probe-{name}-{tries}", 5.0)
                if asked.error is None:
                    break
                if self.witness.now() > until:
                    self.witness.fail(7, f"{name} does not answer `{task.name}` again: {asked.error}")
                await asyncio.sleep(1.0)

    def _say(self, phase: str) -> None:
        self.witness.log("world", f"-- {phase}")

    def _report(self, broken: Broken) -> str:
        lines = "\n".join(self.witness.lines(LINES_SHOWN))
        return (
            f"{lines}\n{broken.text}\n"
            f"seed {self.seed}, store {self.store_kind}; faults: {self.mix.describe()}\n"
            f"again: python -m agentgate.testing.sim --seed {self.seed} --store {self.store_kind} --verbose"
        )


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their ends."""
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
