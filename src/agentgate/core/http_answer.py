"""What an HTTP answer means: the table of DESIGN 4.1 for agents without our SDK.

Decides, from status and body, what the agent has said, in the words of the link (`model.link.Answer`), so that both
kinds of agents are judged by the same rules from there on; or that nobody can tell what it has done.

| status | means |
|---|---|
| 2xx | the body is the value; an empty one is null; one that is no JSON, or may not travel, is malformed output |
| 3xx | malformed output: an endpoint is called as registered, nothing is followed |
| 404, 405 | the agent has no such task type: nothing happened |
| 429; 503 with Retry-After | nothing happened, all callers leave the agent alone for that time |
| 429 or 503 with our code `overloaded` | nothing happened, this call alone is tried again |
| 401, 402, 403, 409, 410, 423, 451; any 4xx with our code `rejected` | a final no |
| 408, 421, 425; 5xx other than 500; 503 without Retry-After | as a connection that was reset |
| any other 4xx | the request is wrong, finally |
| 500 | the handler raised |

"Our code" is the member `code` of a JSON object in the body (RFC 9457 problem details). Of such a body the gate takes
over that and a sentence to show, never anything else: agents are not trusted with the gate's own words.

Not covered: what follows for the key and the caller (`gateway.answers`, `core.attempts`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgspec import MsgspecError
from msgspec.json import Decoder

from agentgate.core import payload, retry_after
from agentgate.core.payload import PayloadOptions
from agentgate.errors import WireError
from agentgate.model import HttpAnswer, HttpFailure, problem
from agentgate.model.link import Answer

NO_CONTENT: Final = 204
NOT_THERE: Final = frozenset({404, 405})
TOO_MANY: Final = 429
RAISED: Final = 500
UNAVAILABLE: Final = 503
NOS: Final = frozenset({401, 402, 403, 409, 410, 423, 451})
NOT_TAKEN: Final = frozenset({408, 421, 425})  # a server between, or a connection, has failed: nobody knows more

ENCODINGS: Final = frozenset({"", "identity"})
DETAIL_CHARS_MAX: Final = 500
DETAIL_MEMBERS: Final = ("detail", "title", "message", "error")

_decode: Final = Decoder().decode


class _Said(NamedTuple):
    """What the body of an error says."""

    code: str
    detail: str


def read_answer(answer: HttpAnswer, options: PayloadOptions, wall: float) -> Answer | HttpFailure:
    """What the agent has said; a failure when nobody can tell. `wall` is seconds since the epoch."""
    kind = answer.status // 100
    if kind == 2:  # noqa: PLR2004 - the class of status codes
        return _value(answer, options)
    said = _said(answer)
    if kind == 3:  # noqa: PLR2004 - the same
        where = _printable(answer.location or "elsewhere")
        return _malformed(f"the endpoint redirects ({answer.status}) to {where}; register where it really is")
    if kind == 4:  # noqa: PLR2004 - the same
        return _client_error(answer, said, wall)
    if answer.status == RAISED:
        return Answer(error=problem("handler_error", sent=True, detail=said.detail))
    if answer.status == UNAVAILABLE and (asked := _throttled(answer, said, wall)) is not None:
        return asked
    return _unknown(answer, said)


def _value(answer: HttpAnswer, options: PayloadOptions) -> Answer:
    if answer.too_large:
        return _malformed(f"the answer has more than the {options.bytes_max} bytes that are allowed")
    if (answer.content_encoding or "").strip().lower() not in ENCODINGS:
        encoding = _printable(answer.content_encoding or "")
        return _malformed(f"the answer is encoded as {encoding}; the request asks for `identity`")
    if answer.status == NO_CONTENT or not answer.body:
        return Answer()
    try:
        return Answer(value=payload.decode(answer.body, options))
    except WireError as error:
        return _malformed(f"the answer cannot be taken: {error.detail}")


def _client_error(answer: HttpAnswer, said: _Said, wall: float) -> Answer | HttpFailure:
    status = answer.status
    if status == TOO_MANY:
        asked = _throttled(answer, said, wall)
        return asked or Answer(error=problem("rate_limited", detail=said.detail))
    if said.code == "rejected" or status in NOS:
        return Answer(error=problem("rejected", sent=True, detail=said.detail))
    if status in NOT_THERE:
        return Answer(error=problem("no_route", detail=said.detail))
    if status in NOT_TAKEN:
        return _unknown(answer, said)
    return Answer(error=problem("bad_request", sent=True, detail=said.detail))


def _throttled(answer: HttpAnswer, said: _Said, wall: float) -> Answer | None:
    """The agent asks for time; None when it says neither how much nor that it means this call alone."""
    wait_s = retry_after.seconds_of(answer.retry_after, answer.date, wall)
    if said.code == "overloaded":
        return Answer(error=problem("overloaded", retry_after_s=wait_s, detail=said.detail))
    if wait_s is None:
        return None
    return Answer(error=problem("rate_limited", retry_after_s=wait_s, detail=said.detail))


def _unknown(answer: HttpAnswer, said: _Said) -> HttpFailure:
    return HttpFailure(sent=True, detail=said.detail or f"it answered {answer.status}")


def _malformed(detail: str) -> Answer:
    return Answer(error=problem("malformed_output", sent=True, detail=detail))


def _said(answer: HttpAnswer) -> _Said:
    status = f"it answered {answer.status}"
    document = _document(answer.body)
    if document is None:
        text = _printable(answer.body[: 4 * DETAIL_CHARS_MAX].decode("utf-8", "replace"))
        return _Said("", f"{status}: {text}" if text else status)
    code = document.get("code")
    texts = (document.get(name) for name in DETAIL_MEMBERS)
    text = next((_printable(text) for text in texts if isinstance(text, str) and text), "")
    return _Said(code if isinstance(code, str) else "", f"{status}: {text}" if text else status)


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = _decode(body) if body else None
    except (MsgspecError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _printable(text: str) -> str:
    """Without what could break a line of a log or a header, and bounded."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:DETAIL_CHARS_MAX]).strip()
