"""Whom the gate gives up, and whether it had reason to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgate.model import Card

if TYPE_CHECKING:
    from agentgate.testing.world import World

TICK_S: Final = 0.05  # timers of the gate and a frame in the same moment


class Losses:
    """Which instances a gate has given up, and that none was while it could be heard (a `RouteListener`).

    One for each life of the gate, which goes on where the one `before` was: a gate that was killed may take a moment to
    stop, and what it says then is not heard.
    """

    def __init__(self, world: World, before: Losses | None = None) -> None:
        self._world = world
        self.lost: dict[str, float] = dict(before.lost) if before is not None else {}  # when they were given up last
        # The same, of those that have not come back.
        self.gone: dict[str, float] = dict(before.gone) if before is not None else {}
        self.leaving: set[str] = set()  # instances that finish what they have

    def since(self, agent: str, began: float) -> bool:
        """Whether an instance of this agent was given up at that time or later."""
        return any(when >= began and name.rpartition("-")[0] == agent for name, when in self.lost.items())

    def instance_joined(self, agent: str, instance: str, card: Card) -> None:  # noqa: ARG002 - as the port has it
        """Back, or new."""
        self.gone.pop(instance, None)
        self.leaving.discard(instance)

    def instance_away(self, agent: str, instance: str) -> None:
        """Still expected back."""

    def instance_draining(self, agent: str, instance: str) -> None:  # noqa: ARG002 - the port names both
        """On its way out; its good-bye will come."""
        self.leaving.add(instance)

    def instance_lost(self, agent: str, instance: str) -> None:
        """Given up, or gone with a good-bye; then it is not alive."""
        world = self._world
        silent_s = world.witness.now() - world.heard_at.get(instance, 0.0)
        world.witness.log("gate", f"lost {instance}")
        if (
            instance not in self.leaving
            and world.is_alive(instance)
            and silent_s < world.settings.presence.grace_s - TICK_S
        ):
            world.witness.fail(0, f"{instance} of {agent} was given up {silent_s:.3f} s after it was heard")
        self.lost[instance] = self.gone[instance] = world.witness.now()
        self.leaving.discard(instance)
