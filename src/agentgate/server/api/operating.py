"""What all routes that change a running agent have in common."""

from __future__ import annotations

from typing import Final

from agentgate.directory import Directory
from agentgate.errors import StoreError
from agentgate.model import problem
from agentgate.server.problems import Refused

SHOWN_MAX: Final = 200


def no_such_agent(agent: str) -> Refused:
    """The tenant has none of this name."""
    detail = f"there is no agent {agent[:SHOWN_MAX]!r}; `agentgate agents` names all"
    return Refused(problem("not_found", detail=detail))


async def store(directory: Directory, what: str) -> None:
    """Have it on disk before it is answered; raises `Refused` if `what` holds but would not outlive a restart."""
    try:
        await directory.save_now()
    except StoreError as error:
        detail = f"{what}, but that is not stored yet, and a restart would forget it: {error}"
        raise Refused(problem("store_down", retry_after_s=1.0, detail=detail)) from error
