"""The HTTP API, read only for now: health, metrics, agents, chains, breakers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final

import msgspec
from litestar import Litestar, MediaType, Response, get
from litestar.datastructures import State
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.params import FromPath, QueryParameter
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import CONTENT_TYPE_LATEST

from agentgate.directory import AgentInfo
from agentgate.errors import StoreError
from agentgate.model import Span, problem
from agentgate.server import problems
from agentgate.server.access import access_finding
from agentgate.server.metrics import Metrics
from agentgate.server.problems import Refused, problem_body
from agentgate.server.view import GateView

SPANS_MAX: Final = 1_000

# Answers are data of this moment for programs; a browser that shows one must not run, frame or keep anything of it.
SAFE_HEADERS: Final = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody who is there."""

    version: int
    agents: list[AgentInfo]


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The spans of one trace or key, in order of start; `truncated` when there are more."""

    asked: str
    truncated: bool
    spans: list[Span]


@get("/healthz", media_type=MediaType.JSON, sync_to_thread=False)
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@get("/readyz", media_type=MediaType.JSON, sync_to_thread=False)
def readyz(state: State) -> Response[dict[str, str]]:
    """Calls are taken."""
    if state.is_stopping():
        return Response({"status": "stopping"}, status_code=503)
    return Response({"status": "ready"})


@get("/metrics", sync_to_thread=False)
def metrics(state: State) -> Response[bytes]:
    """Prometheus' text format."""
    return Response(state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@get("/v1/agents", sync_to_thread=False)
def agents(state: State) -> AgentList:
    """Agents with their skills and instances."""
    directory = state.view.directory
    return AgentList(version=directory.snapshot().version, agents=directory.agents())


@get("/v1/chains/{asked:path}")
async def chain(
    state: State, asked: FromPath[str], limit: Annotated[int, QueryParameter(ge=1, le=SPANS_MAX)] = SPANS_MAX
) -> Chain:
    """Every span of a trace, or of the traces in which a key or business key occurs."""
    asked = asked.removeprefix("/")
    spans = await state.view.spans.chain(asked, limit + 1)
    if not spans:
        raise Refused(problem("not_found", detail=f"no span of {asked[:200]!r}; a trace id, a key or a business key"))
    return Chain(asked=asked, truncated=len(spans) > limit, spans=spans[:limit])


@get("/v1/breakers", sync_to_thread=False)
def breakers(state: State) -> dict[str, list[dict[str, Any]]]:
    """Every breaker: agent, task type (none: the agent's own), state, and what it has counted."""
    return {"breakers": state.view.breakers()}


def build_http(view: GateView, metrics_text: Metrics, is_stopping: Callable[[], bool]) -> ASGIApp:
    """The ASGI application, behind its guard."""
    app = Litestar(
        route_handlers=[healthz, readyz, metrics, agents, chain, breakers],
        state=State({"view": view, "metrics": metrics_text, "is_stopping": is_stopping}),
        exception_handlers={
            Refused: problems.on_refused,
            StoreError: problems.on_store_error,
            HTTPException: problems.on_http_error,
            Exception: problems.on_defect,
        },
        openapi_config=None,  # the document comes with the calls' front door
        logging_config=None,
        request_max_body_size=0,
    )
    return _guarded(app)


def _guarded(app: ASGIApp) -> ASGIApp:
    """Refuse what comes from elsewhere, and add the safe headers to every answer."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SAFE_HEADERS]
            await send(message)

        if scope["type"] != ScopeType.HTTP:
            return
        hosts, origins = (_values(scope["headers"], name) for name in (b"host", b"origin"))
        finding = access_finding(hosts, origins)
        if finding is None:
            await app(scope, receive, send_safely)
            return
        body = problem_body(problem("forbidden", detail=finding))
        content = [(b"content-type", problems.MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        await send_safely({"type": "http.response.start", "status": 403, "headers": content})
        await send_safely({"type": "http.response.body", "body": body, "more_body": False})

    return guard


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for known, value in headers if known == name]
