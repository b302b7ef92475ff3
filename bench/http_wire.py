"""HTTP/1.1 by hand, as little as a measurement needs: of a head only the length and the status are read."""

from __future__ import annotations

from typing import Final

HEAD_END: Final = b"\r\n\r\n"
LENGTH: Final = b"ength: "  # of Content-Length, however it is written
CHUNKED: Final = b"chunked"
LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
OK: Final = b"200"

# Places in a request that differ from one to the next; what is put there is as long as they are.
SENDER: Final = b"@SENDER@"
NUMBER: Final = b"@NUMBER@"


def is_complete(data: bytes) -> bool:
    """Whether this is one whole message, and nothing of a next one: nobody here sends before being answered."""
    head_end = data.find(HEAD_END)
    if head_end < 0:
        return False
    at = data.find(LENGTH, 0, head_end)
    if at >= 0:
        at += len(LENGTH)
        return head_end + len(HEAD_END) + int(data[at : data.find(b"\r", at)]) == len(data)
    return data.endswith(LAST_CHUNK) if CHUNKED in data[:head_end] else True


def status(data: bytes) -> bytes:
    """The status of an answer."""
    return data[9:12]


def path(data: bytes) -> bytes:
    """The path of a request."""
    return data.split(b" ", 2)[1]


def request(method: str, path: str, body: bytes, **headers: str) -> bytes:
    """A request; names of headers are given with `_` for `-`."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{lines}"
    return head.encode() + _sized(body)


def answer(body: bytes) -> bytes:
    """An answer that says yes."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + _sized(body)


def _sized(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
