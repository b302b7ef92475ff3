"""The operator's way out of "nobody can tell": what became of a call whose outcome is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import structlog
from msgspec import Struct

from agentgate.core import payload
from agentgate.core.call_id import key_of
from agentgate.core.keys import shown_key
from agentgate.errors import WireError
from agentgate.model import Identity, LedgerEvent, Outcome, failure, problem
from agentgate.server.problems import Refused

if TYPE_CHECKING:
    from agentgate.gateway.gateway import Gateway

DETAIL_CHARS_MAX: Final = 2_000
NO_DETAIL: Final = "an operator says that it failed"

log = structlog.get_logger("agentgate.server")


class AsDone(Struct, tag="done", tag_field="as", forbid_unknown_fields=True):
    """It happened, and this is its answer."""

    value: Any


class AsFailed(Struct, tag="failed", tag_field="as", forbid_unknown_fields=True):
    """It failed for good; only a call with `again` runs it anew."""

    detail: str = ""


class AsNotDone(Struct, tag="not_done", tag_field="as", forbid_unknown_fields=True):
    """It did not happen: the key is free, and the next call with it runs."""


Word = AsDone | AsFailed | AsNotDone


class Settled(Struct, kw_only=True):
    """What holds from now on; `state` "none": the key is free."""

    id: str
    key: str
    state: Literal["done", "failed", "none"]


async def settle(gateway: Gateway, name: str, body: bytes, identity: Identity) -> Settled:
    """Take the word of `body` for the call with this id; raises `Refused`, and `StoreError`."""
    key = key_of(name, identity.tenant)
    if key is None:
        raise Refused(problem("not_found", detail="this is not the id of a call"))
    try:
        word = msgspec.convert(payload.decode(body, gateway.options.payload), Word)
    except WireError as error:
        raise Refused(problem(error.code, detail=error.detail)) from None
    except msgspec.ValidationError as error:
        raise Refused(problem("bad_request", detail=f"the body is not of the right form: {error}")) from None
    event, outcome, state = _meaning(word)
    refusal = await gateway.known_calls.settle(key, event, outcome)
    if refusal is not None:
        raise Refused(refusal)
    by = identity.name or "(anybody on this machine)"
    log.warning("call_settled", by=by, key=shown_key(key), target=key.target, tenant=key.tenant, state=state)
    return Settled(id=name, key=shown_key(key), state=state)


def _meaning(word: Word) -> tuple[LedgerEvent, Outcome | None, Literal["done", "failed", "none"]]:
    match word:
        case AsDone(value):
            return "done", Outcome(value=value), "done"
        case AsFailed(detail):
            return (
                "failed",
                failure("handler_error", sent=True, detail=detail[:DETAIL_CHARS_MAX] or NO_DETAIL),
                "failed",
            )
        case AsNotDone():
            return "not_done", None, "none"
