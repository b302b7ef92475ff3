"""Whether the gate lives, whether it takes calls, and its metrics."""

from __future__ import annotations

from typing import Any, Final

from litestar import MediaType, Request, Response, get
from litestar.datastructures import State
from prometheus_client import CONTENT_TYPE_LATEST

from agentgate.model import DEFAULT_TENANT, OBSERVE, problem
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.scope import PUBLIC, identity_of, requires
from agentgate.server.problems import Refused

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
def metrics(state: State, request: Request[Any, Any, Any]) -> Response[bytes]:
    """Prometheus' text format. The figures are those of the whole gate, so they are for the default tenant alone."""
    if identity_of(request.scope).tenant != DEFAULT_TENANT:
        detail = f"the figures are of all tenants together; a token of the tenant {DEFAULT_TENANT!r} may read them"
        raise Refused(problem("forbidden", detail=detail))
    return Response(state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
