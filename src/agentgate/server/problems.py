"""Errors over HTTP: problem+json (RFC 9457), with our code, advice and retry beside the standard members.

"Do not retry" is said in every dialect that a stock client may understand, because a bare 409, 429 or 503 is retried by
most of them: `x-should-retry` (the SDKs of model providers) and `grpc-retry-pushback-ms`, beside `retry` in the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.json import Encoder

from agentgate.errors import CODES, StoreError
from agentgate.model import Problem, problem

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:agentgate:problem:"

# Registered problem types (draft-ietf-httpapi-ratelimit-headers-10), where they say the same as our code.
REGISTERED: Final = "https://iana.org/assignments/http-problem-types#"
TYPES: Final = {code: TYPE_PREFIX + code for code in CODES} | {
    "rate_limited": REGISTERED + "quota-exceeded",
    "quota_exhausted": REGISTERED + "quota-exceeded",
    "abnormal_usage": REGISTERED + "abnormal-usage-detected",
    "overloaded": REGISTERED + "temporary-reduced-capacity",
    "shed": REGISTERED + "temporary-reduced-capacity",
}
VIOLATED: Final = {"rate_limited": ["sender"]}  # names of policies in the RateLimit fields

# What the HTTP layer itself refuses, in our words; anything else of the 400s is a bad request.
CODE_BY_STATUS: Final = {404: "not_found", 401: "unauthorized", 403: "forbidden", 413: "too_large"}

CONTENT_TYPE: Final = (b"content-type", MEDIA_TYPE.encode())
NEVER: Final = ((b"x-should-retry", b"false"), (b"grpc-retry-pushback-ms", b"-1"))
AGAIN: Final = ((b"x-should-retry", b"true"),)

log = structlog.get_logger("agentgate.server")

encode: Final = Encoder().encode


class ProblemDocument(Struct, kw_only=True):
    """The body of every error.

    `sent`: whether the target may have seen the request and acted on it. `retry`: whether the same request can have
    another answer (`after` some time) or not (`never`). Answers about a call have `trace_id`, and its `id` and `key`
    if it has a key.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    fault: str
    sent: bool
    retry: str
    advice: str
    retry_after_ms: int | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    key: str | UnsetType = UNSET
    replayed: bool | UnsetType = UNSET
    joined: bool | UnsetType = UNSET
    first_seen_at: float | UnsetType = UNSET
    violated_policies: list[str] | UnsetType = field(default=UNSET, name="violated-policies")


class Refused(Exception):
    """A handler's answer is an error."""

    def __init__(self, error: Problem) -> None:
        super().__init__(error.detail)
        self.error = error


def document(error: Problem, status: int | None = None) -> ProblemDocument:
    """The document for an error value."""
    info = CODES[error.code]
    return ProblemDocument(
        type=TYPES[error.code],
        title=info.title,
        status=status or info.http_status,
        detail=error.detail,
        code=error.code,
        fault=error.fault,
        sent=error.sent,
        retry=error.retry,
        advice=error.advice,
        retry_after_ms=UNSET if error.retry_after_ms is None else error.retry_after_ms,
        violated_policies=VIOLATED.get(error.code, UNSET),
    )


def problem_body(error: Problem, status: int | None = None) -> bytes:
    """The document as bytes."""
    return encode(document(error, status))


def problem_headers(error: Problem) -> list[tuple[bytes, bytes]]:
    """What a client has to know that does not read the document."""
    headers = [CONTENT_TYPE]
    if error.retry_after_ms is not None:
        headers.append((b"retry-after", b"%d" % -(-error.retry_after_ms // 1000)))
        headers.append((b"retry-after-ms", b"%d" % error.retry_after_ms))
    if error.retry == "never" or CODES[error.code].http_status == HTTPStatus.CONFLICT:
        headers += NEVER  # a key that runs is waited for, not called again
    elif error.retry_after_ms is not None:
        headers += AGAIN
    if error.code == "unauthorized":
        headers.append((b"www-authenticate", b"Bearer"))
    return headers


def _respond(error: Problem, status: int | None = None, more: Mapping[str, str] | None = None) -> Response[bytes]:
    return Response(
        problem_body(error, status),
        status_code=status or CODES[error.code].http_status,
        media_type=MEDIA_TYPE,
        headers={name.decode(): value.decode() for name, value in problem_headers(error)[1:]} | dict(more or {}),
    )


def on_refused(_: Request[Any, Any, Any], error: Refused) -> Response[bytes]:
    """A handler said no."""
    return _respond(error.error)


def on_http_error(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """The framework said no: no such path, no such method, a parameter of the wrong kind."""
    status = error.status_code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return on_defect(_, error)
    refusal = problem(CODE_BY_STATUS.get(status, "bad_request"), detail=error.detail)
    return _respond(refusal, status, error.headers)  # such as which methods there are


def on_store_error(_: Request[Any, Any, Any], error: StoreError) -> Response[bytes]:
    """The store does not answer."""
    log.warning("store_failed", reason=str(error))
    return _respond(problem("store_down", retry_after_s=1.0))


def on_defect(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """A defect of ours: the log has the trace, the reader has a sentence."""
    log.error("request_failed", path=request.url.path[:200], exc_info=error)
    return _respond(problem("internal", detail="the gate's log says what happened"))
