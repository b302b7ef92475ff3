"""What the headers of a call say, and what is said of those that are not of their form."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgate.errors import WireError
from agentgate.server.call_headers import CallHeaders, read_headers

NAMES = (b"idempotency-key", b"prefer", b"grpc-timeout", b"x-envoy-expected-rq-timeout-ms", b"agentgate-unit-token")


def read(**headers: str) -> CallHeaders:
    return read_headers([(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()])


@given(st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs", "Cc"]), min_size=1))
@example("a\\")
@example('"')
@example('\\"\\')
def test_a_quoted_key_reads_back(key: str) -> None:
    """C3: any text, written as a structured-field string, is the business key as it was."""
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    assert read(idempotency_key=f'"{escaped}"').key == key


@given(st.lists(st.tuples(st.sampled_from([*NAMES, b"traceparent", b"x-other"]), st.binary(max_size=30)), max_size=4))
@example([(b"grpc-timeout", b"")])
@example([(b"idempotency-key", b'"')])
@example([(b"idempotency-key", b'"\\"')])
@example([(b"prefer", b"wait=\xff")])
def test_garbage_is_a_sentence_or_nothing(headers: list[tuple[bytes, bytes]]) -> None:
    """I6: whatever bytes come, the answer is what they say or one error that names the header."""
    found, refused = None, None
    try:
        found = read_headers(headers)
    except WireError as error:
        refused = error
    if found is not None:
        assert found.timeout_ms is None or found.timeout_ms >= 0
        assert found.wait_s is None or found.wait_s >= 0
    else:
        assert refused is not None
        assert (refused.code, refused.detail[:11]) == ("bad_request", "the header ")


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({}, CallHeaders()),
        (
            {"idempotency_key": "8e03978e-40d5-43dd-bc93-6894a57f9324"},
            CallHeaders(key="8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ),
        ({"idempotency_key": "訂單 1"}, CallHeaders(key="訂單 1")),
        ({"prefer": "wait=5"}, CallHeaders(wait_s=5)),
        ({"prefer": 'respond-async, Wait = "7"; why=not, wait=9'}, CallHeaders(wait_s=7)),
        ({"prefer": "handling=lenient, wait"}, CallHeaders()),
        ({"grpc_timeout": "1H"}, CallHeaders(timeout_ms=3_600_000)),
        ({"grpc_timeout": "99999999n"}, CallHeaders(timeout_ms=99)),
        ({"grpc_timeout": "250m", "x_envoy_expected_rq_timeout_ms": "300"}, CallHeaders(timeout_ms=250)),
        ({"agentgate_unit_token": "abc", "traceparent": "00-x"}, CallHeaders(token="abc", traceparent="00-x")),
        ({"x_other": "\x00"}, CallHeaders()),
    ],
)
def test_headers_by_example(headers: dict[str, str], found: CallHeaders) -> None:
    """DESIGN 4.5: the standard names, in the forms that clients send."""
    assert read(**headers) == found


@pytest.mark.parametrize(
    ("header", "value", "why"),
    [
        ("idempotency-key", '""', "is empty"),
        ("idempotency-key", "", "is empty"),
        ("idempotency-key", '"a', "is not one string"),
        ("idempotency-key", 'a"b', "is not one string"),
        ("idempotency-key", '"a"; b=c', "is not one string"),
        ("idempotency-key", '"a\\b"', "is not one string"),
        ("prefer", "wait=soon", "not a number of whole seconds"),
        ("prefer", "wait=-1", "not a number of whole seconds"),
        ("prefer", "wait=999999999", "not a number of whole seconds"),
        ("grpc-timeout", "5", "is not 1 to 8 digits"),
        ("grpc-timeout", "123456789S", "is not 1 to 8 digits"),
        ("grpc-timeout", "5s", "is not 1 to 8 digits"),
        ("x-envoy-expected-rq-timeout-ms", "1.5", "not a number of whole milliseconds"),
        ("x-envoy-expected-rq-timeout-ms", "-1", "not a number of whole milliseconds"),
    ],
)
def test_what_is_wrong_is_said(header: str, value: str, why: str) -> None:
    """I3: the error names the header, the reason and the value."""
    with pytest.raises(WireError) as raised:
        read_headers([(header.encode(), value.encode())])
    said = raised.value.detail.lower()
    assert said.startswith(f"the header {header}")
    assert why in said


@pytest.mark.parametrize("name", ["idempotency-key", "agentgate-unit-token"])
def test_two_that_differ_are_refused(name: str) -> None:
    """Draft-07: one key a request; the same one twice is one."""
    same, other = (name.encode(), b"a"), (name.encode(), b"b")
    assert read_headers([same, same]) == read_headers([same])
    with pytest.raises(WireError, match="comes twice"):
        read_headers([same, other])
