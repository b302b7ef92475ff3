"""A target that asked for time is left alone by all callers until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.gateway.policy_stage import PolicyStage

if TYPE_CHECKING:
    from agentgate.core.policy import Policy
    from agentgate.gateway.parts import Parts


class Cooling(PolicyStage):
    """`core.cool_down` as a stage."""

    name: ClassVar[str] = "cool_down"
    mechanism: ClassVar[str | None] = "cool_down"

    @staticmethod
    def policy(parts: Parts) -> Policy:
        """The policy that decides here."""
        return parts.policies.cool_down
