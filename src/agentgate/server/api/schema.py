"""This API, described: the OpenAPI document as JSON. There is no page beside it that would fetch a viewer somewhere."""

from __future__ import annotations

from typing import Any

from litestar import Response, get
from litestar.datastructures import State

from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.scope import PUBLIC

MEDIA_TYPE = "application/vnd.oai.openapi+json"

_DOC = Doc(
    answers={200: Shown(type=dict[str, Any], example={"openapi": "3.1.0"}, media_type=MEDIA_TYPE)},
)


@get("/schema", opt=PUBLIC | documented(_DOC), sync_to_thread=False)
def schema(state: State) -> Response[bytes]:
    """The OpenAPI document of this gate."""
    return Response(state.openapi, media_type=MEDIA_TYPE)
