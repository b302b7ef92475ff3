"""What every invariant of the simulation is made from; they are in `invariants`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.testing.witness import Key, Witness

if TYPE_CHECKING:
    from agentgate.gateway.gateway import Gateway
    from agentgate.testing.world import World


class Checker:
    """One promise."""

    number: ClassVar[int]

    def __init__(self, world: World) -> None:
        self.world = world
        self.witness: Witness = world.witness

    def fail(self, text: str) -> None:
        """The promise is broken."""
        self.witness.fail(self.number, text)

    @property
    def gateway(self) -> Gateway:
        """The gate that runs now; hooks are called only while one does."""
        platform = self.world.platform
        assert platform is not None, "no gate runs"
        return platform.gateway

    def gate_started(self) -> None:
        """A new life of the gate begins."""

    def after_event(self) -> None:
        """A frame has passed the gate."""

    def gate_ended(self, *, killed: bool) -> None:
        """A life of the gate is over; its tap is still there."""

    def _may_have_run_again(self, key: Key) -> bool:
        """Whether anybody has asked for it so far; those who joined that run may hear of it first."""
        return any(other.again for other in self.witness.asked if other.key == key)

    def at_end(self) -> None:
        """Everything has come to rest."""
