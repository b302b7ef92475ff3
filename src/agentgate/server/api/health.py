"""Whether the gate lives, whether it takes calls, and its metrics."""

from __future__ import annotations

from litestar import MediaType, Response, get
from litestar.datastructures import State
from prometheus_client import CONTENT_TYPE_LATEST

from agentgate.model import OBSERVE
from agentgate.server.api.scope import PUBLIC, requires


@get("/healthz", media_type=MediaType.JSON, sync_to_thread=False, opt=PUBLIC)
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@get("/readyz", media_type=MediaType.JSON, sync_to_thread=False, opt=PUBLIC)
def readyz(state: State) -> Response[dict[str, str]]:
    """Calls are taken."""
    if state.is_stopping():
        return Response({"status": "stopping"}, status_code=503)
    return Response({"status": "ready"})


@get("/metrics", sync_to_thread=False, opt=requires(OBSERVE))
def metrics(state: State) -> Response[bytes]:
    """Prometheus' text format."""
    return Response(state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
