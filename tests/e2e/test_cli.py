"""The command line as people and scripts use it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.e2e.command import AGENTGATE, agentgate, environment, running

Golden = Callable[[str, str], None]

GROUPS = ("drill", "calls", "token", "config")
COMMANDS = ["serve", "dev", "run", "call", "chains", "waits", "breakers", "findings", "demo", "agents", *GROUPS]
PARTS = [
    *("agents list", "agents off", "agents on", "agents quota"),
    *("drill run", "drill list"),
    *("calls list", "calls show", "calls settle"),
    *("token create", "token list", "token revoke"),
    *("config check", "config show", "config schema", "config suggest"),
]

STOCK = """
from agentgate import Agent, Context, Rejected

stock = Agent("stock", concurrency=2)


@stock.handles("reserve")
async def reserve(sku: str, ctx: Context) -> str:
    if sku == "none":
        raise Rejected("out of stock")
    return f"shelf of {sku}, version 1"


if __name__ == "__main__":
    stock.run()
"""


def stock_file(folder: Path, text: str = STOCK) -> Path:
    path = folder / "stock.py"
    path.write_text(text, encoding="utf-8")
    return path


# --- help and mistakes


@pytest.mark.parametrize("command", ["", *COMMANDS, *PARTS])
def test_every_command_explains_itself(command: str, golden: Golden) -> None:
    """`--help` of each command says what it does, with an example; the texts are reviewed as a whole."""
    done = agentgate(*command.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    golden(f"help/{command.replace(' ', '_') or 'agentgate'}.txt", done.stdout)
    if command not in ("", *GROUPS):
        assert "Example: agentgate " + command in done.stdout


def test_the_help_lists_exactly_the_commands_that_exist() -> None:
    """A part appears in the help only when it exists, and every part appears."""
    listed = agentgate("--help").stdout.partition("Commands:")[2].partition("Exit codes")[0]
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == COMMANDS


def test_the_version_is_the_packages() -> None:
    """`agentgate --version` prints the version and nothing else."""
    done = agentgate("--version")
    assert (done.returncode, done.stdout) == (0, version("agentgate-control-plane") + "\n")


MISTAKES = [
    (["agents", "--url", "http://127.0.0.1:9"], 3),
    (["agents", "--url", "127.0.0.1:9"], 2),
    (["chains"], 2),
    (["call", "stock", "reserve", "order_1", "{x"], 2),
    (["call", "stock", "reserve", "order_1", "@missing.json"], 2),
    (["call", "stock", "reserve", "order_1", "1", "--url", "http://127.0.0.1:9"], 3),
    (["run", "missing.py"], 2),
    (["dev", "missing.py"], 2),
    (["nonsense"], 2),
    (["serve", "--config", "wrong.yaml"], 2),
    (["serve", "--host", "0.0.0.0"], 2),  # noqa: S104 - it is refused
    (["serve", "--tokens", "missing.json"], 2),
    (["serve", "--log-level", "loud"], 2),
    (["token", "create", "shop", "--scope", "everything", "--file", "tokens.json"], 2),
    (["token", "create", "shop", "--scope", "agent:*", "--file", "tokens.json"], 2),
    (["token", "create", "shop", "--scope", "submit", "--expires", "soon", "--file", "tokens.json"], 2),
    (["token", "create", "shop", "--scope", "submit"], 2),
    (["token", "list", "--file", "missing.json"], 2),
    (["token", "revoke", "3f9c02ab17de", "--file", "missing.json"], 2),
    (["--token-file", "missing.txt", "agents"], 2),
    (["config", "check", "--config", "wrong.yaml"], 2),
    (["config", "suggest"], 2),
    (["demo", "--orders", "0"], 2),
]


def test_a_users_mistake_is_one_sentence_and_a_meaningful_exit_code(tmp_path: Path, golden: Golden) -> None:
    """What is wrong, where, what to do next: never a stack trace; the exit code says which kind it was."""
    (tmp_path / "wrong.yaml").write_text("retry: {max_atempts: 3}\n", encoding="utf-8")
    pages: list[str] = []
    for arguments, code in MISTAKES:
        done = agentgate(*arguments, cwd=tmp_path)
        assert "Traceback" not in done.stderr
        assert (done.returncode, done.stdout) == (code, "")
        pages.append(f"$ agentgate {' '.join(arguments)}\n{done.stderr}[{code}]\n")
    golden("mistakes.txt", "\n".join(pages))


def test_the_base_install_says_what_to_install() -> None:
    """Without the extra, the command ends with a sentence that names it."""
    script = "import sys; sys.modules['typer'] = None; from agentgate.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "agentgate: the command line needs 'typer', which the base install leaves out; "
        "type: pip install 'agentgate-control-plane[gate]'\n"
    )


def test_the_configuration_is_checked_without_starting_anything(tmp_path: Path) -> None:
    """`config check` names what has no effect and what is odd, for people and as JSON."""
    file = tmp_path / "gate.yaml"
    file.write_text("store: memory\ndegradation: {recovery: {cooldown_ms: 120000}}\n", encoding="utf-8")
    done = agentgate("config", "check", "--config", str(file))
    assert done.returncode == 0
    assert "gate.yaml:2: degradation.recovery.cooldown_ms is accepted and has no effect" in done.stderr
    assert f"store = memory ({file}:1): a restart forgets every key" in done.stderr
    found = json.loads(agentgate("config", "check", "--config", str(file), "--json").stdout)
    assert len(found["notes"]) == 1
    [odd] = found["contradictions"]
    assert odd["keys"] == [{"name": "store", "value": "memory", "origin": f"{file}:1"}]
    assert odd["remedy"].startswith("name a file")


def test_all_mistakes_of_a_configuration_are_said_at_once(tmp_path: Path) -> None:
    """F26: by `config check` with what is odd beside it, and by `serve`, which does not start."""
    file = tmp_path / "gate.yaml"
    file.write_text("store: memory\nretry: {max_atempts: 3, jitter_ms: many}\n", encoding="utf-8")
    done = agentgate("config", "check", "--config", str(file))
    assert (done.returncode, "store = memory" in done.stderr) == (2, True)
    wrong = [line.removeprefix("error: ") for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(wrong) == 2
    found = agentgate("config", "check", "--config", str(file), "--json")
    said = json.loads(found.stdout)
    assert (found.returncode, said["ok"], said["errors"], len(said["contradictions"])) == (2, False, wrong, 1)
    refused = agentgate("serve", "--config", str(file))
    assert (refused.returncode, refused.stderr.splitlines()) == (2, [f"agentgate: {line}" for line in wrong])


def test_the_configuration_is_shown_with_its_origins(tmp_path: Path) -> None:
    """I7: `config show` tells values, where they come from and what bad ones do; `config schema` is a JSON document."""
    file = tmp_path / "gate.yaml"
    file.write_text("retry: {max_attempts: 2}\n", encoding="utf-8")
    shown = agentgate("config", "show", "retry", "--given", "--config", str(file)).stdout
    assert shown.startswith("retry.max_attempts = 2  (")
    assert "gate.yaml:1; default 3)" in shown
    assert "too high: " in shown
    assert shown.count(" = ") == 1
    keys = json.loads(agentgate("config", "show", "--config", str(file), "--json").stdout)["keys"]
    assert {key["name"]: key["value"] for key in keys}["retry.max_attempts"] == 2
    assert json.loads(agentgate("config", "schema").stdout)["title"] == "AgentGate"
    wrong = agentgate("config", "show", "retries")
    assert (wrong.returncode, "no section or key 'retries'" in wrong.stderr) == (2, True)


def test_a_mistake_is_json_for_machines() -> None:
    """I3: with `--json` an error is one line of JSON on standard output, with the exit code."""
    done = agentgate("agents", "--url", "http://127.0.0.1:9", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["exit_code"], done.stderr) == (3, 3, "")
    assert "127.0.0.1:9" in said["error"]


# --- a gate and an agent


def test_serve_run_call_and_look(tmp_path: Path) -> None:
    """A1, I1: a gate, a supervised agent, calls that succeed, fail and repeat, and everything they left behind."""
    with running("serve", "--port", "0", "--json", cwd=tmp_path) as gate:
        url = json.loads(gate.out.until("url"))["url"]
        with running("run", str(stock_file(tmp_path)), "--url", url, "--json") as agents:
            assert json.loads(agents.out.until("started"))["agent"] == "stock"
            agents.err.until("connected")

            done = agentgate("call", "stock", "reserve", "order_1", '"A-7"', "--url", url)
            assert (done.returncode, json.loads(done.stdout)) == (0, "shelf of A-7, version 1")
            done = agentgate("call", "skill:reserve", "reserve", "order_2", "-", "--url", url, "--json", stdin='"B"')
            assert json.loads(done.stdout) == {"status": "done", "value": "shelf of B, version 1", "degraded": False}
            done = agentgate("call", "stock", "reserve", "order_3", '"none"', "--url", url, "--json")
            assert done.returncode == 1
            assert json.loads(done.stdout)["error"]["code"] == "rejected"
            done = agentgate("call", "nobody", "reserve", "order_4", "--url", url, "--timeout", "0.5")
            assert done.returncode == 1
            assert "no_route" in done.stderr
            assert "nothing was sent" in done.stderr

            found = json.loads(agentgate("agents", "--url", url, "--json").stdout)
            assert [agent["agent"] for agent in found["agents"]] == ["stock"]
            assert "stock  standard" in agentgate("agents", "reserve", "--url", url).stdout
            assert agentgate("agents", "other", "--url", url).stdout == ""

            quota = agentgate("agents", "quota", "stock", "--units", "50", "--per", "1m", "--url", url)
            assert quota.stderr == "stock may be asked for 50 units in any 60 s\n"
            assert agentgate("agents", "quota", "stock", "--url", url).stderr == quota.stderr
            assert "has no quota" in agentgate("agents", "quota", "stock", "--none", "--url", url).stderr
            assert agentgate("findings", "--url", url).stderr == "nothing was noticed so far\n"
            assert agentgate("agents", "off", "stock", "--reason", "ticket 7", "--url", url).returncode == 0
            assert "off by somebody on this machine: ticket 7" in agentgate("agents", "--url", url).stdout
            assert "ticket 7" in agentgate("call", "stock", "reserve", "order_5", '"A"', "--url", url).stderr
            assert json.loads(agentgate("agents", "on", "stock", "--url", url, "--json").stdout)["on"]
            missing = agentgate("agents", "off", "nobody", "--reason", "ticket 7", "--url", url)
            assert (missing.returncode, "no agent 'nobody'" in missing.stderr) == (1, True)
            chain = agentgate("chains", "order_1", "--url", url)
            assert "cli → stock reserve order_1  done" in chain.stdout
            assert "└── attempt 1 at " in chain.stdout
            assert agentgate("chains", "nothing", "--url", url).returncode == 1
            breakers = json.loads(agentgate("breakers", "stock", "--url", url, "--json").stdout)["breakers"]
            assert {breaker["state"] for breaker in breakers} == {"closed"}
            assert "closed" in agentgate("breakers", "--url", url).stdout

            few = agentgate("config", "suggest", cwd=tmp_path)
            assert (few.returncode, few.stdout) == (0, "")
            assert "nothing about rate_limit.per_second: " in few.stderr
            assert "nothing is proposed" in few.stderr

            assert agents.stop() == 0
            assert json.loads(agents.out.until("stopped"))["exit_code"] == 0
        assert gate.stop(signal.SIGINT) == 0
    assert all("shelf of" not in line for line in gate.err.all())


def test_a_store_that_was_not_there_is_said_to_be_new(tmp_path: Path) -> None:
    """I7: a misspelt path is seen on the first line, and a gate that finds its store says nothing of the kind."""
    for name, said in (
        ("sqlite:var/deep/gate.sqlite", " (new, in the new folder var/deep)"),
        ("sqlite:var/deep/gate.sqlite", ""),
        ("sqlite:var/deep/gates.sqlite", " (new)"),
        ("memory", ""),
    ):
        with running("serve", "--port", "0", "--store", name, cwd=tmp_path) as gate:
            assert gate.err.until("Ctrl-C").endswith(f", store {name}{said}; Ctrl-C stops it")
            assert gate.stop() == 0


DESK = """
import time
from pathlib import Path

