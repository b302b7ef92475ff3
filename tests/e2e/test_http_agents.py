"""Agents without our SDK as separate processes: the page that describes them is followed word by word."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.command import PATIENCE_S, agentgate, environment
from tests.e2e.live_gate import ROOT, LiveGate, free_port

PAGE: Final = (ROOT / "docs" / "reference" / "http-agents.md").read_text(encoding="utf-8")
FILE: Final = re.compile(r"<!-- file: (?P<name>\S+) -->\n```python\n(?P<text>.*?)\n```\n", re.DOTALL)
CONSOLE: Final = re.compile(r"^\$ (.*)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there to follow the page with")

# A seller that has one effect a key, and takes its time; its check finds out what happened.
SELLER: Final = """
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Seller(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        key = self.headers["agentgate-business-key"] or ""
        if self.path == "/sell":
            with open("effects", "a") as file:
                file.write(key + "\\n")
            time.sleep(float(os.environ["TAKES_S"]))
            self.answer("sold " + key)
        else:
            sold = open("effects").read().split()
            self.answer("sold " + key if key in sold else None)

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Seller).serve_forever()
"""


@contextlib.contextmanager
def plain_agent(folder: Path, name: str, text: str, **more: str) -> Iterator[int]:
    """A program that knows nothing of the gate, on a port of its own."""
    (folder / name).write_text(text, encoding="utf-8")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-I", name], cwd=folder, env=environment(PORT=str(port), **more), stderr=subprocess.DEVNULL
    )
    try:
        wait_for(port)
        yield port
    finally:
        process.kill()
        process.wait()


def wait_for(port: int) -> None:
    """Until somebody listens there."""
    for _ in range(500):
        with contextlib.closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("the agent does not listen")


def register(gate: LiveGate, port: int, agent: str, skills: list[dict[str, Any]]) -> None:
    """Register with nothing but the standard library."""
    body = json.dumps({"endpoint": f"http://127.0.0.1:{port}", "skills": skills}).encode()
    request = urllib.request.Request(f"{gate.url}/v1/agents/{agent}/instances/{agent}-1", body, method="PUT")  # noqa: S310 - our own loopback
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - our own loopback
        assert answer.status == 200


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    """I1, I6: the agent as printed, registered by curl, is called as the page says, answered once, and leaves."""
    [found] = FILE.finditer(PAGE)
    with plain_agent(tmp_path, found["name"], found["text"]) as port, LiveGate(tmp_path) as gate:
        lines = [line.replace(":7070", f":{gate.port}").replace(":9000", f":{port}") for line in CONSOLE.findall(PAGE)]
        put, call, again, delete = (shlex.split(line) for line in lines)
        shown = re.search(r"^\$ curl -X PUT.*\n(\{.*\})$", PAGE, re.MULTILINE)
        assert shown is not None
        assert json.loads(_run(put)) == json.loads(shown[1])

        environ = {"AGENTGATE_URL": gate.url}
        answers = [agentgate(*line[1:], environ=environ) for line in (call, again)]
        assert [answer.returncode for answer in answers] == [0, 0], answers
        receipt = {"shelf": "A7", "for": '"cli:reserve:order_1:run"'}
        assert [json.loads(answer.stdout) for answer in answers] == [receipt] * 2

        more = agentgate("call", "stock_agent", "reserve", "order_2", '{"sku": "lamp", "n": 4}', environ=environ)
        assert (more.returncode != 0, "sold out" in more.stderr) == (True, True)
        assert f"http://127.0.0.1:{port}" in agentgate("agents", environ=environ).stdout
        assert _run(delete) == ""
        assert gate.get("/v1/agents")["agents"] == []


def test_a_gate_that_is_killed_finds_its_http_agents_and_does_nothing_twice(tmp_path: Path) -> None:
    """C4, G1: kill -9 while a write runs at an HTTP agent: after the restart it is called without renewing, the write
    is asked about by its check, and its effect happened once; without a check nobody can tell, and it is said so.
    """
    with plain_agent(tmp_path, "seller.py", SELLER, TAKES_S="3") as port, LiveGate(tmp_path) as gate:
        register(
            gate, port, "checked", [{"task_type": "sell", "check": True}, {"task_type": "check:sell", "effect": "read"}]
        )
        register(gate, port, "unchecked", [{"task_type": "sell"}])
        environ = {"AGENTGATE_URL": gate.url}
        for agent in ("checked", "unchecked"):
            done = agentgate("call", agent, "sell", f"key_of_{agent}", "1", "--timeout", "0.5", environ=environ)
            assert done.returncode != 0
        gate.kill()
        gate.start()
        known = agentgate("call", "checked", "sell", "key_of_checked", "1", environ=environ)
        unknown = agentgate("call", "unchecked", "sell", "key_of_unchecked", "1", environ=environ)
        fresh = agentgate("call", "checked", "sell", "key_after", "1", environ=environ)
        assert (known.returncode, known.stdout) == (0, '"sold key_of_checked"\n')
        assert (unknown.returncode != 0, "outcome_unknown" in unknown.stderr) == (True, True)
        assert (fresh.returncode, fresh.stdout) == (0, '"sold key_after"\n')
        effects = (tmp_path / "effects").read_text(encoding="utf-8").split()
        assert sorted(effects) == ["key_after", "key_of_checked", "key_of_unchecked"]


def test_a_registration_that_was_confirmed_is_on_disk(tmp_path: Path) -> None:
    """A1, G1: kill -9 right behind the answer forgets neither that an instance has come nor that it has left."""
    with LiveGate(tmp_path) as gate:
        for number in range(3):
            register(gate, 9, f"agent_{number}", [{"task_type": "sell"}])
            gate.kill()
            gate.start()
            assert [agent["agent"] for agent in gate.get("/v1/agents")["agents"]] == [f"agent_{number}"]
            path = f"{gate.url}/v1/agents/agent_{number}/instances/agent_{number}-1"
            with urllib.request.urlopen(urllib.request.Request(path, method="DELETE"), timeout=5) as answer:  # noqa: S310 - our own loopback
                assert answer.status == 204


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout
