"""Commands that are pointed at another server than a gate: one error that says so."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
import typer

from agentgate.cli.main import app, run
from tests.e2e.command import agentgate


class Stranger(BaseHTTPRequestHandler):
    """Another server that answers JSON to everything."""

    said: ClassVar[tuple[int, bytes]] = (200, b"")

    def answer(self) -> None:
        status, body = self.said
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def stranger(status: int, body: bytes) -> Iterator[str]:
    handler = type("Answering", (Stranger,), {"said": (status, body)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FOREIGN = {
    "a list": (200, b'["hello"]'),
    "an object": (200, b'{"hello": "world"}'),
    "names like ours": (
        200,
        b'{"agents": [{}], "breakers": 7, "findings": [1], "spans": {}, "calls": null}',
    ),
    "created": (201, b"null"),
    "a page": (200, b"<html></html>"),
    "not found": (404, b'{"error": "no such page"}'),
    "nested": (500, b"[" * 100_000),
    "nothing": (503, b""),
}
READING = [
    *("agents", "agents list reserve", "agents off x --reason y", "agents on x"),
    *("agents quota x", "agents quota x --units 5", "agents quota x --none"),
    *("breakers", "findings", "chains x", "calls list", "waits", "waits --watch"),
    *("calls show x", "calls show a:b:c:d", "calls settle x --as not-done", "calls settle a:b:c:d --as failed"),
]


@pytest.mark.parametrize("answer", FOREIGN)
def test_another_server_is_not_taken_for_a_gate(
    answer: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I7: no stack trace and no half answer where the address is wrong, but what to look at; of every command."""
    with stranger(*FOREIGN[answer]) as url:
        for command in READING:
            monkeypatch.setattr(sys, "argv", ["agentgate", *command.split(), "--url", url])
            code = run()
            printed = capsys.readouterr()
            assert (code, printed.out) == (3, ""), command
            assert printed.err.startswith(f"agentgate: {url} answers, but it is not an AgentGate gate; "), command


def test_a_call_to_another_server_says_so() -> None:
    """I7: so does the command that speaks the link."""
    with stranger(200, b"{}") as url:
        done = agentgate("call", "--read", "stock", "look", "--timeout", "1", "--url", url)
    assert (done.returncode, done.stdout) == (3, "")
    assert "is no gate" in done.stderr


def test_every_command_that_asks_a_gate_is_tried() -> None:
    """I7: a new command that takes an address is in the list above, or it says here why not."""
    speaking_the_link = {"call", "run"}
    asking = {name for name, command in commands() if any(param.name == "url" for param in command.params)}
    tried = {name for name in asking for line in READING if f"{line} ".startswith(f"{name} ")}
    assert asking - tried == speaking_the_link


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name; a command of a group is also meant by the group."""
    root: Any = typer.main.get_command(app)
    for name, command in root.commands.items():
        parts = getattr(command, "commands", None)
        yield from [(name, command)] if parts is None else [(f"{name} {part}", one) for part, one in parts.items()]
