"""What one HTTP request may cost the gate."""

from __future__ import annotations

from dataclasses import dataclass

from agentgate.core.ranges import require

TIME_S_MIN = 0.01
HEAD_BYTES_MIN = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOptions:
    """Limits of a request. Times in seconds.

    How long a handler may take is not among them: that is the call's own time.

    - `connect_s`, 3: one lost packet is sent again within a second; TLS included.
    - `idle_s`, 10: between two pieces of an answer that has begun; a machine may stall, a handler is done by then.
    - `answer_s`, 60: from the first byte of an answer to its last; at the largest size that is 4 KiB a second.
    - `keep_s`, 1.5: an unused connection is kept so long. Servers close theirs after 2 to 75 seconds, and whoever
      closes first does not meet a closed one.
    - `head_bytes_max`, 32 KiB: head of an answer, trailers and interim answers included; four times what servers send.
    """

    connect_s: float = 3.0
    idle_s: float = 10.0
    answer_s: float = 60.0
    keep_s: float = 1.5
    head_bytes_max: int = 32_768

    def __post_init__(self) -> None:
        require(self, "connect_s", "idle_s", "answer_s", low=TIME_S_MIN)
        require(self, "keep_s")
        require(self, "head_bytes_max", low=HEAD_BYTES_MIN)
