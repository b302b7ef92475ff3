"""The HTTP application: the routes of `api/` behind their guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from litestar import Litestar
from litestar.datastructures import State
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from agentgate.errors import StoreError
from agentgate.model import problem
from agentgate.server import problems
from agentgate.server.access import access_finding
from agentgate.server.api import HANDLERS
from agentgate.server.calls import HttpCalls
from agentgate.server.door import CallDoor
from agentgate.server.metrics import Metrics
from agentgate.server.openapi import document_bytes
from agentgate.server.problems import Refused, problem_body, problem_headers
from agentgate.server.view import GateView

# Answers are data of this moment for programs; a browser that shows one must not run, frame or keep anything of it.
SAFE_HEADERS: Final = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def build_http(
    view: GateView, calls: HttpCalls, metrics_text: Metrics, is_stopping: Callable[[], bool], *, body_bytes_max: int
) -> ASGIApp:
    """The ASGI application, behind its guard."""
    app = Litestar(
        route_handlers=[*HANDLERS],
        state=State(
            {
                "view": view,
                "calls": calls,
                "metrics": metrics_text,
                "is_stopping": is_stopping,
                "openapi": document_bytes(tuple(HANDLERS)),
            }
        ),
        exception_handlers={
            Refused: problems.on_refused,
            StoreError: problems.on_store_error,
            HTTPException: problems.on_http_error,
            Exception: problems.on_defect,
        },
        openapi_config=None,  # ours is made by `openapi`, and there is no page that would fetch a viewer somewhere
        logging_config=None,
        request_max_body_size=0,
    )
    return _guarded(CallDoor(calls, app, bytes_max=body_bytes_max))


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
        error = problem("forbidden", detail=finding)
        body = problem_body(error)
        content = [*problem_headers(error), (b"content-length", str(len(body)).encode())]
        await send_safely({"type": "http.response.start", "status": 403, "headers": content})
        await send_safely({"type": "http.response.body", "body": body, "more_body": False})

    return guard


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for known, value in headers if known == name]
