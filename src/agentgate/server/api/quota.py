"""The quota of an agent, which an operator sets while the gate runs."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
import structlog
from litestar import Request, delete, put
from litestar.datastructures import State
from litestar.params import FromPath
from msgspec.structs import replace

from agentgate.core.quota import AGENT_PERIOD_S_MAX, UNITS_MAX
from agentgate.model import OPERATE, AgentQuota, Identity, problem
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.operating import no_such_agent, store
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.problems import Refused

PATH: Final = "/v1/agents/{agent:str}/quota"
BODY_BYTES_MAX: Final = 4096

log = structlog.get_logger("agentgate.server")


class QuotaRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """So many cost units may be asked of the agent in any `per_seconds`, by all callers together."""

    units: Annotated[float, msgspec.Meta(ge=0, le=UNITS_MAX)]
    per_seconds: Annotated[float, msgspec.Meta(ge=1, le=AGENT_PERIOD_S_MAX)]


class QuotaState(msgspec.Struct, frozen=True, kw_only=True):
    """The quota that holds from now on; none: the agent has none of its own."""

    agent: str
    quota: QuotaRequest | None = None


_EXAMPLE: Final = {"agent": "stock_agent"}
_SET: Final = Doc(
    answers={
        200: Shown(type=QuotaState, example={"agent": "stock_agent", "quota": {"units": 100.0, "per_seconds": 60.0}})
    },
    errors=("bad_request", "not_found", "too_large", "store_down"),
    body=Shown(type=QuotaRequest, example={"units": 100, "per_seconds": 60}),
    path_examples=_EXAMPLE,
)
_DROP: Final = Doc(
    answers={200: Shown(type=QuotaState, example={"agent": "stock_agent", "quota": None})},
    errors=("not_found", "store_down"),
    path_examples=_EXAMPLE,
)

_request: Final = msgspec.json.Decoder(QuotaRequest)


@put(PATH, opt=requires(OPERATE) | documented(_SET), request_max_body_size=BODY_BYTES_MAX, status_code=HTTPStatus.OK)
async def set_quota(state: State, request: Request[Any, Any, Any], agent: FromPath[str]) -> QuotaState:
    """Limit what may be asked of an agent, from now on and over restarts; what has been asked already counts."""
    try:
        asked = _request.decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(problem("bad_request", detail=f"the body is {{units, per_seconds}}: {error}")) from None
    if state.view.gateway.options.mechanisms.get("quota") == "off":
        raise Refused(problem("bad_request", detail="mechanisms.quota is off, so no quota would have any effect"))
    quota = AgentQuota(units=asked.units, per_s=asked.per_seconds)
    await _configure(state, identity_of(request.scope), agent, quota)
    return QuotaState(agent=agent, quota=asked)


@delete(PATH, opt=requires(OPERATE) | documented(_DROP), status_code=HTTPStatus.OK)
async def drop_quota(state: State, request: Request[Any, Any, Any], agent: FromPath[str]) -> QuotaState:
    """Take the quota of an agent away."""
    await _configure(state, identity_of(request.scope), agent, None)
    return QuotaState(agent=agent)


async def _configure(state: State, caller: Identity, agent: str, quota: AgentQuota | None) -> None:
    directory = state.view.directory
    known = directory.resolve(caller.tenant, agent)
    if known is None or known.agent != agent:
        raise no_such_agent(agent)
    directory.configure(caller.tenant, agent, replace(known.settings, quota=quota))
    given = None if quota is None else f"{quota.units:g} units a {quota.per_s:g} s"
    log.warning("agent_quota_set", tenant=caller.tenant, agent=agent, quota=given, by=caller.name)
    await store(directory, f"the quota of {agent} holds")
