"""Times and bounds of a link."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from agentgate.sdk.calls import CallLimits
from agentgate.sdk.reconnect import ReconnectOptions

STANDSTILL_S: Final = 0.5  # an event loop this late was blocked or suspended
BEAT_S_MIN: Final = 0.01  # whatever the gate asks for, and however close the end of the silence is


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkOptions:
    """What a link is set to."""

    greet_s: float = 5.0  # connecting and being welcomed; above a busy gate's worst, below a caller's patience
    resend_s: float = 10.0  # an unacknowledged answer is sent again: far above a commit, below a call's deadline
    batch_bytes_max: int = 65_536  # several messages in one; a larger message goes alone
    close_s: float = 1.0  # for the closing handshake; a peer that is gone does not answer it
    calls: CallLimits = field(default_factory=CallLimits)
    reconnect: ReconnectOptions = field(default_factory=ReconnectOptions)
