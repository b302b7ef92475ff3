"""What an HTTP answer means, status by status."""

from __future__ import annotations

import json

import pytest

from agentgate.core.http_answer import read_answer
from agentgate.core.payload import PayloadOptions
from agentgate.model import HttpAnswer, HttpFailure, Problem
from agentgate.model.link import Answer

OPTIONS = PayloadOptions(bytes_max=1000)


def read(status: int, body: bytes = b"", **headers: str) -> Answer | HttpFailure:
    return read_answer(HttpAnswer(status=status, body=body, **headers), OPTIONS, wall=1_800_000_000.0)  # type: ignore[arg-type] # headers are texts


def error_of(status: int, body: bytes = b"", **headers: str) -> Problem:
    said = read(status, body, **headers)
    assert isinstance(said, Answer)
    assert said.error is not None
    return said.error


def document(code: str, detail: str = "because") -> bytes:
    return json.dumps({"code": code, "detail": detail}).encode()


@pytest.mark.parametrize(
    ("status", "body", "value"),
    [
        (200, b'{"a": [1, null]}', {"a": [1, None]}), (201, b'"x"', "x"), (202, b"1", 1), (299, b"[]", []),
        (204, b"", None), (200, b"", None), (200, b"null", None),
    ],
)  # fmt: skip
def test_a_good_answer_is_its_json(status: int, body: bytes, value: object) -> None:
    """Any 2xx is the end of the work; no body is null."""
    assert read(status, body) == Answer(value=value)
    assert read(status, body, content_encoding=" Identity ") == Answer(value=value)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "not valid JSON"),
        (b"NaN", "NaN"),
        (b'"\\u0000"', "NUL"),
        (b'"\xff"', "UTF-8"),
        (b"1 2", "follows the end"),
        (b"[" * 100 + b"]" * 100, "deeper"),
        (b'"' + b"x" * 1000 + b'"', "1002 bytes"),
    ],
)
def test_what_may_not_travel_is_malformed(body: bytes, why: str) -> None:
    """B4: an answer that is no JSON, or that no store could take, is malformed output with the reason."""
    error = error_of(200, body)
    assert (error.code, error.fault, error.sent) == ("malformed_output", "malformed", True)
    assert why in error.detail


def test_a_compressed_answer_is_malformed() -> None:
    """The request asked for `identity`: nothing is unpacked."""
    assert "encoded as gzip" in error_of(200, b"\x1f\x8b", content_encoding="gzip").detail


def test_an_answer_beyond_the_bound_is_malformed() -> None:
    """B14: what was given up at the bound is named with the bound."""
    said = read_answer(HttpAnswer(status=200, too_large=True), OPTIONS, 0.0)
    assert isinstance(said, Answer)
    assert said.error is not None
    assert (said.error.code, "1000 bytes" in said.error.detail) == ("malformed_output", True)


def test_a_redirect_is_not_followed() -> None:
    """Wherever it leads, it is malformed output."""
    assert "to http://elsewhere/ x;" in error_of(302, location="http://elsewhere/\nx").detail
    assert "to elsewhere;" in error_of(399).detail


@pytest.mark.parametrize(
    ("status", "code", "sent"),
    [
        (400, "bad_request", True), (422, "bad_request", True), (415, "bad_request", True), (499, "bad_request", True),
        (401, "rejected", True), (402, "rejected", True), (403, "rejected", True), (409, "rejected", True),
        (410, "rejected", True), (423, "rejected", True), (451, "rejected", True),
        (404, "no_route", False), (405, "no_route", False),
        (429, "rate_limited", False),
        (500, "handler_error", True),
    ],
)  # fmt: skip
def test_each_status_has_its_code(status: int, code: str, *, sent: bool) -> None:
    """DESIGN 4.1: what is final, and whether something may have happened."""
    error = error_of(status)
    assert (error.code, error.sent, error.detail) == (code, sent, f"it answered {status}")


@pytest.mark.parametrize("status", [408, 421, 425, 501, 502, 503, 504, 599, 600, 999])
def test_what_nobody_can_tell_is_a_lost_connection(status: int) -> None:
    """DESIGN 4.1: 502, 504, other 5xx, 503 without Retry-After: as a reset."""
    assert read(status, b"bad gateway") == HttpFailure(sent=True, detail=f"it answered {status}: bad gateway")


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_asks_for_time(status: int) -> None:
    """B4: nothing happened, and everybody waits as told, in either form."""
    for text, wait_ms in (("7", 7000), ("0", 0)):
        error = error_of(status, retry_after=text)
        assert (error.code, error.sent, error.retry_after_ms) == ("rate_limited", False, wait_ms)
    error = error_of(status, retry_after="Sun, 06 Nov 1994 12:00:30 GMT", date="Sun, 06 Nov 1994 12:00:00 GMT")
    assert error.retry_after_ms == 30_000


@pytest.mark.parametrize("status", [429, 503])
def test_an_agent_may_delay_this_call_alone(status: int) -> None:
    """Our code `overloaded` is the handler's TryLater."""
    error = error_of(status, document("overloaded"), retry_after="2")
    assert (error.code, error.sent, error.retry_after_ms) == ("overloaded", False, 2000)
    assert error_of(status, document("overloaded")).retry_after_ms is None


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_an_agent_may_say_no_in_our_words(status: int) -> None:
    """Our code `rejected` in any 4xx is a final no, with its reason."""
    error = error_of(status, document("rejected", "sold\nout"))
    assert (error.code, error.sent, error.detail) == ("rejected", True, f"it answered {status}: sold out")


@pytest.mark.parametrize("code", ["breaker_open", "internal", "overloaded", ""])
def test_other_words_of_ours_are_not_taken_over(code: str) -> None:
    """I6: an agent cannot speak in the gate's name."""
    assert error_of(400, document(code)).code == "bad_request"
    assert error_of(500, document(code)).code == "handler_error"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"title": "Gone wrong"}', ": Gone wrong"),
        (b'{"message": "m", "error": {"x": 1}}', ": m"),
        (b'{"error": "e", "code": 7}', ": e"),
        (b'{"detail": ""}', ""),
        (b"[1]", ": [1]"),
        (b"{" * 10_000, ": " + "{" * 500),
        (b"\xff\x1b[31mred", ": \ufffd [31mred"),
        (b" \n ", ""),
    ],
)
def test_the_detail_is_what_a_person_would_read(body: bytes, detail: str) -> None:
    """H1: the sentence in the body is shown, printable and bounded."""
    assert error_of(500, body).detail == f"it answered 500{detail}"
