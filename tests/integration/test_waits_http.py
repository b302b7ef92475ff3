"""Who waits for whom, over a real socket: the picture, the stream, whose they are, and the commands."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import threading
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agentgate import Agent, Context, Gate
from agentgate.cli import gate_api
from agentgate.cli.chains import chains
from agentgate.cli.exits import CommandError
from agentgate.cli.waits import waits
from agentgate.model import AGENT_SCOPE, OBSERVE, SUBMIT
from agentgate.server.token_file import change
from tests.integration.real_gate import RunningGate, bearer, make_token, running_agent, running_gate
from tests.integration.realtime import realtime


class Desk:
    """Two agents: `writer` asks `editor`, who holds on to the page until it is told to let go."""

    def __init__(self) -> None:
        self.has_page = asyncio.Event()
        self.lets_go = asyncio.Event()
        self.writer, self.editor = Agent("writer"), Agent("editor", concurrency=1)

        @self.writer.handles("draft")
        async def draft(topic: str, ctx: Context) -> str:
            return str(await ctx.call("editor", "improve", ctx.business_key, topic))

        @self.editor.handles("improve")
        async def improve(topic: str, ctx: Context) -> str:
            self.has_page.set()
            await self.lets_go.wait()
            return topic.upper()


@contextlib.asynccontextmanager
async def standing_wait(gate: RunningGate) -> AsyncIterator[Desk]:
    """A page that the editor has, and whoever waits for it."""
    desk = Desk()
    async with (
        running_agent(gate, desk.writer),
        running_agent(gate, desk.editor, "i2"),
        Gate(gate.url, name="shop") as shop,
    ):
        page = asyncio.create_task(shop.call("writer", "draft", "page_1", "spring"))
        await desk.has_page.wait()
        yield desk
        desk.lets_go.set()
        await page


class Stream:
    """The events of a stream, as they come, read by a thread."""

    def __init__(self, gate: RunningGate, headers: dict[str, str] | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        self.over = threading.Event()
        request = urllib.request.Request(  # noqa: S310 - our own loopback
            f"{gate.url}/v1/waits/stream", headers=headers or {}
        )
        self._thread = threading.Thread(target=self._read, args=(request,), daemon=True)
        self._thread.start()

    def closed(self) -> list[str]:
        """The waits that are over, by their ids."""
        return sorted(name for event in self.events for name in event["data"].get("closed", ()))

    def _read(self, request: urllib.request.Request) -> None:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - our own loopback
            self.type = answer.headers["content-type"]
            event: dict[str, Any] = {}
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                elif "data" in event:
                    self.events.append({**event, "data": json.loads(event["data"])})
                    event = {}
        self.over.set()


def who(waits_shown: list[dict[str, Any]]) -> list[tuple[str, str, list[str]]]:
    return [
        (wait["waiter"]["agent"], wait["target"], [party["agent"] for party in wait["holders"]]) for wait in waits_shown
    ]


@realtime
async def test_who_waits_for_whom_can_be_asked() -> None:
    """H2, H3: the picture names units, callers and holders; the chain of the page shows the same before any span."""
    async with running_gate() as gate, standing_wait(gate):
        picture = (await gate.get("/v1/waits")).json
        assert who(picture["waits"]) == [("writer", "editor", ["editor"]), ("shop", "writer", ["writer"])]
        assert (picture["mode"], picture["knots"], picture["truncated"]) == ("enforce", [], False)
        few = (await gate.get("/v1/waits?limit=1")).json
        assert (len(few["waits"]), few["truncated"], few["seq"] >= picture["seq"]) == (1, True, True)
        for asked in ("page_1", "shop:draft:page_1:run", picture["waits"][0]["trace_id"]):
            chain = (await gate.get(f"/v1/chains/{asked}")).json
            assert (chain["spans"], who(chain["waits"])) == ([], who(picture["waits"]))
        for wrong in ("0", "1001", "x"):
            assert (await gate.get(f"/v1/waits?limit={wrong}")).status == 400
        families = text_string_to_metric_families((await gate.get("/metrics")).body.decode())
        values = {sample.name: sample.value for family in families for sample in family.samples}
        assert (values["agentgate_open_waits"], values["agentgate_waiting_units"]) == (1, 1)
        assert values["agentgate_deadlock_signal_seconds"] == values["agentgate_deadlock_phantoms_total"] == 0


@realtime
async def test_who_waits_for_whom_can_be_followed() -> None:
    """H3: a snapshot, then what changes, as server-sent events; the stream ends when the gate stops."""
    async with running_gate() as gate:
        async with standing_wait(gate) as desk:
            stream = Stream(gate, {"Last-Event-ID": "1"})
            await gate.until(lambda: bool(stream.events))
            first = stream.events[0]
            assert (stream.type, first["event"]) == ("text/event-stream", "snapshot")
            assert len(first["data"]["waits"]) == 2
            desk.lets_go.set()
            both = sorted(wait["id"] for wait in first["data"]["waits"])
            await gate.until(lambda: stream.closed() == both)
            told = stream.events[1]
            assert (told["event"], told["data"]["after"]) == ("difference", first["data"]["seq"])
            assert int(told["id"]) > int(first["id"])
        assert not stream.over.is_set()
    assert await asyncio.to_thread(stream.over.wait, 10)


@realtime
async def test_a_watcher_that_hangs_up_is_forgotten() -> None:
    """B14: after the last watcher has gone, nothing is done for anybody."""
    async with running_gate() as gate:
        events = gate_api.events(gate.url, "v1", "waits", "stream")
        name, _ = await asyncio.to_thread(next, events)
        assert name == "snapshot"
        feed = gate.server.wait_feed
        assert len(feed) == 1
        events.close()
        await gate.until(lambda: len(feed) == 0)


@realtime
async def test_each_tenant_sees_its_own_and_only_with_the_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: the waits of others are not told, a token without `observe` is refused, and a revoked one ends its stream."""
    file = tmp_path / "tokens.json"
    at_work = make_token(file, "shop", SUBMIT, *(AGENT_SCOPE + name for name in ("writer", "editor")))
    ops = {tenant: bearer(make_token(file, f"ops_{tenant}", OBSERVE, tenant=tenant)) for tenant in ("default", "acme")}
    monkeypatch.setenv("AGENTGATE_TOKEN", at_work)
    async with running_gate(tokens=str(file)) as gate, standing_wait(gate):
        for path in ("/v1/waits", "/v1/waits/stream", "/v1/chains/page_1"):
            assert (await gate.get(path)).status == 401
            assert (await gate.get(path, headers=bearer(at_work))).status == 403
        streams = {tenant: Stream(gate, headers) for tenant, headers in ops.items()}
        await gate.until(lambda: all(stream.events for stream in streams.values()))
        for tenant, count in (("default", 2), ("acme", 0)):
            assert len((await gate.get("/v1/waits", headers=ops[tenant])).json["waits"]) == count
            assert len(streams[tenant].events[0]["data"]["waits"]) == count
        assert (await gate.get("/v1/chains/page_1", headers=ops["acme"])).status == 404
        change(file, lambda tokens: tuple(token for token in tokens if token.tenant != "acme"))
        assert await asyncio.to_thread(streams["acme"].over.wait, 10)
        assert not streams["default"].over.is_set()


