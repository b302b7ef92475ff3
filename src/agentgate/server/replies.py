"""Answers about calls as HTTP: a value, an error, or "it runs, ask again"."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from agentgate.core.call_id import call_id
from agentgate.core.keys import shown_key
from agentgate.errors import CODES
from agentgate.model import KeyId, Outcome, Problem
from agentgate.server.problems import document, encode, problem_headers

CALLS_PATH: Final = "/v1/calls"
POLL_AFTER_MS: Final = 1_000  # a poll costs as much as a call; who wants to know sooner says `Prefer: wait`

OK: Final = 200
ACCEPTED: Final = 202

Fields = list[tuple[bytes, bytes]]

CLOSE: Final = [(b"connection", b"close")]  # for a request of which the rest is not worth reading

_JSON: Final = (b"content-type", b"application/json")
_POLL: Final = (b"retry-after", b"%d" % (POLL_AFTER_MS // 1000))


class Reply(NamedTuple):
    """An answer over HTTP: header names in lower case, and the length of the body among them."""

    status: int
    headers: Fields
    body: bytes


class DoneBody(Struct, kw_only=True):
    """A call that came to a value.

    `id` and `key` are those of a keyed call. `replayed`: the answer is that of an earlier run of the same key, first
    seen `first_seen_at` (seconds since the epoch). `joined`: it was shared with another caller of the same key.
    `degraded`: it is the answer of the degraded handler, and the call itself has none yet.
    """

    id: str | UnsetType = UNSET
    status: Literal["done"] = "done"
    value: Any = None
    key: str | UnsetType = UNSET
    replayed: bool = False
    joined: bool = False
    degraded: bool = False
    first_seen_at: float | UnsetType = UNSET
    trace_id: str = ""


class RunningBody(Struct, kw_only=True):
    """A keyed call that goes on; `state` says in words how far it is, if that is known."""

    id: str
    status: Literal["running"] = "running"
    key: str
    state: str = ""
    poll_after_ms: int = POLL_AFTER_MS
    trace_id: str = ""


def of_outcome(outcome: Outcome, key: KeyId | None, trace_id: str, more: Fields) -> Reply:
    """What a call came to; `key` of a keyed one, `more` headers for whoever made it."""
    if outcome.error is not None:
        return _of_error(outcome, outcome.error, key, trace_id, more)
    body = encode(
        DoneBody(
            id=UNSET if key is None else call_id(key),
            value=outcome.value,
            key=UNSET if key is None else outcome.key or shown_key(key),
            replayed=outcome.replayed,
            joined=outcome.joined,
            degraded=outcome.degraded,
            first_seen_at=UNSET if outcome.first_seen_at is None else outcome.first_seen_at,
            trace_id=trace_id,
        )
    )
    return Reply(OK, [_JSON, _length(body), *more], body)


def running(key: KeyId, state: str, trace_id: str, more: Fields) -> Reply:
    """It goes on; where and when to ask again."""
    name = call_id(key)
    body = encode(RunningBody(id=name, key=shown_key(key), state=state, trace_id=trace_id))
    place = (b"location", f"{CALLS_PATH}/{name}".encode())
    return Reply(ACCEPTED, [_JSON, _length(body), place, _POLL, *more], body)


def refusal(error: Problem, status: int | None = None, more: Fields | None = None) -> Reply:
    """An error that is not about a call that was taken."""
    body = encode(document(error, status))
    headers = [*problem_headers(error), _length(body), *(more or ())]
    return Reply(status or CODES[error.code].http_status, headers, body)


def _of_error(outcome: Outcome, error: Problem, key: KeyId | None, trace_id: str, more: Fields) -> Reply:
    said = document(error)
    said.trace_id = trace_id or UNSET
    said.replayed, said.joined = outcome.replayed, outcome.joined
    if key is not None and (error.sent or error.code != "bad_request"):  # whose key may be no key at all
        said.id, said.key = call_id(key), outcome.key or shown_key(key)
    if outcome.first_seen_at is not None:
        said.first_seen_at = outcome.first_seen_at
    body = encode(said)
    return Reply(said.status, [*problem_headers(error), _length(body), *more], body)


def _length(body: bytes) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % len(body)