from agentgate import Agent, SyncContext

desk = Agent("desk", concurrency=1)


@desk.handles("draft")
def draft(is_last: bool, ctx: SyncContext) -> str:
    if not is_last:
        return str(ctx.call("shelf", "draft", ctx.business_key, True))
    while not Path("go").exists():
        time.sleep(0.05)
    return "drafted"


if __name__ == "__main__":
    desk.run()
"""


def test_who_waits_for_whom_is_seen_and_followed(tmp_path: Path) -> None:
    """H3: two processes, one of which waits for the other: as a tree, as JSON, in the chain, and until Ctrl-C."""
    files = [tmp_path / f"{name}.py" for name in ("desk", "shelf")]
    for file in files:
        file.write_text(DESK.replace('"desk"', f'"{file.stem}"'), encoding="utf-8")
    with running("serve", "--port", "0", "--json", "--store", "memory", cwd=tmp_path) as gate:
        url = json.loads(gate.out.until("url"))["url"]
        said = agentgate("waits", "--url", url)
        assert (said.returncode, said.stdout, said.stderr) == (0, "", "nobody waits for anybody\n")
        with (
            running("run", *map(str, files), "--url", url, cwd=tmp_path) as agents,
            running("waits", "--watch", "--json", "--url", url) as followed,
            running("waits", "--watch", "--url", url) as drawn,
        ):
            for _ in files:
                agents.err.until(": connected to")
            assert json.loads(followed.out.until("snapshot"))["waits"] == []
            assert drawn.out.until("at 20").endswith("Z"), "each picture in a pipe has its time"
            drawn.out.until("nobody waits")
            with running("call", "desk", "draft", "page_1", "false", "--url", url) as call:
                assert json.loads(followed.out.until('"target":"shelf"'))["event"] == "difference"
                drawn.out.until("└── desk draft page_1 → shelf draft page_1  for ")
                drawn.out.until("    └── shelf draft page_1  at work")
                shown = agentgate("waits", "--url", url).stdout.splitlines()
                assert [line.partition("  for ")[0] for line in shown] == [
                    "cli → desk draft page_1",
                    "└── desk draft page_1 → shelf draft page_1",
                    "    └── shelf draft page_1  at work",
                ]
                assert agentgate("chains", "page_1", "--url", url).stdout.splitlines()[0] == "open now:"
                for command in (followed, drawn):
                    assert command.stop(signal.SIGINT) == 0
                    assert command.err.all() == []
                (tmp_path / "go").touch()
                call.out.until("drafted")
        assert gate.stop(signal.SIGINT) == 0


def test_a_second_gate_on_the_same_store_says_so(tmp_path: Path) -> None:
    """One gate a store: the second ends with a sentence, the first goes on."""
    with running("serve", "--port", "0", "--json", cwd=tmp_path) as gate:
        gate.out.until("url")
        second = agentgate("serve", "--port", "0", cwd=tmp_path)
        assert second.returncode == 2
        assert "Traceback" not in second.stderr
        assert "agentgate.sqlite" in second.stderr
        assert gate.stop() == 0


def test_dev_restarts_an_agent_when_its_file_changes(tmp_path: Path) -> None:
    """`dev` is serve, run and reload: a changed handler answers without anybody typing anything."""
    file = stock_file(tmp_path)
    with running("dev", str(file), "--port", "0", "--store", "memory") as dev:
        url = dev.err.until("http://").split()[1].rstrip(",")
        dev.err.until("connected")
        stock_file(tmp_path, STOCK.replace("version 1", "version 2"))
        dev.err.until("restarting")
        dev.err.until("connected")
        done = agentgate("call", "stock", "reserve", "order_1", '"A-7"', "--url", url)
        assert json.loads(done.stdout) == "shelf of A-7, version 2"
        assert dev.stop(signal.SIGINT) == 0


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`agentgate agents | head -0` ends without a trace."""
    with running("serve", "--port", "0", "--store", "memory", "--json") as gate:
        url = json.loads(gate.out.until("url"))["url"]
        piped = subprocess.run(
            ["sh", "-c", f"{AGENTGATE} agents --json --url {url} | head -c 0"],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert piped.stderr == ""
