"""What the directory remembers of an agent and of its running processes."""

from __future__ import annotations

from agentgate.core.presence import Presence
from agentgate.directory.cards import union
from agentgate.directory.listing import AgentInfo, InstanceInfo
from agentgate.model import AS_DECLARED, AgentSettings, Card, Endpoint, Route, plain, qualified


class Instance:
    """One running process."""

    __slots__ = ("agent", "card", "endpoint", "name", "presence")

    def __init__(
        self, name: str, agent: Agent, card: Card, presence: Presence, endpoint: Endpoint | None = None
    ) -> None:
        self.name = name
        self.agent = agent
        self.card = card
        self.presence = presence
        self.endpoint = endpoint  # None: it is on a link

    def info(self, now: float) -> InstanceInfo:
        """Its row in the listing."""
        return InstanceInfo(
            instance=plain(self.name),
            state=self.presence.state,
            state_s=round(now - self.presence.since, 3),
            silent_s=round(now - self.presence.heard_at, 3),
            concurrency=self.card.concurrency,
            version=self.card.version,
            kind="link" if self.endpoint is None else "http",
            endpoint="" if self.endpoint is None else self.endpoint.url,
        )


class Agent:
    """All instances of one name, in the order in which they came; the route is theirs together."""

    __slots__ = ("instances", "name", "qualified", "route", "settings", "tenant")

    def __init__(self, tenant: str, name: str) -> None:
        self.tenant = tenant
        self.name = name
        self.qualified = qualified(tenant, name)
        self.instances: dict[str, Instance] = {}
        self.settings = AS_DECLARED
        self.route = Route(card=Card(agent=name), tenant=tenant)

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it is there, or somebody has set something for it that has to hold when it comes back."""
        return bool(self.instances) or self.settings != AS_DECLARED

    def set(self, settings: AgentSettings) -> None:
        """Take over what operators want."""
        self.settings = settings
        self.update()

    def update(self) -> None:
        """Make the route anew; what an instance says now counts before what is remembered of another."""
        if not self.instances:
            self.route = Route(card=Card(agent=self.name), tenant=self.tenant, settings=self.settings)
            return
        instances = sorted(self.instances.values(), key=lambda instance: instance.presence.state == "expected")
        distinct = {id(instance.card): instance.card for instance in instances}
        self.route = Route(
            card=union(list(distinct.values())),
            instances=tuple(sorted(self.instances)),
            tenant=self.tenant,
            settings=self.settings,
            endpoints={item.name: item.endpoint for item in instances if item.endpoint is not None},
        )

    def same_card(self, card: Card) -> Card:
        """The equal card that another instance sent, if any: a thousand instances keep one card, not a thousand."""
        distinct = {id(instance.card): instance.card for instance in self.instances.values()}
        return next((known for known in distinct.values() if known == card), card)

    def has_heard_others(self, instance: Instance) -> bool:
        """Whether another instance has sent its card to this gate, so that cards can be compared."""
        return any(other is not instance and other.presence.state != "expected" for other in self.instances.values())

    @property
    def rank(self) -> int:
        """0: somebody takes calls now; 1: somebody may come back; 2: everybody is leaving; 3: it is switched off."""
        if self.settings.off is not None:
            return 3
        states = {instance.presence.state for instance in self.instances.values()}
        return 0 if "connected" in states else 1 if states & {"away", "expected"} else 2

    def info(self, now: float) -> AgentInfo:
        """Its row in the listing."""
        card = self.route.card
        instances = tuple(self.instances[name].info(now) for name in self.route.instances)
        return AgentInfo(
            agent=self.name,
            tenant=self.tenant,
            tier=card.tier,
            skills=card.skills,
            instances=instances,
            off=self.settings.off,
            quota=self.settings.quota,
        )
