"""What happened: the spans of a trace or key."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter

from agentgate.model import OBSERVE, Span, problem
from agentgate.server.api.scope import identity_of, requires
from agentgate.server.problems import Refused

SPANS_MAX: Final = 1_000


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The spans of one trace or key, in order of start; `truncated` when there are more."""

    asked: str
    truncated: bool
    spans: list[Span]


@get("/v1/chains/{asked:path}", opt=requires(OBSERVE))
async def chain(
    state: State,
    request: Request[Any, Any, Any],
    asked: FromPath[str],
    limit: Annotated[int, QueryParameter(ge=1, le=SPANS_MAX)] = SPANS_MAX,
) -> Chain:
    """Every span the tenant has of a trace, or of the traces in which a key or business key occurs."""
    asked = asked.removeprefix("/")
    spans = await state.view.spans.chain(asked, limit + 1, identity_of(request.scope).tenant)
    if not spans:
        raise Refused(problem("not_found", detail=f"no span of {asked[:200]!r}; a trace id, a key or a business key"))
    return Chain(asked=asked, truncated=len(spans) > limit, spans=spans[:limit])
