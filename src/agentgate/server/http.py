"""The HTTP application: the routes of `api/` behind their guard."""

from __future__ import annotations

from collections.abc import Callable

from litestar import Litestar
from litestar.datastructures import State
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from agentgate.errors import StoreError
from agentgate.model import Problem
from agentgate.server import problems
from agentgate.server.access import SAFE_HEADERS
from agentgate.server.api import HANDLERS
from agentgate.server.api.scope import IDENTITY_KEY, check_scope, scope_of
from agentgate.server.calls import HttpCalls
from agentgate.server.doorkeeper import Doorkeeper
from agentgate.server.metrics import Metrics
from agentgate.server.openapi import document_bytes
from agentgate.server.problems import Refused
from agentgate.server.replies import refusal
from agentgate.server.view import GateView
from agentgate.server.wait_feed import WaitFeed


def build_http(
    view: GateView,
    calls: HttpCalls,
    wait_feed: WaitFeed,
    metrics_text: Metrics,
    doorkeeper: Doorkeeper,
    is_stopping: Callable[[], bool],
) -> ASGIApp:
    """The ASGI application, behind its guard; raises `TypeError` for a route that does not say what scope it needs."""
    for handler in HANDLERS:
        scope_of(handler)
    app = Litestar(
        route_handlers=[*HANDLERS],
        state=State(
            {
                "view": view,
                "calls": calls,
                "wait_feed": wait_feed,
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
        guards=[check_scope],
        logging_config=None,
        request_max_body_size=0,
    )
    return _guarded(app, doorkeeper)


def _guarded(app: ASGIApp, doorkeeper: Doorkeeper) -> ASGIApp:
    """Know who sends a request before anything looks at it, and add the safe headers to every answer."""
    public = {path for handler in HANDLERS if scope_of(handler) is None for path in handler.paths}

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SAFE_HEADERS]
            await send(message)

        if scope["type"] != ScopeType.HTTP:
            return
        identity = doorkeeper.admit_request(scope["headers"], is_public=scope["path"] in public)
        if isinstance(identity, Problem):
            reply = refusal(identity)
            await send_safely({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
            await send_safely({"type": "http.response.body", "body": reply.body, "more_body": False})
            return
        scope[IDENTITY_KEY] = identity  # type: ignore[typeddict-unknown-key]  # ASGI lets a scope be extended
        await app(scope, receive, send_safely)

    return guard
