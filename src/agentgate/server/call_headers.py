"""What the headers of a call over HTTP say beside its body: its key, how long to wait, the time left, its origin.

A header that is not of its form is an error with a sentence, as a body is. The exception is `traceparent`: a bad one is
none, as its standard asks for. Every call passes here, so nothing is looked at twice and no pattern is matched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from agentgate.errors import WireError

Headers = Sequence[tuple[bytes, bytes]]

SHOWN_MAX: Final = 60
DIGITS_MAX: Final = 8  # of `grpc-timeout`; a millennium in milliseconds, and no number that takes long to read
UNITS_MS: Final = {b"H": 3_600_000, b"M": 60_000, b"S": 1_000, b"m": 1, b"u": 0.001, b"n": 0.000_001}


class CallHeaders(Struct):
    """What they say; times in seconds or milliseconds from now."""

    key: str = ""
    wait_s: int | None = None
    timeout_ms: int | None = None
    token: str = ""
    traceparent: str = ""

    def end_by(self, timeout_ms: int) -> None:
        """One more limit on the time: the smallest counts."""
        self.timeout_ms = timeout_ms if self.timeout_ms is None else min(self.timeout_ms, timeout_ms)


def read_headers(headers: Headers) -> CallHeaders:
    """The headers of a call, names in lower case; raises `WireError`."""
    found = CallHeaders()
    for name, value in headers:
        if name in _READERS:
            _READERS[name](found, value.strip())
    return found


def _read_key(found: CallHeaders, value: bytes) -> None:
    """A string as structured fields have it (RFC 9651), in quotes; without them it is taken as it stands."""
    text = _text("Idempotency-Key", value)
    if text.startswith('"'):
        text = _unquoted(text)
    elif '"' in text:
        raise _bad("Idempotency-Key", value, "is not one string, with or without quotes")
    if not text:
        raise _bad("Idempotency-Key", value, "is empty")
    if found.key and found.key != text:
        raise _bad("Idempotency-Key", value, "comes twice, and differs")
    found.key = text


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    escaped = inner.replace("\\\\", "").replace('\\"', "")
    if text == '"' or not text.endswith('"') or '"' in escaped or "\\" in escaped:
        raise _bad("Idempotency-Key", text.encode(), 'is not one string: "…", with \\" and \\\\ as its only escapes')
    return inner if "\\" not in inner else _unescaped(inner)


def _unescaped(inner: str) -> str:
    letters = iter(inner)
    return "".join(next(letters) if letter == "\\" else letter for letter in letters)


def _read_preference(found: CallHeaders, value: bytes) -> None:
    """`Prefer: wait=n` (RFC 7240); other preferences are none of ours, which is no error."""
    for preference in value.split(b","):
        name, equals, said = preference.partition(b"=")
        if name.strip().lower() != b"wait" or not equals:
            continue
        seconds = said.partition(b";")[0].strip().strip(b'"')
        if not (seconds.isdigit() and len(seconds) <= DIGITS_MAX):
            raise _bad("Prefer", value, "has a `wait` that is not a number of whole seconds")
        if found.wait_s is None:  # the first one counts
            found.wait_s = int(seconds)


def _read_envoy_timeout(found: CallHeaders, value: bytes) -> None:
    if not (value.isdigit() and len(value) <= DIGITS_MAX):
        raise _bad("x-envoy-expected-rq-timeout-ms", value, "is not a number of whole milliseconds")
    found.end_by(int(value))


def _read_grpc_timeout(found: CallHeaders, value: bytes) -> None:
    unit = UNITS_MS.get(value[-1:])
    if unit is None or not (value[:-1].isdigit() and len(value) <= DIGITS_MAX + 1):
        raise _bad("grpc-timeout", value, "is not 1 to 8 digits and one of H, M, S, m, u, n")
    found.end_by(int(int(value[:-1]) * unit))


def _read_token(found: CallHeaders, value: bytes) -> None:
    token = _text("agentgate-unit-token", value)
    if found.token and found.token != token:
        raise _bad("agentgate-unit-token", value, "comes twice, and differs")
    found.token = token


def _read_traceparent(found: CallHeaders, value: bytes) -> None:
    found.traceparent = value.decode("latin-1")


def _read_encoding(_: CallHeaders, value: bytes) -> None:
    if value.lower() not in (b"", b"identity"):
        raise _bad("Content-Encoding", value, "is not understood: send the body as it is")


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _bad(name, value, "is not UTF-8") from None


def _bad(name: str, value: bytes, why: str) -> WireError:
    return WireError(f"the header {name} {why}: {value[:SHOWN_MAX].decode('latin-1')!r}")


_READERS: Final[dict[bytes, Callable[[CallHeaders, bytes], None]]] = {
    b"idempotency-key": _read_key,
    b"prefer": _read_preference,
    b"x-envoy-expected-rq-timeout-ms": _read_envoy_timeout,
    b"grpc-timeout": _read_grpc_timeout,
    b"agentgate-unit-token": _read_token,
    b"traceparent": _read_traceparent,
    b"content-encoding": _read_encoding,
}
