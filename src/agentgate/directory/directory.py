"""The directory: agents, their instances, and the routes to them.

Everything here is synchronous and happens in the gate's one event loop: state is changed first, then the snapshot's
version, then listeners are told, so a listener that asks back sees the new state. Two things run beside: one timer at
the next moment at which an instance could fall silent or be lost, and the saver of the snapshot.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, Literal

from msgspec.structs import replace

from agentgate.core.presence import Event, Presence, PresenceOptions, State
from agentgate.core.ranges import require
from agentgate.directory.agents import Agent, Instance
from agentgate.directory.alarms import Alarms
from agentgate.directory.cards import CardOptions, check_card, check_instance, differences
from agentgate.directory.listing import AgentInfo
from agentgate.directory.saver import Load, Save, Saver
from agentgate.model import (
    SKILL_PREFIX,
    AgentQuota,
    AgentSettings,
    Card,
    Endpoint,
    Route,
    RouteSnapshot,
    plain,
    qualified,
)
from agentgate.ports.clock import Clock
from agentgate.ports.routes import RouteListener
from agentgate.runtime.reporter import Reporter
from agentgate.runtime.service import Service

# Versions of one life of the gate begin at a multiple of this. How far the last life counted after its last save is
# not known; it would have had to change its routes a million times between two saves to reach into the next block.
VERSION_BLOCK: Final = 1 << 20

SAVE_DELAY_S_MAX: Final = 60.0  # a minute of lost registrations is the most that anybody could want

Told = Literal["nothing", "joined", "away", "draining", "lost"]

# What listeners are told of an instance in this state; between two states that are told alike, nothing is said.
TOLD: Final[dict[State, Told]] = {
    "expected": "nothing",
    "connected": "joined",
    "away": "away",
    "leaving": "away",
    "draining": "draining",
    "lost": "lost",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectoryOptions:
    """Bounds of the directory.

    - `agents_max`, 10 000: ten times the largest team this is built for.
    - `instances_max`, 1 000 per agent: with more, the file descriptors of one gate are the limit.
    - `save_delay_s`, 0.2: a wave of hellos is one write, and whom a crash forgets says hello again. Registrations by
      HTTP are stored before they are answered, whatever this is.
    """

    agents_max: int = 10_000
    instances_max: int = 1_000
    save_delay_s: float = 0.2

    def __post_init__(self) -> None:
        require(self, "agents_max", "instances_max", low=1)
        require(self, "save_delay_s", high=SAVE_DELAY_S_MAX)


class Directory(Service):
    """Implements `ports.routes.Routes`. Works without being entered too; then nothing is saved and no timer runs."""

    def __init__(
        self,
        clock: Clock,
        options: DirectoryOptions | None = None,
        *,
        presence: PresenceOptions | None = None,
        cards: CardOptions | None = None,
        save: Save | None = None,
        load: Load | None = None,
        findings: Reporter | None = None,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._options = options or DirectoryOptions()
        self._presence = presence or PresenceOptions()
        self._cards = cards or CardOptions()
        self._load = load
        self._reporter = findings or Reporter(clock)
        self._saver = Saver(self.snapshot, save, self._options.save_delay_s) if save is not None else None
        self._agents: dict[tuple[str, str], Agent] = {}
        self._instances: dict[str, Instance] = {}
        self._skills: dict[tuple[str, str], set[str]] = {}  # (tenant, task type) -> names of agents that declare it
        self.quotas: dict[tuple[str, str], AgentQuota] = {}
        self.off: set[tuple[str, str]] = set()
        self._version = 0
        # Of this version, once somebody asked: of everybody (None), and of single tenants.
        self._snapshots: dict[str | None, RouteSnapshot] = {}
        self._parts = AsyncExitStack()
        self._listeners: list[RouteListener] = []
        self._alarms = Alarms[Instance](self.tick)
        self.findings: Counter[str] = Counter()  # by kind: tier, skill

    # --- life

    async def _start(self) -> None:
        if self._load is not None:
            self.restore(await self._load())
        if self._saver is not None:
            await self._parts.enter_async_context(self._saver)
        self._alarms.start(asyncio.get_running_loop())

    async def _stop(self) -> None:
        self._alarms.stop()
        await self._parts.aclose()

    def restore(self, snapshot: RouteSnapshot) -> None:
        """Expect everybody who was there before this gate's start; versions go on above the snapshot's."""
        now = self._clock.now()
        for route in snapshot.routes[: self._options.agents_max]:
            agent = self._agents.setdefault((route.tenant, route.agent), Agent(route.tenant, route.agent))
            for name in route.instances[: self._options.instances_max]:
                if name not in self._instances:
                    presence = Presence(self._presence, now, expected=True)
                    self._add(Instance(name, agent, route.card, presence, route.endpoints.get(name)))
            agent.settings = route.settings
            self._note_settings(agent)
            self._reindex(agent)
            self._forget_if_gone(agent)
        self._version = (snapshot.version // VERSION_BLOCK + 1) * VERSION_BLOCK
        self._changed()

    # --- ports.routes.Routes

    def resolve(self, tenant: str, target: str) -> Route | None:
        """The agent for a target as named; of several that declare a skill, the first by name that takes calls."""
        if target.startswith(SKILL_PREFIX):
            names = self._skills.get((tenant, target.removeprefix(SKILL_PREFIX)), ())
            agents = [self._agents[tenant, name] for name in sorted(names)]
            return min(agents, key=lambda agent: agent.rank).route if agents else None
        found = self._agents.get((tenant, target))
        return found.route if found is not None else None

    def snapshot(self, tenant: str | None = None) -> RouteSnapshot:
        """All routes with their version, or one tenant's, with instances by their plain names and no endpoints."""
        known = self._snapshots.get(tenant)
        if known is None:
            routes = tuple(agent.route for agent in self._of(tenant))
            if tenant is not None:
                routes = tuple(
                    replace(route, instances=tuple(map(plain, route.instances)), endpoints={}) for route in routes
                )
            known = self._snapshots[tenant] = RouteSnapshot(version=self._version, routes=routes)
        return known

    def configure(self, tenant: str, agent: str, settings: AgentSettings) -> Route | None:
        """Set what operators want of an agent; None when there is none of this name."""
        known = self._agents.get((tenant, agent))
        if known is None:
            return None
        known.set(settings)
        self._note_settings(known)
        self._forget_if_gone(known)
        self._changed()
        return known.route

    def hello(self, tenant: str, card: Card, instance: str, endpoint: Endpoint | None = None) -> None:
        """An instance connected; raises `ValueError` with a sentence when its card cannot be accepted."""
        prefix = qualified(tenant, "")
        assert instance.startswith(prefix), "who lets an instance in qualifies its name"
        check_instance(instance.removeprefix(prefix), self._cards)
        check_card(card, self._cards, by_http=endpoint is not None)
        known = self._instances.get(instance)
        if known is None:
            known = self._register(tenant, card, instance, endpoint)
        elif (known.agent.tenant, known.agent.name) != (tenant, card.agent):
            raise ValueError(f"the instance {plain(instance)!r} belongs to the agent {known.agent.name!r} already")
        elif (known.endpoint is None) != (endpoint is None):
            kind = "on a link" if endpoint else "registered by HTTP"
            raise ValueError(f"the instance {plain(instance)!r} is {kind} already")
        else:
            known.presence.hear("hello", self._clock.now())
            known.endpoint = endpoint
        self._note_differences(known, card)
        known.card = known.agent.same_card(card)
        self._reindex(known.agent)
        self._changed()
        self._schedule(known)
        self._tell(known)

    def knows(self, instance: str) -> bool:
        """Whether it is there, or may come back."""
        return instance in self._instances

    def seen(self, instance: str) -> None:
        """Any frame came from it."""
        known = self._instances.get(instance)
        if known is not None and not known.presence.heard(self._clock.now()):
            self._hear(instance, "beat")

    def closed(self, instance: str) -> None:
        """Its connection ended without a good-bye."""
        self._hear(instance, "closed")

    def drain(self, instance: str) -> None:
        """It takes nothing new from now on."""
        self._hear(instance, "drain")

    def gone(self, instance: str) -> None:
        """It left in good order: nothing is in its hands."""
        self._hear(instance, "gone")

    async def save_now(self) -> None:
        """Return when the routes are stored as they are now; raises `StoreError`."""
        if self._saver is not None:
            await self._saver.save_now()

    def listen(self, listener: RouteListener) -> None:
        """Tell this listener of every change from now on."""
        self._listeners.append(listener)

    # --- for people and programs

    def agents(self, tenant: str | None = None) -> list[AgentInfo]:
        """Every agent with its instances, by tenant and name; or those of one tenant."""
        now = self._clock.now()
        return [agent.info(now) for agent in self._of(tenant)]

    def states(self) -> Counter[State]:
        """How many instances are in each state."""
        return Counter(instance.presence.state for instance in self._instances.values())

    # --- time

    def tick(self) -> None:
        """Let time pass: whoever was silent for too long is away, whoever was away for too long is lost."""
        now = self._clock.now()
        for instance in self._alarms.due(now):
            before = instance.presence.state
            if instance.presence.tick(now):
                self._settle(instance, before)
            else:
                self._schedule(instance)

    def next_deadline(self) -> float | None:
        """When `tick` has to be called next."""
        return self._alarms.next_deadline()

    # --- changes

    def _of(self, tenant: str | None) -> list[Agent]:
        return [self._agents[key] for key in sorted(self._agents) if tenant is None or key[0] == tenant]

    def _register(self, tenant: str, card: Card, name: str, endpoint: Endpoint | None) -> Instance:
        agent = self._agents.get((tenant, card.agent))
        if agent is None:
            if len(self._agents) >= self._options.agents_max:
                raise ValueError(f"the directory is full: it holds {self._options.agents_max} agents")
            agent = self._agents[tenant, card.agent] = Agent(tenant, card.agent)
        elif len(agent.instances) >= self._options.instances_max:
            raise ValueError(f"{card.agent!r} has {self._options.instances_max} instances already, no more are taken")
        return self._add(Instance(name, agent, card, Presence(self._presence, self._clock.now()), endpoint))

    def _add(self, instance: Instance) -> Instance:
        self._instances[instance.name] = instance
        instance.agent.instances[instance.name] = instance
        self._schedule(instance)
        return instance

    def _hear(self, name: str, event: Event) -> None:
        """An event of an instance; a frame that comes after it was lost finds nobody, and means nothing."""
        instance = self._instances.get(name)
        if instance is None:
            return
        before = instance.presence.state
        instance.presence.hear(event, self._clock.now())
        self._settle(instance, before)

    def _settle(self, instance: Instance, before: State) -> None:
        """Act on a state that an event or the time has changed."""
        after = instance.presence.state
        if after == "lost":
            self._remove(instance)
        else:
            self._schedule(instance)
        if TOLD[after] != TOLD[before]:
            self._tell(instance)

    def _remove(self, instance: Instance) -> None:
        agent = instance.agent
        self._alarms.clear(instance)
        del self._instances[instance.name]
        del agent.instances[instance.name]
        self._reindex(agent)
        self._forget_if_gone(agent)
        self._changed()

    def _forget_if_gone(self, agent: Agent) -> None:
        if not agent.is_worth_keeping:
            del self._agents[agent.tenant, agent.name]

    def _reindex(self, agent: Agent) -> None:
        """Bring the route and the table of skills up to date with the agent's instances."""
        declared = {skill.task_type for skill in agent.route.card.skills}
        agent.update()
        declares = {skill.task_type for skill in agent.route.card.skills}
        for task_type in declares - declared:
            self._skills.setdefault((agent.tenant, task_type), set()).add(agent.name)
        for task_type in declared - declares:
            names = self._skills[agent.tenant, task_type]
            names.discard(agent.name)
            if not names:
                del self._skills[agent.tenant, task_type]

    def _changed(self) -> None:
        self._version += 1
        self._snapshots.clear()
        if self._saver is not None:
            self._saver.changed()

    def _note_settings(self, agent: Agent) -> None:
        """What is asked on every call is looked up here, not in the routes."""
        known_as = agent.tenant, agent.name
        if agent.settings.quota is not None:
            self.quotas[known_as] = agent.settings.quota
        else:
            self.quotas.pop(known_as, None)
        if agent.settings.off is not None:
            self.off.add(known_as)
        else:
            self.off.discard(known_as)

    def _schedule(self, instance: Instance) -> None:
        deadline = instance.presence.next_deadline()
        if deadline is not None:
            self._alarms.set(instance, deadline)

    def _note_differences(self, instance: Instance, card: Card) -> None:
        """Compare a card with what the agent's other instances have said."""
        if not instance.agent.has_heard_others(instance):
            return
        for what in differences(card, instance.agent.route.card):
            self.findings[what.partition(":")[0]] += 1
            name = plain(instance.name)
            self._reporter.report("cards_differ", card.agent, tenant=instance.agent.tenant, instance=name, what=what)

    def _tell(self, instance: Instance) -> None:
        """Tell everybody where the instance stands now."""
        agent, name = instance.agent.qualified, instance.name
        for listener in self._listeners:
            match TOLD[instance.presence.state]:
                case "joined":
                    listener.instance_joined(agent, name, instance.card)
                case "away":
                    listener.instance_away(agent, name)
                case "draining":
                    listener.instance_draining(agent, name)
                case "lost":
                    listener.instance_lost(agent, name)
                case "nothing":  # an instance is expected before anybody listens
                    pass
