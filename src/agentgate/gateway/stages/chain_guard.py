"""A chain of calls that is too deep, too wide, too long or a loop ends here."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.gateway.policy_stage import PolicyStage

if TYPE_CHECKING:
    from agentgate.core.policy import Policy
    from agentgate.gateway.parts import Parts


class Chain(PolicyStage):
    """`core.chain` as a stage."""

    name: ClassVar[str] = "chain_guard"
    mechanism: ClassVar[str | None] = "chain_guard"

    @staticmethod
    def policy(parts: Parts) -> Policy:
        """The policy that decides here."""
        return parts.policies.guard