# --- the commands


@realtime
async def test_the_command_draws_a_tree() -> None:
    """H3: roots on top, who waits for whom below, how long and until when."""
    async with running_gate() as gate:
        assert await _printed(waits, gate.url) == ""
        async with standing_wait(gate):
            lines = (await _printed(waits, gate.url)).splitlines()
            assert lines[0].startswith("shop → writer draft page_1  for ")
            assert lines[1].startswith("└── writer draft page_1 → editor improve page_1  for ")
            assert ", until " in lines[1]
            assert lines[2] == "    └── editor improve page_1  at work"
            chain = (await _printed(chains, "page_1", gate.url)).splitlines()
            assert chain[0] == "open now:"
            assert len(chain) == 4
            assert len(json.loads(await _printed(waits, gate.url, as_json=True))["waits"]) == 2


@realtime
async def test_the_command_follows_until_the_gate_ends() -> None:
    """H3: with --json one object a line; when the gate stops, the command says so."""
    async with running_gate() as gate:
        follows = asyncio.create_task(_printed(waits, gate.url, watch=True, as_json=True))
        await gate.until(lambda: len(gate.server.wait_feed) == 1)
        async with standing_wait(gate):
            await asyncio.sleep(0.5)
    with pytest.raises(CommandError, match="ended the stream"):
        await follows


async def _printed(command: Any, *arguments: Any, **more: Any) -> str:
    """What a command prints, run in a thread, as the gate is in this one."""
    out = io.StringIO()

    def run() -> None:
        with contextlib.redirect_stdout(out):
            command(
                *arguments, **{"watch": False, "limit": 100, "as_json": False, **more} if command is waits else more
            )

    await asyncio.to_thread(run)
    return out.getvalue()
