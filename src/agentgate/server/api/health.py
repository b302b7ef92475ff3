"""Whether the gate lives, whether it takes calls, and its metrics."""

from __future__ import annotations

from typing import Final

from litestar import MediaType, Response, get
from litestar.datastructures import State
from prometheus_client import CONTENT_TYPE_LATEST

from agentgate.model import OBSERVE
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.scope import PUBLIC, requires

Status = dict[str, str]

_ALIVE: Final = Doc(answers={200: Shown(type=Status, example={"status": "ok"})})
_READY: Final = Doc(
    answers={
        200: Shown(type=Status, example={"status": "ready"}),
        503: Shown(type=Status, example={"status": "stopping"}, meaning="It ends what runs, and takes nothing new."),
    }
)
_METRICS: Final = Doc(
    answers={
        200: Shown(type=None, media_type=CONTENT_TYPE_LATEST.partition(";")[0], example="agentgate_calls_total 1248.0")
    }
)


@get("/healthz", media_type=MediaType.JSON, sync_to_thread=False, opt=PUBLIC | documented(_ALIVE))
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@get("/readyz", media_type=MediaType.JSON, sync_to_thread=False, opt=PUBLIC | documented(_READY))
def readyz(state: State) -> Response[dict[str, str]]:
    """Calls are taken."""
    if state.is_stopping():
        return Response({"status": "stopping"}, status_code=503)
    return Response({"status": "ready"})


@get("/metrics", sync_to_thread=False, opt=requires(OBSERVE) | documented(_METRICS))
def metrics(state: State) -> Response[bytes]:
    """Prometheus' text format."""
    return Response(state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
