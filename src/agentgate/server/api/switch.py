"""The switch of an agent."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, put
from litestar.datastructures import State
from litestar.params import FromPath

from agentgate.model import OPERATE, SwitchedOff, problem
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.operating import no_such_agent, store
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.problems import Refused

REASON_CHARS_MAX: Final = 200
BODY_BYTES_MAX: Final = 4096
NOBODY: Final = "somebody on this machine"  # who operates a gate without tokens


class SwitchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an agent is to be switched; `reason` is needed to switch it off, and shown to whoever is refused."""

    on: bool
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)] = ""


class SwitchState(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent is switched."""

    agent: str
    on: bool
    off: SwitchedOff | None = None


_DOC: Final = Doc(
    answers={
        200: Shown(
            type=SwitchState,
            example={
                "agent": "stock_agent",
                "on": False,
                "off": {"by": "ops", "at": 1796035331.27, "reason": "double bookings, see ticket 7"},
            },
        )
    },
    errors=("bad_request", "not_found", "too_large", "store_down"),
    body=Shown(type=SwitchRequest, example={"on": False, "reason": "double bookings, see ticket 7"}),
    path_examples={"agent": "stock_agent"},
)

_request: Final = msgspec.json.Decoder(SwitchRequest)


@put(
    "/v1/agents/{agent:str}/switch",
    opt=requires(OPERATE) | documented(_DOC),
    request_max_body_size=BODY_BYTES_MAX,
    status_code=HTTPStatus.OK,
)
async def switch_agent(state: State, request: Request[Any, Any, Any], agent: FromPath[str]) -> SwitchState:
    """Switch an agent off or on: off, no call to it begins and it begins none; what runs goes on."""
    asked = _read(await request.body())
    caller = identity_of(request.scope)
    by, reason = caller.name or NOBODY, asked.reason.strip()
    route = state.view.gateway.switch.turn(caller.tenant, agent, on=asked.on, by=by, reason=reason)
    if route is None:
        raise no_such_agent(agent)
    await store(state.view.directory, f"{agent} is switched")
    return SwitchState(agent=agent, on=asked.on, off=route.settings.off)


def _read(body: bytes) -> SwitchRequest:
    try:
        asked = _request.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(problem("bad_request", detail=f"the body is {{on, reason}}: {error}")) from None
    if not asked.on and not asked.reason.strip():
        raise Refused(problem("bad_request", detail="to switch an agent off takes a `reason`, for those it refuses"))
    if not asked.reason.isprintable():
        raise Refused(problem("bad_request", detail="the `reason` is one line of printable characters"))
    return asked
