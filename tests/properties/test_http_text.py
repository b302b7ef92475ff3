"""Texts that meet HTTP: whatever comes in is refused or harmless, whatever leaves is a header and nothing else."""

from __future__ import annotations

import contextlib
import re
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from agentgate.core.endpoint import read_endpoint, segment_of
from agentgate.core.http_answer import read_answer
from agentgate.core.payload import PayloadOptions
from agentgate.core.retry_after import seconds_of
from agentgate.gateway.http_request import head_of, invoke_request, probe_request
from agentgate.model import HttpAnswer
from agentgate.model.link import InvokeParams

ODD = st.text(max_size=60) | st.text(alphabet='az%":\\\r\n\x00\x7f ü\ud800', max_size=20)
URLS = st.from_regex(r"https?://[\w.\[\]:@%-]{1,20}(:[0-9]{0,6})?(/[\w.%~/?#\\-]{0,20})?", fullmatch=True)
SITE = read_endpoint("http://127.0.0.1:9000/base")
LINE = re.compile(rb"[a-z-]+: [\x20-\x7e]*")


@given(URLS | ODD)
def test_no_url_is_read_wrongly(url: str) -> None:
    """I6: an endpoint is refused with a sentence, or its host and path are what any reader of the URL sees."""
    try:
        site = read_endpoint(url)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017 - most texts are refused, and few are not
        return
    rest = url.partition("://")[2]
    host = rest.partition("/")[0]
    assert re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]+)?", host.lower())
    assert 1 <= site.port <= 65_535
    assert ".." not in [unquote(part) for part in site.path.split("/")]


@given(caller=ODD, business_key=ODD, action=ODD, key=ODD, task_type=ODD.filter(lambda text: "\ud800" not in text))
@example(caller='a"b\\c', business_key="100%", action="run", key='a"%3A\\', task_type="..")
def test_no_name_breaks_out_of_its_header(
    caller: str, business_key: str, action: str, key: str, task_type: str
) -> None:
    """I6: line ends, NUL and letters beyond ASCII in a name add no line to a request, and the name can be read back."""
    params = InvokeParams(
        task_type=task_type, caller=caller, business_key=business_key, action=action, key=key, payload=[1]
    )
    request = invoke_request(head_of(SITE, task_type), "u1", params)
    head, body = request.split(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    assert (first, body) == (f"POST /base/{segment_of(task_type)} HTTP/1.1".encode(), b"[1]")
    assert all(LINE.fullmatch(line) for line in lines)
    headers = dict(line.decode().split(": ", 1) for line in lines)
    assert len(headers) == len(lines)
    assert unquote(first.decode().split(" ")[1].removeprefix("/base/")) == task_type
    if caller.isprintable():
        assert unquote(headers["agentgate-caller"]) == caller
    assert ("idempotency-key" in headers) == bool(key)
    if key:
        assert re.fullmatch(r'"[^"\\]*"', headers["idempotency-key"])


@given(st.text(max_size=70), st.none() | st.text(max_size=40))
@example("Sun, 06 Nov 1994 12:00:30 GMT", "Sun, 06 Nov 1994 12:00:30 -9999999999")
def test_no_retry_after_raises(text: str, date: str | None) -> None:
    """F46: whatever stands in the header, it is a time of zero or more, or nothing."""
    seconds = seconds_of(text, date, 0.0)
    assert seconds is None or seconds >= 0.0


@given(st.integers(100, 999), st.binary(max_size=300), st.none() | st.text(max_size=20))
def test_no_answer_raises(status: int, body: bytes, text: str | None) -> None:
    """B14: any status with any body means something."""
    answer = HttpAnswer(status=status, body=body, retry_after=text, date=text, location=text, content_encoding=text)
    said = read_answer(answer, PayloadOptions(), 0.0)
    detail = said.detail if hasattr(said, "detail") else (said.error.detail if said.error is not None else "")
    assert all(letter.isprintable() for letter in detail) or "not valid" in detail


def test_a_probe_is_a_question_without_a_body() -> None:
    """The probe's path stands alone, not behind the endpoint's."""
    assert probe_request(SITE, "/healthz").startswith(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:9000\r\n")


@given(ODD)
def test_a_segment_has_no_slash(task_type: str) -> None:
    """A1: whatever a task type is called, it is one segment of ASCII."""
    with contextlib.suppress(UnicodeEncodeError):
        assert re.fullmatch(r"[A-Za-z0-9%:._~-]*", segment_of(task_type))
