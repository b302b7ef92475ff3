"""What the OpenAPI document says of calls, with an example of everything."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from agentgate.model import RecordState
from agentgate.server.api.doc import Doc, Parameter, Shown
from agentgate.server.calls import CallBody
from agentgate.server.replies import DoneBody, RunningBody
from agentgate.server.settle import Settled, Word


class CallInfo(Struct, frozen=True, kw_only=True):
    """A keyed call as the ledger knows it; times in seconds since the epoch.

    `state` "unknown" is what `settle` is for. `code` and `detail` are those of its error. `runs` counts the times it
    was begun (`again`), `units` are those that may still answer.
    """

    id: str
    key: str
    state: RecordState
    target: str
    agent: str
    caller: str
    task_type: str
    business_key: str
    action: str
    code: str
    detail: str
    runs: int
    units: list[str]
    trace_id: str
    first_seen_at: float
    expires_at: float


class CallList(Struct, frozen=True, kw_only=True):
    """A page of calls; `next` is what to give as `after` for the next one, null when there is none."""

    calls: list[CallInfo]
    next: str | None


ID: Final = "klatvcmRlcl9hZ2VudKRzaG9wp2NvbmZpcm2pb3JkZXJfMTIzo3J1bg"
KEY: Final = "shop:confirm:order_123:run"
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"

_ON_THE_WAY: Final = (
    "bad_request",
    "too_large",
    "unauthorized",
    "forbidden",
    "no_route",
    "key_conflict",
    "in_progress",
    "rate_limited",
    "abnormal_usage",
    "quota_exhausted",
    "overloaded",
    "shed",
    "breaker_open",
    "chain_limit",
    "loop",
    "deadlock",
    "no_progress",
    "lease_lost",
    "deadline_exceeded",
    "rejected",
    "handler_error",
    "malformed_output",
    "agent_lost",
    "outcome_unknown",
    "needs_human",
    "cancelled",
    "promise_broken",
    "store_down",
    "internal",
)

_DONE: Final = {
    "id": ID,
    "status": "done",
    "value": {"receipt": "r-17"},
    "key": KEY,
    "replayed": False,
    "joined": False,
    "degraded": False,
    "trace_id": TRACE,
}
_RUNNING: Final = {
    "id": ID,
    "status": "running",
    "key": KEY,
    "state": "running as stock_agent.reserve(order_123), unit u1c8 at 9f86d081884c7d65",
    "poll_after_ms": 1000,
    "trace_id": TRACE,
}
_ANSWERS: Final = {
    200: Shown(type=DoneBody, example=_DONE, meaning="The call came to a value."),
    202: Shown(type=RunningBody, example=_RUNNING, meaning="It goes on; ask again at `Location`."),
}
_WAIT: Final = Parameter(
    name="Prefer", type=str, place="header", example="wait=10", meaning="`wait=n`: seconds to wait for the end."
)

CALL: Final = Doc(
    answers=_ANSWERS,
    errors=_ON_THE_WAY,
    body=Shown(
        type=CallBody,
        example={"target": "order_agent", "task_type": "confirm", "business_key": "order_123", "payload": {"n": 2}},
    ),
    parameters=(
        Parameter(
            name="Idempotency-Key",
            type=str,
            place="header",
            example='"order_123"',
            meaning="The business key, when the body has none; a string in quotes, or without.",
        ),
        _WAIT,
        Parameter(
            name="traceparent",
            type=str,
            place="header",
            example=f"00-{TRACE}-b7ad6b7169203331-01",
            meaning="The trace that the call belongs to (W3C).",
        ),
        Parameter(
            name="agentgate-unit-token",
            type=str,
            place="header",
            meaning="The token of the unit of work in which an agent makes this call.",
        ),
        Parameter(
            name="x-envoy-expected-rq-timeout-ms",
            type=int,
            place="header",
            example=5000,
            meaning="Milliseconds left; the smallest of all limits counts.",
        ),
        Parameter(
            name="grpc-timeout", type=str, place="header", example="5S", meaning="Time left: up to 8 digits and a unit."
        ),
    ),
)

LOOK: Final = Doc(
    answers=_ANSWERS,
    errors=("not_found", *_ON_THE_WAY),
    parameters=(_WAIT,),
    path_examples={"name": ID},
)

LIST: Final = Doc(
    answers={
        200: Shown(
            type=CallList,
            example={
                "calls": [
                    {
                        "id": ID,
                        "key": KEY,
                        "state": "unknown",
                        "target": "order_agent",
                        "agent": "order_agent",
                        "caller": "shop",
                        "task_type": "confirm",
                        "business_key": "order_123",
                        "action": "run",
                        "code": "",
                        "detail": "",
                        "runs": 1,
                        "units": ["u1c8"],
                        "trace_id": TRACE,
                        "first_seen_at": 1796035331.27,
                        "expires_at": 1796121731.27,
                    }
                ],
                "next": None,
            },
        )
    },
    errors=("bad_request", "unauthorized", "forbidden", "store_down"),
    parameters=(
        Parameter(name="state", type=RecordState, example="unknown", meaning="Only those in this state."),
        Parameter(name="target", type=str, example="order_agent", meaning="Only those to this target, as named."),
        Parameter(
            name="limit",
            type=Annotated[int, Meta(ge=1, le=1000)],
            example=100,
            meaning="At most so many, up to 1000 [100].",
        ),
        Parameter(name="after", type=str, meaning="`next` of the page before."),
    ),
)

SETTLE: Final = Doc(
    answers={200: Shown(type=Settled, example={"id": ID, "key": KEY, "state": "done"})},
    errors=(
        "bad_request",
        "too_large",
        "unauthorized",
        "forbidden",
        "not_found",
        "in_progress",
        "version_conflict",
        "store_down",
    ),
    body=Shown(type=Word, example={"as": "done", "value": {"receipt": "r-17"}}),
    path_examples={"name": ID},
)
