"""The process in which an object lives: builds it, calls its methods, answers, until the other end hangs up.

Run as `python -m agentgate.runtime.hosted FD`, with one end of a socket pair. Frames in both directions are a length
and a JSON value: `Request` in, `Reply` out, in order. It ends with its parent, however that ends, because the
operating system closes the socket; signals to the group are the parent's business.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import socket
import struct
import sys
from typing import Final

import msgspec

from agentgate.errors import StoreBadInput, StoreBroke, StoreConflict, StoreError
from agentgate.runtime.signature import ENCODER, arguments_decoder

KINDS: Final = (StoreBroke, StoreConflict, StoreBadInput)
LENGTH: Final = struct.Struct("!I")


class Request(msgspec.Struct, array_like=True):
    """A call: `module:name` of a class to build, or the name of a method."""

    name: str
    arguments: msgspec.Raw


class Reply(msgspec.Struct, array_like=True):
    """The answer, or the name and text of an error."""

    answer: msgspec.Raw
    error: str = ""
    text: str = ""


_REQUESTS: Final = msgspec.json.Decoder(Request)
_NOTHING: Final = msgspec.Raw(ENCODER.encode(None))


def main() -> None:
    """Serve until the other end hangs up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with (
        socket.socket(fileno=int(sys.argv[1])) as connection,
        connection.makefile("rb") as requests,
        contextlib.suppress(ConnectionError),  # the parent was killed with answers unread: it has hung up
    ):
        host = Host()
        while len(head := requests.read(LENGTH.size)) == LENGTH.size:
            [size] = LENGTH.unpack(head)
            connection.sendall(framed(host.answer(_REQUESTS.decode(requests.read(size)))))


def framed(message: Request | Reply) -> bytes:
    """A message with its length before it."""
    body = ENCODER.encode(message)
    return LENGTH.pack(len(body)) + body


def _kind_of(error: StoreError) -> str:
    """By which of the three names the other end knows it; an adapter may have finer ones of its own."""
    return next((kind.__name__ for kind in KINDS if isinstance(error, kind)), "defect")


class Host:
    """The object, once it is built."""

    def __init__(self) -> None:
        self._hosted: object | None = None

    def answer(self, request: Request) -> Reply:
        """Do what is asked; an error is an answer too."""
        try:
            return Reply(msgspec.Raw(ENCODER.encode(self._call(request))))
        except StoreError as error:
            return Reply(_NOTHING, _kind_of(error), str(error))
        except Exception as error:  # noqa: BLE001 - a defect is told to whoever asked; the process serves on
            return Reply(_NOTHING, "defect", f"{type(error).__name__}: {error}")

    def _call(self, request: Request) -> object:
        module, is_class, name = request.name.rpartition(":")
        if is_class:
            build = getattr(importlib.import_module(module), name)
            self._hosted = build(*arguments_decoder(build).decode(request.arguments))
            return None
        method = getattr(type(self._hosted), name)
        return method(self._hosted, *arguments_decoder(method).decode(request.arguments))


if __name__ == "__main__":
    main()
