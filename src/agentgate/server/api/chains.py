"""What happened: the spans of a trace or key, and what is waited for in it now."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter

from agentgate.model import OBSERVE, Span, Wait, problem
from agentgate.server.api.doc import Doc, Parameter, Shown, documented
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.problems import Refused

SPANS_MAX: Final = 1_000


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The spans of one trace or key, in order of start; `truncated` when there are more.

    A span is there once its call has ended. `waits` are the calls and other waits of these traces that are open `at`
    this moment, in seconds since the epoch.
    """

    asked: str
    truncated: bool
    spans: list[Span]
    waits: tuple[Wait, ...]
    at: float


_DOC: Final = Doc(
    answers={
        200: Shown(
            type=Chain,
            example={
                "asked": "order_123",
                "truncated": False,
                "spans": [
                    {
                        "trace_id": "0af7651916cd43dd8448eb211c80319c",
                        "span_id": "b7ad6b7169203331",
                        "kind": "call",
                        "call_id": "c1a2b",
                        "caller": "shop",
                        "target": "order_agent",
                        "agent": "order_agent",
                        "task_type": "confirm",
                        "business_key": "order_123",
                        "key": "shop:confirm:order_123:run",
                        "started_at": 1796035331.27,
                        "wait_ms": 41.7,
                    }
                ],
                "waits": [],
                "at": 1796035391.27,
            },
        )
    },
    errors=("bad_request", "not_found"),
    parameters=(
        Parameter(
            name="limit",
            type=Annotated[int, msgspec.Meta(ge=1, le=SPANS_MAX)],
            example=100,
            meaning="At most so many spans, up to 1000 [1000].",
        ),
    ),
    path_examples={"asked": "order_123"},
)


@get("/v1/chains/{asked:path}", opt=requires(OBSERVE) | documented(_DOC))
async def chain(
    state: State,
    request: Request[Any, Any, Any],
    asked: FromPath[str],
    limit: Annotated[int, QueryParameter(ge=1, le=SPANS_MAX)] = SPANS_MAX,
) -> Chain:
    """Every span the tenant has of a trace, or of the traces in which a key or business key occurs, and their waits."""
    asked, tenant = asked.removeprefix("/"), identity_of(request.scope).tenant
    spans = await state.view.spans.chain(asked, limit + 1, tenant)
    waits = await state.view.waits.of_chain(asked, {span.trace_id for span in spans}, tenant)
    if not spans and not waits:
        raise Refused(problem("not_found", detail=f"no span of {asked[:200]!r}; a trace id, a key or a business key"))
    return Chain(
        asked=asked, truncated=len(spans) > limit, spans=spans[:limit], waits=waits, at=state.view.clock.wall()
    )
