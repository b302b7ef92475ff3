"""The messages of the link, byte by byte: SDKs in other languages depend on them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from agentgate.gateway.frames import ErrorResponse, Message, Response, encode
from agentgate.model import Card, Outcome, Route, RouteSnapshot, Skill, failure, problem
from agentgate.model.link import (
    PROBE_ID,
    AckParams,
    Answer,
    BeatParams,
    CallParams,
    CancelParams,
    DrainParams,
    HelloParams,
    InvokeParams,
    LockGrant,
    LockLostParams,
    LockParams,
    LockReport,
    ProbeAnswer,
    ProbeParams,
    ProgressParams,
    ProtocolProblem,
    Routes,
    RoutesParams,
    SignalParams,
    StopParams,
    UnitReport,
    UnlockParams,
    UnwaitParams,
    WaitForParams,
    WaitParams,
    Welcome,
)

SKILL = Skill(task_type="reserve", timeout_s=20.0, check=True, input_schema={"type": "object"})
CARD = Card(agent="stock_agent", tier="core", concurrency=4, skills=(SKILL,))

AGENT_TO_GATE = (
    Message("hello", HelloParams(agent="shop", instance="shop-1"), "h1"),
    Message(
        "hello",
        HelloParams(
            agent="stock_agent",
            instance="s-1",
            card=CARD,
            units=(
                UnitReport(unit="u1", key="shop:reserve:o1:run", token="t", remaining_ms=900),
                UnitReport(unit="u2", key="shop:reserve:o2:run", token="t", answer=Answer(value=1, seq=7)),
            ),
            calls=("s-1.4",),
            locks=(
                LockReport(id="s-1.2", names=("invoices", "stock"), epoch=9, unit="u1"),
                LockReport(id="s-1.3", names=("till",), mode="shared", scope="session", epoch=7),
            ),
        ),
        "h2",
    ),
    Message("lock", LockParams(names=("stock", "invoices"), token="t"), "k1"),
    Message("lock", LockParams(names=("till",), mode="shared", scope="session", timeout_ms=500, age_ms=20), "k2"),
    Message("unlock", UnlockParams(id="k1")),
    Message("call", CallParams(target="stock_agent", task_type="reserve", business_key="o1", payload={"n": 2}), "c1"),
    Message("call", CallParams(target="skill:look", task_type="look", effect="read", timeout_ms=500, token="t"), "c2"),
    Message("call", CallParams(target="review", task_type="check", business_key="o1", token="t", awaited=False), "c3"),
    Message("wait_for", WaitForParams(name="materials.sent", about="o1", token="t", timeout_ms=500), "w1"),
    Message("wait_for", WaitForParams(name="done", about="o1", from_agent="review", token="t", awaited=False), "w2"),
    Message("signal", SignalParams(name="materials.sent", about="o1", value={"n": 2}, to="review", token="t"), "s1"),
    Message("wait", WaitParams(id="w3", any_of=("c3", "w2"))),
    Message("unwait", UnwaitParams(id="w3")),
    Message("cancel", CancelParams(id="c1")),
    Message("progress", ProgressParams(unit="u1", note="3 of 10")),
    Message("beat", BeatParams(units=2, lag_ms=0.5)),
    Message("drain", DrainParams(reason="deploy")),
    Message("routes", RoutesParams(version=3), "r1"),
    Response("u1", Answer(value={"shelf": "A7"}, seq=1, handler_ms=12.5)),
    Response("u2", Answer(error=problem("rejected", sent=True, detail="sold out"), seq=2)),
    Response("u3", Answer(unseen=True)),
    Response(PROBE_ID, ProbeAnswer(units={"u1": "running", "u2": "waiting", "u9": "unknown"}, lag_ms=5012.0)),
)
GATE_TO_AGENT = (
    Response("h1", Welcome(session="gate:3:s-1", gateway="gate", gateway_epoch=3, acked=6, unknown_units=("u9",))),
    Message(
        "invoke",
        InvokeParams(
            task_type="reserve",
            caller="shop",
            payload={"n": 2},
            business_key="o1",
            key="shop:reserve:o1:run",
            remaining_ms=29_950,
            token="t",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        "u1",
    ),
    Message("stop", StopParams(unit="u1", kind="expire", reason="its deadline has passed")),
    Message("probe", ProbeParams(units=("u1", "u2", "u9")), PROBE_ID),
    Message("ack", AckParams(seq=7)),
    Message("lock_lost", LockLostParams(id="k1", reason="its lease ended")),
    Response("k1", Outcome(value=LockGrant(epoch=10, lease_ms=30_000))),
    Response(
        "h2",
        Welcome(session="gate:4:s-1", gateway="gate", gateway_epoch=4, unknown_units=("u1",), lost_locks=("s-1.2",)),
    ),
    Message("drain", DrainParams(reason="4 units did not stop when told to", restart=True)),
    Response("c1", Outcome(value={"shelf": "A7"}, key="shop:reserve:o1:run")),
    Response("c2", failure("breaker_open", retry_after_s=9.5, detail="stock_agent is failing")),
    Response("c4", Outcome(value="later", degraded=True, key="shop:reserve:o2:run")),
    Response("w1", Outcome(value={"n": 2})),
    Response(
        "w2", failure("promise_broken", sent=True, detail="review has ended its work on 'o1' without saying `done`")
    ),
    Response("s1", Outcome()),
    Response("c3", Outcome(value=1, replayed=True, first_seen_at=1_800_000_000.0, key="shop:reserve:o1:run")),
    Response(
        "r1", Routes(version=4, snapshot=RouteSnapshot(version=4, routes=(Route(card=CARD, instances=("s-1",)),)))
    ),
    ErrorResponse("x", ProtocolProblem(code=-32601, message="no method 'dance'")),
)


def test_the_messages_of_the_link(golden: Callable[[str, str], None]) -> None:
    """I6: what leaves and what arrives does not change by accident."""
    lines = ["agent to gate", *(encode(message).decode() for message in AGENT_TO_GATE)]
    lines += ["", "gate to agent", *(encode(message).decode() for message in GATE_TO_AGENT)]
    golden("wire.txt", "\n".join(lines) + "\n")


def test_every_message_says_which_protocol_it_speaks() -> None:
    """JSON-RPC 2.0 wants its version in every message, also where a default would leave it out."""
    for message in (*AGENT_TO_GATE, *GATE_TO_AGENT):
        assert msgspec.json.decode(encode(message))["jsonrpc"] == "2.0"
