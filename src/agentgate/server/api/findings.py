"""What the gate has noticed and somebody should look at."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, get
from litestar.datastructures import State

from agentgate.model import OBSERVE, Finding
from agentgate.server.api.scope import identity_of, requires


class FindingList(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of the caller's tenant, what was seen last first."""

    findings: list[Finding]


@get("/v1/findings", sync_to_thread=False, opt=requires(OBSERVE))
def findings(request: Request[Any, Any, Any], state: State) -> FindingList:
    """Who repeats what will not change, whose limits contradict each other, what fails: with figures and advice."""
    return FindingList(findings=state.view.gateway.findings.of(identity_of(request.scope).tenant))
