"""Calls: made, asked for, listed, settled."""

from __future__ import annotations

from typing import Annotated, Any, Final

from litestar import Request, Response, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, QueryParameter

from agentgate.core.call_id import call_id, key_of
from agentgate.core.keys import shown_key
from agentgate.model import OBSERVE, OPERATE, SUBMIT, Record, RecordState, problem
from agentgate.server.api import calls_doc as doc
from agentgate.server.api.doc import documented
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.problems import Refused
from agentgate.server.replies import CALLS_PATH, Reply
from agentgate.server.settle import Settled, settle

LIMIT_MAX: Final = 1_000
LIMIT: Final = 100
BODY_BYTES_MAX: Final = 2_097_152  # the payload's own limit is smaller, and says so in our words


@post(CALLS_PATH, opt=requires(SUBMIT) | documented(doc.CALL), status_code=200, request_max_body_size=BODY_BYTES_MAX)
async def make_call(state: State, request: Request[Any, Any, Any]) -> Response[bytes]:
    """Call an agent.

    A call that is not declared a read needs a business key: a repeat with the same key and body is answered from the
    ledger and runs nothing. What takes longer than a few seconds goes on and is answered with 202.
    """
    # Nearly all of them are taken before the framework (`server/direct_calls.py`); other spellings come this far.
    identity = identity_of(request.scope)
    return _response(await state.calls.answer(tuple(request.scope["headers"]), await request.body(), identity))


@get(CALLS_PATH + "/{name:str}", opt=requires(SUBMIT, OBSERVE, OPERATE) | documented(doc.LOOK))
async def look(state: State, request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    """What became of a keyed call, as the call itself would have been answered."""
    scope = request.scope
    return _response(await state.calls.look(name, tuple(scope["headers"]), identity_of(scope)))


@get(CALLS_PATH, opt=requires(OBSERVE) | documented(doc.LIST))
async def list_calls(
    state: State,
    request: Request[Any, Any, Any],
    states: Annotated[RecordState | None, QueryParameter(name="state")] = None,
    target: FromQuery[str] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX)] = LIMIT,
    after: FromQuery[str] = "",
) -> doc.CallList:
    """Keyed calls that the ledger has a record of, in the order of their keys."""
    tenant = identity_of(request.scope).tenant
    place = key_of(after, tenant) if after else None
    if after and place is None:
        raise Refused(problem("bad_request", detail="`after` is not the id of a call; take it from `next`"))
    known = state.view.gateway.known_calls
    records = await known.list_records(tenant, target, states, place, limit + 1)
    shown = [_info(record) for record in records[:limit]]
    return doc.CallList(calls=shown, next=shown[-1].id if len(records) > limit else None)


@post(
    CALLS_PATH + "/{name:str}/settle",
    opt=requires(OPERATE) | documented(doc.SETTLE),
    status_code=200,
    request_max_body_size=BODY_BYTES_MAX,
)
async def settle_call(state: State, request: Request[Any, Any, Any], name: FromPath[str]) -> Settled:
    """Say what became of a call whose outcome is unknown; whoever asks from now on gets this answer."""
    return await settle(state.view.gateway, name, await request.body(), identity_of(request.scope))


def _response(reply: Reply) -> Response[bytes]:
    headers = {name.decode(): value.decode() for name, value in reply.headers if name != b"content-length"}
    media_type = headers.pop("content-type")
    return Response(reply.body, status_code=reply.status, headers=headers, media_type=media_type)


def _info(record: Record) -> doc.CallInfo:
    error = record.outcome.error if record.outcome is not None else None
    key = record.key
    return doc.CallInfo(
        id=call_id(key),
        key=shown_key(key),
        state=record.state,
        target=key.target,
        agent=record.agent,
        caller=key.caller,
        task_type=key.task_type,
        business_key=key.business_key,
        action=key.action,
        code=error.code if error is not None else "",
        detail=error.detail if error is not None else "",
        runs=record.epoch,
        units=[unit.unit for unit in record.units],
        trace_id=record.trace_id,
        first_seen_at=record.first_seen_at,
        expires_at=record.expires_at,
    )
