"""Errors over HTTP: problem+json (RFC 9457), with our code, advice and retry beside the standard members."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException

from agentgate.errors import CODES, StoreError
from agentgate.model import Problem, problem

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:agentgate:problem:"

# What the HTTP layer itself refuses, in our words; anything else of the 400s is a bad request.
CODE_BY_STATUS: Final = {404: "not_found", 401: "unauthorized", 403: "forbidden", 413: "too_large"}

log = structlog.get_logger("agentgate.server")


class Refused(Exception):
    """A handler's answer is an error."""

    def __init__(self, error: Problem) -> None:
        super().__init__(error.detail)
        self.error = error


def problem_body(error: Problem, status: int | None = None) -> bytes:
    """The document for an error value."""
    info = CODES[error.code]
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + error.code,
        "title": info.title,
        "status": status or info.http_status,
        "detail": error.detail,
        "code": error.code,
        "retry": error.retry,
        "advice": error.advice,
    }
    if error.retry_after_ms is not None:
        body["retry_after_ms"] = error.retry_after_ms
    return msgspec.json.encode(body)


def _respond(error: Problem, status: int | None = None) -> Response[bytes]:
    return Response(
        problem_body(error, status), status_code=status or CODES[error.code].http_status, media_type=MEDIA_TYPE
    )


def on_refused(_: Request[Any, Any, Any], error: Refused) -> Response[bytes]:
    """A handler said no."""
    return _respond(error.error)


def on_http_error(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """The framework said no: no such path, no such method, a parameter of the wrong kind."""
    status = error.status_code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return on_defect(_, error)
    return _respond(problem(CODE_BY_STATUS.get(status, "bad_request"), detail=error.detail), status)


def on_store_error(_: Request[Any, Any, Any], error: StoreError) -> Response[bytes]:
    """The store does not answer."""
    log.warning("store_failed", reason=str(error))
    return _respond(problem("store_down", retry_after_s=1.0))


def on_defect(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """A defect of ours: the log has the trace, the reader has a sentence."""
    log.error("request_failed", path=request.url.path[:200], exc_info=error)
    return _respond(problem("internal", detail="the gate's log says what happened"))
