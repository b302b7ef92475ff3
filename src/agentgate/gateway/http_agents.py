"""Agents without our SDK, reached by HTTP: who has registered, where they are, and whether they live (DESIGN 4.5).

Nothing connects by itself here, so presence is made: an instance counts as heard while its registration holds and its
probe, if it has one, was answered the last time. From there on the rules are those of the links: silent, away, lost.
A registration that has run out counts as a closed link, but an instance that still works for the gate keeps its units.

An endpoint's name is looked up when it is registered and when that is renewed; the address that was allowed then is
the one that is called, whatever the name means later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import structlog

from agentgate.core.endpoint import AllowList, Site, check_path, preferred, read_endpoint
from agentgate.core.takeovers import Takeovers
from agentgate.gateway.http_request import head_of, probe_request
from agentgate.gateway.registrations import come_again
from agentgate.model import Card, Endpoint, HttpAnswer, HttpEnd, Problem, RouteSnapshot, logged, plain, problem
from agentgate.ports.http import Place

if TYPE_CHECKING:
    from agentgate.gateway.http_options import HttpAgentOptions
    from agentgate.gateway.peers import Peers
    from agentgate.gateway.registrations import Registrations
    from agentgate.gateway.schemas import Schemas
    from agentgate.ports.clock import Clock
    from agentgate.ports.http import Exchange, HttpClient, Upstream
    from agentgate.ports.routes import Routes
    from agentgate.runtime.reporter import Reporter

AGAIN_S: Final = 1.0
TROUBLE_CHARS_MAX: Final = 200
ENDPOINT_CHARS_MAX: Final = 200  # of one that is shown
RENEWALS: Final = 3  # within the time that a registration holds

log = structlog.get_logger(__name__)


class HttpAgent:
    """One registered instance, and the requests that are on their way to it, by unit."""

    def __init__(self, tenant: str, card: Card, instance: str, endpoint: Endpoint) -> None:
        self.tenant = tenant
        self.card = card
        self.instance = instance
        self.endpoint = endpoint
        self.site: Site
        self._heads: dict[str, str] = {}
        self.upstream: Upstream
        self.probing: Upstream
        self.probe = b""
        self.exchanges: dict[str, Exchange] = {}
        self.expires_at = 0.0
        self.probe_at = 0.0
        self.is_probed = False  # a probe is on its way
        self.is_well = True  # the last probe was answered
        self.is_there = False  # the directory knows it
        self.is_leaving = False
        self.answered_at: float | None = None  # what came back last, and what came instead since
        self.trouble = ""

    def note(self, end: HttpEnd, now: float) -> None:
        """What became of a request to it; any answer shows that it is there."""
        if isinstance(end, HttpAnswer):
            self.answered_at, self.trouble = now, ""
        else:
            self.trouble = end.detail[:TROUBLE_CHARS_MAX]

    def head(self, task_type: str) -> str:
        """The beginning of a request; kept for what its own card declares, which is bounded."""
        head = self._heads.get(task_type)
        if head is None:
            head = head_of(self.site, task_type)
            if self.card.skill(task_type) is not None:
                self._heads[task_type] = head
        return head

    def close(self) -> None:
        """Call it no more."""
        self.upstream.close()
        self.probing.close()


class HttpAgents:
    """All registered instances; by instance."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        client: HttpClient | None,
        *,
        routes: Routes,
        peers: Peers,
        registrations: Registrations,
        schemas: Schemas,
        clock: Clock,
        findings: Reporter,
        options: HttpAgentOptions,
        instances_max: int,
        open_factor: int,
    ) -> None:
        self._client = client
        self._routes = routes
        self._peers = peers
        self._registrations = registrations
        self._schemas = schemas
        self._clock = clock
        self._options = options
        self._allowed = AllowList(options.endpoint_allow)
        self._instances_max = instances_max
        self._open_factor = open_factor
        self._agents: dict[str, HttpAgent] = {}
        self._probes = 0
        self._findings = findings
        self._takeovers: Takeovers[str] = Takeovers()

    def __len__(self) -> int:
        return len(self._agents)

    def __iter__(self) -> Iterator[HttpAgent]:
        return iter(list(self._agents.values()))

    def get(self, instance: str) -> HttpAgent | None:
        """The registration of an instance."""
        return self._agents.get(instance)

    @property
    def running(self) -> int:
        """Requests on their way."""
        return sum(len(agent.exchanges) for agent in self._agents.values())

    @property
    def ttl_s(self) -> float:
        """How long a registration holds."""
        return self._options.ttl_s

    @property
    def renew_after_s(self) -> float:
        """When it should be renewed."""
        return self._options.ttl_s / RENEWALS

    # --- what agents ask for

    async def register(self, tenant: str, card: Card, instance: str, url: str, probe: str) -> HttpAgent | Problem:
        """Take calls there from now on, or go on doing so; the answer may be a refusal."""
        refusal = self._refusal(tenant, card, instance)
        if refusal is not None:
            return refusal
        try:
            site = read_endpoint(url)
            if probe:
                check_path(probe)
        except ValueError as error:
            return problem("bad_request", detail=str(error))
        if instance not in self._agents:
            wait_s = self._registrations.ask(instance)
            if wait_s is not None:
                return problem("overloaded", retry_after_s=wait_s, detail=come_again(wait_s))
        flaw = self._schemas.flaw(card)
        if flaw is not None:
            return problem("bad_request", detail=flaw)
        found = await self._addresses(site, self._agents.get(instance), url)
        if isinstance(found, Problem):
            return found
        finding = self._allowed.finding(site.host, found)
        if finding is not None:
            return problem("forbidden", detail=finding)
        endpoint = Endpoint(url=url, address=preferred(found), probe=probe)
        # What held before the name was looked up may have changed meanwhile.
        return self._refusal(tenant, card, instance) or self._take(tenant, card, instance, endpoint, site)

    def leave(self, tenant: str, agent: str, instance: str) -> Problem | None:
        """It leaves in good order: nothing new, and gone when what is in its hands is done."""
        known = self._agents.get(instance)
        if known is None or (known.tenant, known.card.agent) != (tenant, agent):
            return problem(
                "not_found", detail=f"{agent} has no instance {plain(instance)!r} that is registered by HTTP"
            )
        if known.is_there:
            known.is_leaving = True
            self._routes.drain(instance)
            self.finish(known)
        else:
            self._remove(known)
        return None

    def restore(self, snapshot: RouteSnapshot) -> None:
        """Go on calling those that were registered with the gate before this one, as if they had just renewed."""
        for route in snapshot.routes:
            for instance, endpoint in route.endpoints.items():
                try:
                    site = read_endpoint(endpoint.url)
                except ValueError as error:
                    log.warning("endpoint_not_restored", instance=logged(instance), reason=str(error))
                    continue
                finding = self._allowed.finding(site.host, [endpoint.address])
                if finding is not None or self._client is None:
                    log.warning("endpoint_not_restored", instance=logged(instance), reason=finding or "no HTTP here")
                    continue
                self._take(route.tenant, route.card, instance, endpoint, site)

    # --- what the directory says

    def joined(self, instance: str, card: Card) -> None:
        """The directory knows it, by a card that its other instances may share."""
        known = self._agents.get(instance)
        if known is not None:
            known.is_there = True
            known.card = card

    def draining(self, instance: str) -> None:
        """It gets nothing new, whoever wanted that."""
        known = self._agents.get(instance)
        if known is not None:
            known.is_leaving = True
            asyncio.get_running_loop().call_soon(self.finish, known)

    def lost(self, instance: str) -> None:
        """Nothing is expected from it any more; while its registration holds, it may be found alive again."""
        known = self._agents.get(instance)
        if known is None:
            return
        known.is_there = False
        exchanges, known.exchanges = known.exchanges, {}
        for exchange in exchanges.values():
            exchange.abort()
        if known.is_leaving or self._clock.now() >= known.expires_at:
            self._remove(known)

    def finish(self, agent: HttpAgent) -> None:
        """Whoever leaves is gone when nothing is in its hands."""
        if agent.is_leaving and not agent.exchanges and self._agents.get(agent.instance) is agent:
            self._routes.gone(agent.instance)  # comes back as `lost`
            self._remove(agent)

    # --- time

    def tick(self) -> None:
        """Let those count as heard that hold and are well; ask those that have a probe whether they are."""
        now = self._clock.now()
        due: list[HttpAgent] = []
        for agent in self:
            if now >= agent.expires_at and not agent.is_leaving:
                self._expire(agent)
                continue
            if agent.is_leaving or agent.is_well:
                self._hear(agent)
            if agent.probe and not agent.is_probed and now >= agent.probe_at:
                due.append(agent)
        due.sort(key=lambda agent: agent.probe_at)
        for agent in due[: self._options.probes_max - self._probes]:
            self._ask(agent, now)

    def close(self) -> None:
        """Give up every request; the records of their units stay as they are, for the next start."""
        for agent in self:
            exchanges, agent.exchanges = agent.exchanges, {}
            for exchange in exchanges.values():
                exchange.abort()
            agent.close()

    # --- inside

    def _refusal(self, tenant: str, card: Card, instance: str) -> Problem | None:
        """Why this may not be registered at all."""
        known = self._agents.get(instance)
        if self._client is None:
            return problem("bad_request", detail="this gate calls no agents by HTTP")
        if self._peers.get(instance) is not None:
            return problem("forbidden", detail=f"the instance {plain(instance)!r} belongs to a process on a link")
        if known is None:
            if len(self._agents) >= self._instances_max:
                detail = f"{self._instances_max} instances are registered, which is the bound"
                return problem("overloaded", retry_after_s=AGAIN_S, detail=detail)
        elif (known.tenant, known.card.agent) != (tenant, card.agent):
            own = f"{card.agent}-1"
            detail = f"the instance {plain(instance)!r} belongs to another agent; a name like {own!r} is nobody else's"
            return problem("forbidden", detail=detail)
        elif known.is_leaving:
            detail = f"the instance {plain(instance)!r} is leaving and has {len(known.exchanges)} calls in hand"
            return problem("overloaded", retry_after_s=AGAIN_S, detail=detail)
        if (places := self._places(card)) > self._options.connections_max:
            open_units = "" if places == card.concurrency else f", so {places} units may be open, as skills rest"
            detail = f"concurrency is {card.concurrency}{open_units}; the bound is {self._options.connections_max}"
            return problem("bad_request", detail=detail)
        return None

    async def _addresses(self, site: Site, known: HttpAgent | None, url: str) -> list[str] | Problem:
        if not site.is_named:
            return [site.host]
        assert self._client is not None, "refused before"
        try:
            return list(await self._client.resolve(site.host))
        except OSError as error:
            if known is not None and known.endpoint.url == url:
                return [known.endpoint.address]  # a renewal must not fail because a name server does
            return problem("bad_request", detail=f"the endpoint's host {site.host!r} has no address: {error}")

    def _take(self, tenant: str, card: Card, instance: str, endpoint: Endpoint, site: Site) -> HttpAgent | Problem:
        known = self._agents.get(instance)
        if known is not None and (known.card, known.endpoint) == (card, endpoint):
            self._renew(known)
            return known
        agent = HttpAgent(tenant, card, instance, endpoint)
        self._prepare(agent, site)
        self._agents[instance] = agent
        try:
            self._routes.hello(tenant, card, instance, endpoint)
        except ValueError as error:
            self._agents.pop(instance)
            if known is not None:
                self._agents[instance] = known
            return problem("bad_request", detail=str(error))
        if known is not None:
            agent.exchanges = known.exchanges
            if known.endpoint == endpoint:
                agent.answered_at, agent.trouble = known.answered_at, known.trouble
            elif known.endpoint.url != endpoint.url:
                self._note_takeover(agent)
            known.close()
        log.info("http_agent_registered", agent=card.agent, instance=logged(instance), endpoint=endpoint.url)
        if agent.probe and self._probes < self._options.probes_max:
            self._ask(agent, self._clock.now())  # whoever registers looks next whether it is there
        return agent

    def _note_takeover(self, agent: HttpAgent) -> None:
        """Another endpoint has taken the name; two that do so in turn are two processes."""
        shown = agent.endpoint.url[:ENDPOINT_CHARS_MAX]
        shared = self._takeovers.note(agent.instance, shown, self._clock.now())
        if shared is not None and shared.is_alternating:
            subject, evidence = f"{agent.card.agent}/{plain(agent.instance)}", shared.evidence("endpoints")
            self._findings.report("instance_name_shared", subject, tenant=agent.tenant, **evidence)

    def _prepare(self, agent: HttpAgent, site: Site) -> None:
        assert self._client is not None, "refused before"
        endpoint = agent.endpoint
        place = Place(address=endpoint.address, port=site.port, tls_name=site.host if site.is_tls else "")
        # Twice as many as it has places: a handler that overstays frees its place, not its connection.
        agent.upstream = self._client.upstream(place, 2 * self._places(agent.card))
        agent.probing = self._client.upstream(place, 1)
        agent.site = site
        agent.probe = probe_request(site, endpoint.probe) if endpoint.probe else b""
        agent.expires_at = self._clock.now() + self._options.ttl_s

    def _places(self, card: Card) -> int:
        """How many units may be open at a time: each has a connection, also while it rests."""
        rests = any(skill.rests for skill in card.skills)
        return card.concurrency * self._open_factor if rests else card.concurrency

    def _renew(self, agent: HttpAgent) -> None:
        agent.expires_at = self._clock.now() + self._options.ttl_s
        agent.is_well = agent.is_well or not agent.probe  # what has a probe is not believed on its word
        if agent.is_well:
            self._hear(agent)

    def _expire(self, agent: HttpAgent) -> None:
        """As a closed link; said again while it works for the gate, so that its units are kept."""
        if agent.is_there:
            if agent.exchanges or agent.is_well:
                self._routes.closed(agent.instance)
            agent.is_well = False
        else:
            self._remove(agent)

    def _hear(self, agent: HttpAgent) -> None:
        if agent.is_there:
            self._routes.seen(agent.instance)
            return
        try:
            self._routes.hello(agent.tenant, agent.card, agent.instance, agent.endpoint)
        except ValueError as error:  # its place was taken meanwhile
            log.warning("http_agent_refused", instance=logged(agent.instance), reason=str(error))
            self._remove(agent)

    def _ask(self, agent: HttpAgent, now: float) -> None:
        agent.is_probed = True
        agent.probe_at = now + self._options.probe_s
        self._probes += 1

        def ended(end: HttpEnd) -> None:
            self._probes -= 1
            agent.is_probed = False
            agent.note(end, self._clock.now())
            was_well, agent.is_well = agent.is_well, isinstance(end, HttpAnswer) and end.status // 100 == 2  # noqa: PLR2004 - the class of status codes
            if was_well and not agent.is_well:
                said = f"it answered {end.status}" if isinstance(end, HttpAnswer) else end.detail
                log.warning("probe_failed", agent=agent.card.agent, instance=logged(agent.instance), reason=said)

        agent.probing.send(agent.probe, ended, until=now + self._options.probe_timeout_s, may_repeat=True)

    def _remove(self, agent: HttpAgent) -> None:
        if self._agents.get(agent.instance) is agent:
            del self._agents[agent.instance]
            agent.close()
