"""Instances of agents without our SDK: they register where they take calls, and leave."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Request, delete, put
from litestar.datastructures import State
from litestar.params import FromPath

from agentgate.core import payload
from agentgate.errors import WireError
from agentgate.model import AGENT_SCOPE, Card, Identity, Problem, Skill, Tier, problem, qualified
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.problems import Refused

PATH: Final = "/v1/agents/{agent:str}/instances/{instance:str}"
AS_ITSELF: Final = requires(AGENT_SCOPE + "{agent}")  # of the path: an agent registers as itself only
BODY_BYTES_MAX: Final = 524_288  # twice the largest card; what a card may have is checked by the directory


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an instance says about itself: where it takes calls, and its card."""

    endpoint: str
    probe: str = ""
    tier: Tier = "standard"
    concurrency: int = 8
    skills: tuple[Skill, ...] = ()
    version: str = ""


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """The registration holds for `ttl_s` seconds; the same request again, after `renew_after_s`, renews it."""

    agent: str
    instance: str
    address: str
    ttl_s: float
    renew_after_s: float


@put(PATH, opt=AS_ITSELF, request_max_body_size=BODY_BYTES_MAX)
async def register(
    state: State, request: Request[Any, Any, Any], agent: FromPath[str], instance: FromPath[str]
) -> Registered:
    """Register an instance, or renew its registration."""
    identity = _speaks_as(request, agent)
    gateway = state.view.gateway
    said = _read(await request.body(), gateway.options.payload)
    card = Card(agent=agent, tier=said.tier, concurrency=said.concurrency, skills=said.skills, version=said.version)
    known_as = qualified(identity.tenant, instance)
    taken = await gateway.http_agents.register(identity.tenant, card, known_as, said.endpoint, said.probe)
    if isinstance(taken, Problem):
        raise Refused(taken)
    return Registered(
        agent=agent,
        instance=instance,
        address=taken.endpoint.address,
        ttl_s=gateway.http_agents.ttl_s,
        renew_after_s=gateway.http_agents.renew_after_s,
    )


@delete(PATH, opt=AS_ITSELF)
async def unregister(
    state: State, request: Request[Any, Any, Any], agent: FromPath[str], instance: FromPath[str]
) -> None:
    """Leave in good order: nothing new comes, and what is in hand may still be answered."""
    identity = _speaks_as(request, agent)
    refusal = state.view.gateway.http_agents.leave(identity.tenant, agent, qualified(identity.tenant, instance))
    if refusal is not None:
        raise Refused(refusal)


def _speaks_as(request: Request[Any, Any, Any], agent: str) -> Identity:
    identity = identity_of(request.scope)
    if not identity.may_speak_as(agent):
        raise Refused(problem("forbidden", detail=f"that takes the scope {AGENT_SCOPE}{agent}"))
    return identity


def _read(body: bytes, options: payload.PayloadOptions) -> Registration:
    try:
        return msgspec.convert(payload.decode(body, options), Registration)
    except WireError as error:
        raise Refused(problem(error.code, detail=error.detail)) from None
    except msgspec.ValidationError as error:
        raise Refused(problem("bad_request", detail=f"the registration is not of the right form: {error}")) from None
