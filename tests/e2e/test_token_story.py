"""Tokens as people use them: made, shown, listed, revoked; and nowhere to be read afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import agentgate, running
from tests.e2e.live_gate import free_port

# An address of this machine that a gate without tokens does not listen on; other systems have only the usual one.
ADDRESS = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"

STOCK = """
from agentgate import Agent, Context

agent = Agent("stock")

@agent.handles("reserve")
async def reserve(sku: str, ctx: Context) -> str:
    if sku == "never":
        raise ValueError(f"no {sku}")
    return f"shelf of {sku}"

if __name__ == "__main__":
    agent.run()
"""


def made(folder: Path, *arguments: str) -> str:
    """A new token."""
    done = agentgate("token", "create", *arguments, "--file", "tokens.json", cwd=folder)
    assert (done.returncode, len(done.stdout.split())) == (0, 1), done.stderr
    return done.stdout.strip()


class Told:
    """Everything that any command has said, to be searched afterwards."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.texts: list[str] = []

    def __call__(self, *arguments: str, token: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        environ = {"AGENTGATE_URL": self.url, "AGENTGATE__SERVER__TOKENS": "tokens.json"}
        done = agentgate(*arguments, cwd=self.folder, environ=environ | ({"AGENTGATE_TOKEN": token} if token else {}))
        self.texts += [done.stdout, done.stderr]
        assert done.returncode == code, done.stderr
        return done


@pytest.mark.timeout(300)
def test_the_life_of_tokens(tmp_path: Path) -> None:
    """I6: create, call, observe, be refused, revoke; afterwards no output, log, span or file holds a secret."""
    (tmp_path / "stock.py").write_text(STOCK, encoding="utf-8")
    stock = made(tmp_path, "stock", "--scope", "agent:stock", "--expires", "90d")
    shop = made(tmp_path, "shop", "--scope", "submit")
    ops = made(tmp_path, "ops", "--scope", "observe", "--scope", "operate")
    foreign = made(tmp_path, "ops", "--scope", "observe", "--tenant", "blue")
    (tmp_path / "shop.token").write_text(shop + "\n", encoding="utf-8")
    tell = Told(tmp_path, f"http://{ADDRESS}:{free_port()}")
    address = ["--host", ADDRESS, "--port", tell.url.rpartition(":")[2]]
    serve = ["serve", *address, "--tokens", "tokens.json", "--log-level", "debug", "--json"]
    agent_sees = {"AGENTGATE_URL": tell.url, "AGENTGATE_TOKEN": stock}
    with running(*serve, cwd=tmp_path) as gate:
        gate.out.until("url")
        with running("run", "stock.py", cwd=tmp_path, environ=agent_sees) as agent:
            agent.err.until("stock: connected to")
            assert json.loads(tell("call", "stock", "reserve", "o1", '"A-7"', token=shop).stdout) == "shelf of A-7"
            again = tell("--token-file", "shop.token", "call", "stock", "reserve", "o1", '"A-7"', "--json")
            assert json.loads(again.stdout)["value"] == "shelf of A-7"
            tell("call", "stock", "reserve", "o2", '"never"', token=shop, code=1)
            refusals = [
                tell("call", "stock", "reserve", "o1", '"A-7"', code=2).stderr,
                tell("call", "stock", "reserve", "o1", '"A-7"', token=ops, code=2).stderr,
                tell("call", "stock", "reserve", "o1", '"A-7"', token=shop[:-1], code=2).stderr,
                tell("agents", token=shop, code=2).stderr,
                tell("agents", code=2).stderr,
            ]
            expected = (
                "there is no token",
                "lacks the scope submit",
                "unknown, revoked",
                "lacks the scope observe",
                "no",
            )
            for said, sentence in zip(refusals, expected, strict=True):
                assert sentence in said
            assert "stock" in tell("agents", token=ops).stdout
            assert "shop:reserve:o1:run" in tell("chains", "o1", "--json", token=ops).stdout
            assert "stock" in tell("breakers", token=ops).stdout
            assert "no agents" in tell("agents", token=foreign).stderr
            tell("chains", "o1", token=foreign, code=1)
            tell("config", "show", "server")
            tell("config", "check", "--json")
            listed = json.loads(tell("token", "list", "--json").stdout)["tokens"]
            assert [(token["name"], token["tenant"]) for token in listed] == [
                ("stock", "default"),
                ("shop", "default"),
                ("ops", "default"),
                ("ops", "blue"),
            ]
            tell("token", "list")
            tell("token", "revoke", listed[0]["id"])
            tell("token", "revoke", listed[0]["id"], code=1)
            assert "refuses this agent: unauthorized" in agent.err.until("refuses this agent")
            agent.err.until("stock: gave up")
            tell("call", "stock", "reserve", "o3", '"A-7"', token=shop, code=1)
        tell.texts += [*agent.out.all(), *agent.err.all()]
        gate.stop()
    tell.texts += [*gate.out.all(), *gate.err.all()]
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "shop.token"}
    assert any("tokens_read" in line for line in gate.err.seen)
    assert any(b"order" in content or b"reserve" in content for content in written.values())
    for token in (stock, shop, ops, foreign):
        secret = token.rpartition("_")[2]
        assert [text for text in tell.texts if secret[:20] in text] == []
        assert [path for path, content in written.items() if secret[:20].encode() in content] == []


def test_a_new_token_is_shown_once_and_counted_in_json(tmp_path: Path) -> None:
    """I6: with --json the document holds the token; `list` never does; names may repeat, for a change of tokens."""
    file = ["--file", "tokens.json"]
    first = json.loads(agentgate("token", "create", "shop", "--scope", "submit", "--json", *file, cwd=tmp_path).stdout)
    assert set(first) == {"id", "name", "tenant", "scopes", "created_at", "expires_at", "token"}
    assert first["token"].startswith(f"agt_{first['id']}_")
    made(tmp_path, "shop", "--scope", "submit", "--scope", "submit", "--expires", "12h")
    [old, new] = json.loads(agentgate("token", "list", "--json", *file, cwd=tmp_path).stdout)["tokens"]
    assert (old["expires_at"], new["scopes"], new["expired"]) == (None, ["submit"], False)
    assert new["expires_at"] - new["created_at"] == pytest.approx(12 * 3600)
    table = agentgate("token", "list", *file, cwd=tmp_path).stdout
    assert "never" in table
    assert first["token"] not in table
    gone = agentgate("token", "revoke", first["id"], "--json", *file, cwd=tmp_path)
    assert json.loads(gone.stdout)["revoked"]["id"] == first["id"]
    (tmp_path / "tokens.json").chmod(0o644)
    refused = agentgate("serve", "--tokens", "tokens.json", cwd=tmp_path)
    assert (refused.returncode, "type: chmod 600 tokens.json" in refused.stderr) == (2, True)
