"""Instances of agents without our SDK: they register where they take calls, and leave."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from litestar import Request, delete, put
from litestar.datastructures import State
from litestar.params import FromPath

from agentgate.core import payload
from agentgate.core.keys import name_flaw
from agentgate.errors import WireError
from agentgate.model import AGENT_SCOPE, Card, Identity, Problem, Skill, Tier, problem, qualified
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.operating import store
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.problems import Refused

PATH: Final = "/v1/agents/{agent:str}/instances/{instance:str}"
AS_ITSELF: Final = requires(AGENT_SCOPE + "{agent}")  # of the path: an agent registers as itself only
BODY_S: Final = 10.0  # for a card to arrive
BODY_BYTES_MAX: Final = 524_288  # twice the largest card; what a card may have is checked by the directory


class DeclaredSkill(Skill, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A skill in which nothing is misspelt: a lost `repeatable` or `effect` would change what a write means."""


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an instance says about itself: where it takes calls, and its card."""

    endpoint: str
    probe: str = ""
    tier: Tier = "standard"
    concurrency: int = 8
    skills: tuple[DeclaredSkill, ...] = ()
    version: str = ""


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """The registration holds for `ttl_s` seconds; the same request again, after `renew_after_s`, renews it."""

    agent: str
    instance: str
    address: str
    ttl_s: float
    renew_after_s: float


_EXAMPLES: Final = {"agent": "stock_agent", "instance": "stock-1"}
_REGISTER: Final = Doc(
    answers={
        200: Shown(
            type=Registered,
            example={
                "agent": "stock_agent",
                "instance": "stock-1",
                "address": "127.0.0.1",
                "ttl_s": 60.0,
                "renew_after_s": 20.0,
            },
        )
    },
    errors=("bad_request", "forbidden", "overloaded", "too_large", "store_down"),
    body=Shown(
        type=Registration,
        example={
            "endpoint": "http://127.0.0.1:9000",
            "probe": "/healthz",
            "skills": [{"task_type": "reserve"}, {"task_type": "look", "effect": "read"}],
        },
    ),
    path_examples=_EXAMPLES,
)
_LEAVE: Final = Doc(
    answers={204: Shown(type=None, example=None, meaning="It gets nothing new.")},
    errors=("bad_request", "forbidden", "not_found", "store_down"),
    path_examples=_EXAMPLES,
)


@put(PATH, opt=AS_ITSELF | documented(_REGISTER), request_max_body_size=BODY_BYTES_MAX)
async def register(
    state: State, request: Request[Any, Any, Any], agent: FromPath[str], instance: FromPath[str]
) -> Registered:
    """Register an instance, or renew its registration."""
    identity = _speaks_as(request, agent)
    gateway = state.view.gateway
    said = _read(await _body(request), gateway.options.payload)
    skills = tuple(Skill(**msgspec.structs.asdict(skill)) for skill in said.skills)
    card = Card(agent=agent, tier=said.tier, concurrency=said.concurrency, skills=skills, version=said.version)
    known_as = _known_as(identity, instance)
    taken = await gateway.http_agents.register(identity.tenant, card, known_as, said.endpoint, said.probe)
    if isinstance(taken, Problem):
        raise Refused(taken)
    await store(state.view.directory, f"{instance} is registered")
    return Registered(
        agent=agent,
        instance=instance,
        address=taken.endpoint.address,
        ttl_s=gateway.http_agents.ttl_s,
        renew_after_s=gateway.http_agents.renew_after_s,
    )


@delete(PATH, opt=AS_ITSELF | documented(_LEAVE))
async def unregister(
    state: State, request: Request[Any, Any, Any], agent: FromPath[str], instance: FromPath[str]
) -> None:
    """Leave in good order: nothing new comes, and what is in hand may still be answered."""
    identity = _speaks_as(request, agent)
    refusal = state.view.gateway.http_agents.leave(identity.tenant, agent, _known_as(identity, instance))
    if refusal is not None:
        raise Refused(refusal)
    await store(state.view.directory, f"{instance} gets nothing new")


async def _body(request: Request[Any, Any, Any]) -> bytes:
    try:
        async with asyncio.timeout(BODY_S):
            return await request.body()
    except TimeoutError:
        detail = f"the body was not there within {BODY_S:g} s"
        raise Refused(problem("bad_request", detail=detail)) from None


def _speaks_as(request: Request[Any, Any, Any], agent: str) -> Identity:
    identity = identity_of(request.scope)
    if not identity.may_speak_as(agent):
        raise Refused(problem("forbidden", detail=f"that takes the scope {AGENT_SCOPE}{agent}"))
    return identity


def _known_as(identity: Identity, instance: str) -> str:
    """The instance's name inside the gate; what is no name could be that of another tenant's there."""
    flaw = name_flaw("the instance", instance)
    if flaw is not None:
        raise Refused(problem("bad_request", detail=flaw))
    return qualified(identity.tenant, instance)


def _read(body: bytes, options: payload.PayloadOptions) -> Registration:
    try:
        return msgspec.convert(payload.decode(body, options), Registration)
    except WireError as error:
        raise Refused(problem(error.code, detail=error.detail)) from None
    except msgspec.ValidationError as error:
        raise Refused(problem("bad_request", detail=f"the registration is not of the right form: {error}")) from None
