"""A unit as an HTTP request: the bytes that leave, and nothing in them that a caller could have smuggled in.

Names are any printable text; a header is printable ASCII. What does not fit, and the percent sign, is written as in a
URL (`%C3%BC`), so that different names never look the same.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

import msgspec

from agentgate.core.endpoint import Site, segment_of
from agentgate.model.link import InvokeParams

PRODUCT: Final = "agentgate"
_PRINTABLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_FREE: Final = _PRINTABLE.replace("%", "")
_QUOTED: Final = _PRINTABLE.replace('"', "").replace("\\", "")  # a key's own percent signs are escapes already
_is_free: Final = re.compile(f"[{re.escape(_FREE)}]*").fullmatch  # nearly always, so it is asked first
_is_quoted: Final = re.compile(f"[{re.escape(_QUOTED)}]*").fullmatch
_encode: Final = msgspec.json.Encoder().encode


def head_of(site: Site, task_type: str) -> str:
    """The beginning of a request; what changes from call to call comes behind it."""
    return (
        f"POST {site.path}/{segment_of(task_type)} HTTP/1.1\r\nhost: {site.authority}\r\nuser-agent: {PRODUCT}\r\n"
        "accept: application/json\r\naccept-encoding: identity\r\ncontent-type: application/json\r\n"
    )


def probe_request(site: Site, path: str) -> bytes:
    """The question whether an instance is alive."""
    return (
        f"GET {path} HTTP/1.1\r\nhost: {site.authority}\r\nuser-agent: {PRODUCT}\r\naccept-encoding: identity\r\n\r\n"
    ).encode("ascii")


def invoke_request(head: str, unit: str, params: InvokeParams) -> bytes:
    """The request that hands a unit to its agent."""
    body = _encode(params.payload)
    # A check is told the key of the write that it asks about; under a name at which no library takes it for its own.
    key_name = "idempotency-key" if params.effect == "write" else "agentgate-key"
    key = f'{key_name}: "{_quoted(params.key)}"\r\n' if params.key else ""
    business_key = f"agentgate-business-key: {_safe(params.business_key)}\r\n" if params.business_key else ""
    left = params.remaining_ms
    text = (
        f"{head}content-length: {len(body)}\r\n{key}{business_key}traceparent: {params.traceparent}\r\n"
        f"agentgate-remaining-ms: {left}\r\nx-envoy-expected-rq-timeout-ms: {left}\r\n"
        f"agentgate-caller: {_safe(params.caller)}\r\nagentgate-action: {_safe(params.action)}\r\n"
        f"agentgate-unit: {unit}\r\nagentgate-attempt: {params.attempt}\r\nagentgate-unit-token: {params.token}\r\n\r\n"
    )
    return text.encode("ascii") + body


def _safe(text: str) -> str:
    return text if _is_free(text) else quote(text, safe=_FREE, errors="replace")


def _quoted(text: str) -> str:
    return text if _is_quoted(text) else quote(text, safe=_QUOTED, errors="replace")
