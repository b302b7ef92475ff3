"""What the gate has noticed and somebody should look at."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State

from agentgate.model import OBSERVE, Finding
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.scope import identity_of, requires


class FindingList(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of the caller's tenant, what was seen last first."""

    findings: list[Finding]


_DOC: Final = Doc(
    answers={
        200: Shown(
            type=FindingList,
            example={
                "findings": [
                    {
                        "kind": "cards_differ",
                        "subject": "stock_agent",
                        "tenant": "default",
                        "evidence": {"instance": "9f86d081884c7d65", "what": "tier"},
                        "advice": "Deploy one version of the agent.",
                        "count": 3,
                        "first_seen": 1796035331.27,
                        "last_seen": 1796035391.27,
                    }
                ]
            },
        )
    }
)


@get("/v1/findings", sync_to_thread=False, opt=requires(OBSERVE) | documented(_DOC))
def findings(request: Request[Any, Any, Any], state: State) -> FindingList:
    """Who repeats what will not change, whose limits contradict each other, what fails: with figures and advice."""
    return FindingList(findings=state.view.gateway.findings.of(identity_of(request.scope).tenant))
