"""A sender's messages are paced, before anything else is done for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.gateway.policy_stage import PolicyStage

if TYPE_CHECKING:
    from agentgate.core.policy import Policy
    from agentgate.gateway.parts import Parts


class Rate(PolicyStage):
    """`core.rate` as a stage."""

    name: ClassVar[str] = "rate"
    mechanism: ClassVar[str | None] = "rate_limit"

    @staticmethod
    def policy(parts: Parts) -> Policy:
        """The policy that decides here."""
        return parts.policies.rate
