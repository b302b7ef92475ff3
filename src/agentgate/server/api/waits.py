"""Who waits for whom: at one moment, and as it changes."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State
from litestar.params import QueryParameter
from litestar.types import ASGIApp

from agentgate.core.deadlock import ASK_LESS
from agentgate.model import OBSERVE, WaitPicture
from agentgate.server.api.doc import Doc, Parameter, Shown, documented
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.wait_feed import MEDIA_TYPE
from agentgate.server.wait_pictures import WAITS_MAX

WRITER: Final = {"unit": "u1a2b", "agent": "writer_agent", "task_type": "draft", "business_key": "page_1"}
EDITOR: Final = {"unit": "u1a2c", "agent": "editor_agent", "task_type": "improve", "business_key": "page_1"}
WAIT: Final = {
    "id": "w17",
    "waiter": WRITER,
    "kind": "call",
    "target": "editor_agent",
    "task_type": "improve",
    "business_key": "page_1",
    "key": "writer_agent:improve:page_1:run",
    "holders": [EDITOR],
    "holders_count": 1,
    "certain": True,
    "behind": False,
    "since": 1796035331.27,
    "deadline": 1796035361.2,
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "span_id": "b7ad6b7169203331",
}
STEP: Final = {"kind": "call", "certain": True, "trace_id": WAIT["trace_id"], "span_id": WAIT["span_id"]}
PICTURE: Final = {
    "seq": 61270,
    "at": 1796035333.94,
    "mode": "enforce",
    "waits": [WAIT],
    "knots": [
        {
            "text": "writer_agent.draft(page_1) > editor_agent.improve(page_1) > writer_agent.draft(page_1)",
            "cycle": [{**WRITER, **STEP}, {**EDITOR, **STEP}],
            "cycle_count": 2,
            "units": 2,
            "certain": True,
            "advice": ASK_LESS,
        }
    ],
    "truncated": False,
}
CHANGE: Final = {
    "seq": 61480,
    "after": 61270,
    "at": 1796035334.15,
    "opened": [],
    "changed": [],
    "closed": ["w17"],
    "knots": [],
    "truncated": False,
}

_PICTURE_DOC: Final = Doc(
    answers={200: Shown(type=WaitPicture, example=PICTURE)},
    errors=("bad_request",),
    parameters=(
        Parameter(
            name="limit",
            type=Annotated[int, msgspec.Meta(ge=1, le=WAITS_MAX)],
            example=100,
            meaning="At most so many waits, up to 1000 [1000].",
        ),
    ),
)

_STREAM_DOC: Final = Doc(
    answers={
        200: Shown(
            type=None,
            example=(
                f"id: {PICTURE['seq']}\nevent: snapshot\ndata: {json.dumps(PICTURE)}\n\n"
                f"id: {CHANGE['seq']}\nevent: difference\ndata: {json.dumps(CHANGE)}\n\n"
            ),
            media_type=MEDIA_TYPE,
            meaning="A `snapshot`, then a `difference` whenever something has changed, until the gate stops.",
        )
    },
    errors=("overloaded",),
)


@get("/v1/waits", opt=requires(OBSERVE) | documented(_PICTURE_DOC))
async def list_waits(
    state: State,
    request: Request[Any, Any, Any],
    limit: Annotated[int, QueryParameter(ge=1, le=WAITS_MAX)] = WAITS_MAX,
) -> WaitPicture:
    """Who of the tenant waits for whom now: units, callers from outside, and the knots that stand."""
    picture: WaitPicture = await state.view.waits.take(identity_of(request.scope).tenant, limit)
    return picture


@get("/v1/waits/stream", sync_to_thread=False, media_type=MEDIA_TYPE, opt=requires(OBSERVE) | documented(_STREAM_DOC))
def watch_waits(state: State, request: Request[Any, Any, Any]) -> ASGIApp:
    """The same as it changes, as server-sent events.

    A stream begins with a `snapshot`, also for a client that comes back. Each `difference` fits the picture whose `seq`
    it names as `after`: waits that were opened, changed or closed, by their ids, and all knots that stand. What begins
    and ends within a fifth of a second is not told. A client that does not read is cut.
    """
    watcher: ASGIApp = state.wait_feed.watch(identity_of(request.scope))
    return watcher
