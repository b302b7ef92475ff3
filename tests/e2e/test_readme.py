"""What README shows is what happens: its files are run, its commands exist, its links lead somewhere."""

from __future__ import annotations

import ast
import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.command import PATIENCE_S, agentgate, environment
from tests.e2e.live_gate import ROOT, free_port, tethered

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
FILE: Final = re.compile(r"<!-- file: (?P<name>\S+) -->\n```python\n(?P<text>.*?)\n```\n", re.DOTALL)
CONSOLE: Final = re.compile(r"```console\n(.*?)```", re.DOTALL)
INLINE: Final = re.compile(r"`(agentgate [^`]+)`")
LINK: Final = re.compile(r"\]\((?!https?:)([^)#]+)")


def command_lines() -> list[list[str]]:
    """What README types after a `$`, as words without comments."""
    lines = [line[2:] for block in CONSOLE.findall(README) for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in lines]


def first_line(*words: str) -> list[str]:
    """The first line that begins with these words; a list of commands comes later."""
    return next(line for line in command_lines() if tuple(line[: len(words)]) == words)


def test_its_agents_and_its_client_do_what_it_says(tmp_path: Path) -> None:
    """C3, I1: `agentgate dev` with the files as printed; the call and the client are answered, a repeat is not run."""
    files = {found["name"]: found["text"] for found in FILE.finditer(README)}
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    dev = first_line("agentgate", "dev")
    assert set(files) == {*dev[2:], "client.py", "test_stock.py"}
    port = free_port()
    environ = {"AGENTGATE_URL": f"http://127.0.0.1:{port}", "AGENTGATE__SERVER__PORT": str(port)}

    with tethered(*dev[1:], cwd=tmp_path, environ=environ) as running:
        for _ in dev[2:]:
            running.err.until(": connected to")
        call = first_line("agentgate", "call")
        receipts = [agentgate(*call[1:], environ=environ, cwd=tmp_path) for _ in range(3)]
        assert [receipt.returncode for receipt in receipts] == [0, 0, 0]
        receipt = {"id": "order_123", "state": "confirmed", "shelf": "A7"}
        assert [json.loads(done.stdout) for done in receipts] == [receipt] * 3

        client = subprocess.run(
            [sys.executable, "client.py"],
            env=environment(**environ),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (client.returncode, client.stderr) == (0, "")
        assert ast.literal_eval(client.stdout) == {"id": "order_124", "state": "confirmed", "shelf": "A7"}

        assert last_lamp(call, environ, tmp_path) == (
            {"id": "order_125", "state": "back_ordered", "because": "rejected"},
            {"id": "order_126", "state": "confirmed", "shelf": "A7"},
        )
        chain = agentgate("chains", "order_123", environ=environ, cwd=tmp_path)
        assert "stock_agent reserve order_123" in chain.stdout
        assert running.stop(signal.SIGINT) == 0


def test_its_test_of_an_agent_passes(tmp_path: Path) -> None:
    """I1: `local_gate`, as shown, needs no gate and no files."""
    for found in FILE.finditer(README):
        (tmp_path / found["name"]).write_text(found["text"] + "\n", encoding="utf-8")
    command = [sys.executable, "test_stock.py"]
    done = subprocess.run(
        command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def last_lamp(call: list[str], environ: dict[str, str], folder: Path) -> tuple[object, object]:
    """Two orders took two of five lamps each, however often they were placed: two are too many now, one is not."""
    answers = []
    for key, n in (("order_125", 2), ("order_126", 1)):
        order = json.dumps({"id": key, "sku": "lamp", "n": n})
        done = agentgate(*call[1:4], key, order, environ=environ, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        answers.append(json.loads(done.stdout))
    return answers[0], answers[1]


def named_commands() -> list[str]:
    """Every command of agentgate that README names, in a console block or in a sentence."""
    lines = [*command_lines(), *(line.split() for line in INLINE.findall(README))]
    words = [line[1:3] for line in lines if line[0] == "agentgate" and len(line) > 1]
    return sorted({" ".join(pair) if pair[0] == "config" else pair[0] for pair in words})


@pytest.mark.parametrize("command", named_commands())
def test_every_command_it_names_exists(command: str) -> None:
    """I4: nothing is announced that is not there."""
    assert agentgate(*command.split(), "--help").returncode == 0


def test_every_make_target_it_names_exists() -> None:
    """`make demo` and its like are targets of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {line[1] for line in command_lines() if line[0] == "make"}
    assert {"demo", "test"} <= named <= targets


def test_every_page_it_points_to_exists() -> None:
    """No link of README leads nowhere."""
    assert [link for link in LINK.findall(README) if not (ROOT / link).exists()] == []
