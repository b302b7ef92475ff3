"""What is left for a caller, as the RateLimit fields say it (draft-ietf-httpapi-ratelimit-headers-10).

Two policies: `sender`, the rate, whose quota are calls, and the quota that calls like this one are nearest to, by the
name of its limit, in its cost units. Of a quota, `t` is when the next units come back. No `t` is above its `w`. Only
what is enforced is said.
"""

from __future__ import annotations

import re
from math import ceil, floor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentgate.core.quota import Standing
    from agentgate.gateway.gateway import Gateway
    from agentgate.model import Call, Problem
    from agentgate.ports.clock import Clock
    from agentgate.server.replies import Fields

Who = tuple[str, str]  # tenant and caller

DIGITS: Final = 6  # so that the dust of added fractions costs nobody a whole unit

# What a string of a structured field cannot hold (RFC 9651); names of agents and users are freer.
UNSAYABLE: Final = re.compile(r'[^ -~]|["\\]')


class LimitFields:
    """Says what is left."""

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._rate = gateway.policies.rate
        self._clock = clock
        self._per_s = gateway.options.rate.rate_per_s
        full_s = max(1, ceil(self._rate.burst / self._per_s))  # how long the bucket takes to fill
        modes = gateway.options.mechanisms
        self._paces = modes.get("rate_limit", "enforce") == "enforce"
        self._has_quotas = modes.get("quota", "enforce") == "enforce"
        self._window_s = full_s
        self._sender = (b"ratelimit-policy", b'"sender";q=%d;w=%d' % (self._rate.burst, full_s))

    def of(self, who: Who, call: Call | None = None, error: Problem | None = None) -> Fields:
        """The fields for this sender, and for its call, if it is known, which came to this."""
        fields = self._of_sender(who, _again_s(error, "rate_limited")) if self._paces else []
        standing = self._gateway.quota_of(call) if call is not None and self._has_quotas else None
        return fields if standing is None else _and(fields, standing, _again_s(error, "quota_exhausted"))

    def _of_sender(self, who: Who, again_s: int | None) -> Fields:
        left = self._rate.left(*who, self._clock.now())
        full_s = ceil((self._rate.burst - left) / self._per_s) if again_s is None else again_s
        return [self._sender, (b"ratelimit", b'"sender";r=%d;t=%d' % (left, min(full_s, self._window_s)))]


def _again_s(error: Problem | None, code: str) -> int | None:
    """What `Retry-After` says, if it is because of this; no field may ask for more."""
    if error is None or error.code != code or error.retry_after_ms is None:
        return None
    return -(-error.retry_after_ms // 1000)


def _and(fields: Fields, standing: Standing, again_s: int | None) -> Fields:
    """The same fields with one more policy each."""
    name = UNSAYABLE.sub("?", standing.name).encode()
    reset_s = ceil(standing.reset_s) if again_s is None else min(ceil(standing.reset_s), again_s)
    said = {
        b"ratelimit-policy": b'"%b";q=%d;w=%d' % (name, floor(standing.units), ceil(standing.per_s)),
        b"ratelimit": b'"%b";r=%d;t=%d' % (name, floor(round(standing.remaining, DIGITS)), reset_s),
    }
    for field, value in fields:
        said[field] = value + b", " + said[field]
    return list(said.items())
