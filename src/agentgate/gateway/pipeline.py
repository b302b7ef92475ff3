"""The order of the path, as data (DESIGN 4). This file decides it and nothing else.

A call walks down CALL once. Its last stage, the retry loop, walks down ATTEMPT for every dispatch. So a breaker sees
every attempt, a slot is not held while backing off, and a repeat is answered before anything is charged to it except
its sender's rate. Look up early, claim late, settle once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING

from agentgate.gateway.stages.abuse import HoldBack
from agentgate.gateway.stages.breaker import Breaker
from agentgate.gateway.stages.chain_guard import Chain
from agentgate.gateway.stages.claim import ClaimKey
from agentgate.gateway.stages.cool_down import Cooling
from agentgate.gateway.stages.dispatch import Dispatch
from agentgate.gateway.stages.identity import Identity
from agentgate.gateway.stages.preflight import Preflight
from agentgate.gateway.stages.quota import Quota
from agentgate.gateway.stages.rate import Rate
from agentgate.gateway.stages.replay import Replay
from agentgate.gateway.stages.retry import Retry
from agentgate.gateway.stages.slot import Slot
from agentgate.gateway.stages.timeout import Timeout
from agentgate.gateway.stages.trace import Trace
from agentgate.gateway.stages.wait import Wait

if TYPE_CHECKING:
    from agentgate.core.policy import Mode
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward, Stage
    from agentgate.model import Outcome

CALL: tuple[type[Stage], ...] = (
    Trace,
    Identity,
    Rate,
    HoldBack,
    Chain,
    Wait,
    Replay,
    # here: level, which sheds load while things are bad
    Quota,
    Preflight,
    Retry,
)
ATTEMPT: tuple[type[Stage], ...] = (Cooling, Slot, Breaker, ClaimKey, Timeout, Dispatch)


class Pipeline:
    """Both scopes, put together once."""

    def __init__(
        self, parts: Parts, call: Sequence[type[Stage]] = CALL, attempt: Sequence[type[Stage]] = ATTEMPT
    ) -> None:
        self.run: Onward = _compose(parts, call, _compose(parts, attempt, _past_the_end))


def describe(modes: Mapping[str, Mode]) -> str:
    """The path as text: one line a stage, with its mechanism and how that is switched."""
    lines: list[str] = []
    for scope, stages in (("CALL", CALL), ("ATTEMPT", ATTEMPT)):
        lines.append(scope)
        for stage in stages:
            mode = "always" if stage.mechanism is None else modes.get(stage.mechanism, "enforce")
            lines.append(f"  {stage.name:<12} {stage.mechanism or '-':<16} {mode}")
    return "\n".join(lines) + "\n"


def _compose(parts: Parts, stages: Sequence[type[Stage]], end: Onward) -> Onward:
    onward = end
    for stage in reversed(stages):
        if stage.stays or parts.mode(stage.mechanism) != "off":
            onward = _before(onward, stage(parts))
    return onward


def _before(onward: Onward, stage: Stage) -> Onward:
    walk = stage.__call__  # looked up once; with `functools.partial` this step would cost twice as much

    def run(passage: Passage) -> Awaitable[Outcome]:
        return walk(passage, onward)

    return run


async def _past_the_end(_passage: Passage) -> Outcome:
    msg = "the last stage has to answer"
    raise AssertionError(msg)
