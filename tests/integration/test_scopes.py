"""Every route and every method of the link, and what a token needs for it; made from the tables that serve them."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from litestar import get
from litestar.handlers import HTTPRouteHandler
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from agentgate.gateway.session import Session
from agentgate.model import AGENT_SCOPE, OBSERVE, OPERATE, SCOPES, SUBMIT
from agentgate.model.link import LINK_PATH, SUBPROTOCOL
from agentgate.server import http
from agentgate.server.api import HANDLERS
from agentgate.server.api.scope import OR, SCOPE_OPTION, requires, scope_of
from tests.integration.real_gate import RunningGate, bearer, make_token, running_gate
from tests.integration.realtime import realtime

PART: Final = re.compile(r"\{(\w+)(?::\w+)?\}")  # of a path that is filled in
WORD: Final = "one"
NOT_LET_IN: Final = (401, 403)
LINK: Final = [Subprotocol(SUBPROTOCOL)]

ROUTES: Final = [
    (str(method), path, handler)
    for handler in HANDLERS
    for path in sorted(handler.paths)
    for method in handler.http_methods
]


def needed(handler: HTTPRouteHandler) -> list[str]:
    """The scopes of which a handler needs one, for the path that the test asks for; none: it is public."""
    scope = scope_of(handler)
    return [] if scope is None else PART.sub(WORD, scope).split(OR)


@pytest.mark.parametrize(("method", "path", "handler"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
@realtime
async def test_every_route_needs_its_scope(method: str, path: str, handler: HTTPRouteHandler, tmp_path: Path) -> None:
    """I6: no token or a wrong one: 401; a token with every scope but the route's: 403; with that scope: let in."""
    file, scopes, address = tmp_path / "tokens.json", needed(handler), PART.sub(WORD, path)
    # An agent's own token may call; that of another agent is no help.
    lacking = make_token(file, "two", *({*SCOPES, f"{AGENT_SCOPE}three"} - {*scopes}))
    enough = make_token(file, "one", *(scopes[:1] or SCOPES))
    async with running_gate(tokens=str(file)) as gate:
        for shown in ({}, bearer("agt_nothing"), bearer(enough[:-1] + "z"), {"Authorization": enough}):
            answer = await gate.get(address, method=method, headers=shown)
            if not scopes:
                assert answer.status not in NOT_LET_IN
                continue
            assert (answer.status, answer.json["code"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
        refused = await gate.get(address, method=method, headers=bearer(lacking))
        if not scopes:
            assert refused.status not in NOT_LET_IN
        else:
            assert (refused.status, refused.json["code"]) == (403, "forbidden")
            assert all(scope in refused.json["detail"] for scope in scopes)
        assert (await gate.get(address, method=method, headers=bearer(enough))).status not in NOT_LET_IN


@realtime
async def test_what_is_no_route_is_hidden_from_strangers(tmp_path: Path) -> None:
    """I6: without a token even an unknown path or method is 401; only what is public is answered."""
    make_token(file := tmp_path / "tokens.json", "ops", OBSERVE)
    async with running_gate(tokens=str(file)) as gate:
        for method, path in (
            ("GET", "/nowhere"),
            ("OPTIONS", "/v1/agents"),
            ("DELETE", "/v1/agents"),
            ("GET", "//healthz"),
        ):
            assert (await gate.get(path, method=method)).status == 401
        assert [(await gate.get(path)).status for path in ("/healthz", "/readyz")] == [200, 200]
        assert gate.server.links.doorkeeper.refused == {"unauthorized": 4, "forbidden": 0}


def test_a_route_without_a_scope_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: whoever forgets to say what a route needs learns of it at the start, not from an incident."""

    @get("/v1/forgotten", sync_to_thread=False)
    def forgotten() -> str:
        return ""

    monkeypatch.setattr(http, "HANDLERS", [*HANDLERS, forgotten])
    with pytest.raises(TypeError, match="does not say what scope it needs: give it `opt=requires"):
        http.build_http(None, None, None, None, None, lambda: False)  # type: ignore[arg-type] # it does not come to that


def test_a_scope_may_name_a_part_of_the_path() -> None:
    """I6: an agent that registers over HTTP needs the scope of the very name in the path."""
    assert requires(AGENT_SCOPE + "{agent}")[SCOPE_OPTION] == "agent:{agent}"


# --- the link


class Said:
    """One connection to `/link` that shows a token."""

    def __init__(self, gate: RunningGate, headers: dict[str, str]) -> None:
        self._dial = connect(
            f"ws://127.0.0.1:{gate.server.port}{LINK_PATH}", subprotocols=LINK, proxy=None, additional_headers=headers
        )

    async def hello(self, agent: str, *, card: bool) -> tuple[ClientConnection, dict[str, Any]]:
        """Say hello; the connection, and the gate's answer."""
        link = await self._dial
        hello = {"agent": agent, "instance": "i1", **({"card": {"agent": agent}} if card else {})}
        await link.send(message("hello", hello))
        return link, json.loads(await link.recv())


def message(method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})


PARAMS: Final[dict[str, dict[str, Any]]] = {
    "hello": {"agent": "one", "instance": "i1"},
    "call": {"target": "nobody", "task_type": "t", "effect": "read"},
    "beat": {},
    "progress": {"unit": "u", "note": "n"},
    "cancel": {"id": "c"},
    "lock": {"names": ["stock"], "scope": "session"},
    "unlock": {"id": "c"},
    "wait_for": {"name": "n"},
    "signal": {"name": "n"},
    "wait": {"id": "w", "any_of": ["c"]},
    "unwait": {"id": "w"},
    "drain": {},
    "routes": {},
}


@pytest.mark.parametrize("card", [False, True])
@pytest.mark.parametrize("method", sorted(Session.METHODS))
@realtime
async def test_every_method_of_the_link_needs_its_scope(method: str, card: bool, tmp_path: Path) -> None:
    """I6: no link without a token; none of its methods without the scope for one's name; all of them with it."""
    file, needs = tmp_path / "tokens.json", f"{AGENT_SCOPE}one" if card else SUBMIT
    lacking = make_token(file, "one", *({SUBMIT, OPERATE, OBSERVE, f"{AGENT_SCOPE}two"} - {needs}))
    enough = make_token(file, "one", needs)
    async with running_gate(tokens=str(file)) as gate:
        for shown in ({}, bearer("agt_nothing"), bearer(enough[:-1] + "z")):
            with pytest.raises(InvalidStatus) as refused:
                await Said(gate, shown).hello("one", card=card)
            assert refused.value.response.status_code == 401
            assert refused.value.response.headers["WWW-Authenticate"] == "Bearer"
        link, answer = await Said(gate, bearer(lacking)).hello("one", card=card)
        assert answer["error"]["data"]["code"] == "forbidden"
        assert needs in answer["error"]["message"]
        with contextlib.suppress(ConnectionClosed):
            await link.send(message(method, PARAMS[method]))
        with pytest.raises(ConnectionClosed):
            await link.recv()
        assert gate.platform.gateway.counters.calls == 0
        link, answer = await Said(gate, bearer(enough)).hello("one", card=card)
        assert answer["result"]["agent"] == "one"
        await link.send(message(method, PARAMS[method]))
        await link.send(message("routes", {}))
        said = ""
        while '"routes"' not in said:
            said += str(await link.recv())
        assert "unauthorized" not in said
        assert "forbidden" not in said
        assert gate.platform.gateway.counters.calls == (method == "call")
        await link.close()


def test_the_scope_test_knows_every_method() -> None:
    """I6: a new method of the link has to say here what it is sent with."""
    assert sorted(PARAMS) == sorted(Session.METHODS)
