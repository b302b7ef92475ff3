"""Nobody takes more than there is, and what was taken is given back; see `invariants`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgate.testing.checker import Checker
from agentgate.testing.witness import Run

if TYPE_CHECKING:
    from agentgate.testing.world import World


class WithinLimits(Checker):
    """2: running and open units never over their limits, one for each exclusive key, everything taken is given back.

    Allowances, by name: units that were found running after a reconnect (`adopted`), and units that came back from a
    wait when there was no room (`over`).
    """

    number = 2

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.witness.hooks.started.append(self._started)

    def after_event(self) -> None:
        """By the gate's own account: slots taken, units open, and nobody rests who does not wait."""
        factor, resting = self.world.settings.slots.open_factor, 0
        for agent in self.gateway.policies.slots.states(self.witness.now()):
            for instance in agent.instances:
                resting += instance.resting
                if instance.outstanding > instance.limit + instance.adopted + instance.over:
                    self.fail(f"{instance.name}: {instance.outstanding} slots taken of {instance.limit}")
                open_units = instance.outstanding + instance.resting
                if open_units > factor * instance.limit + instance.adopted:
                    self.fail(f"{instance.name}: {open_units} units open of {factor} x {instance.limit}")
        if resting > len(self.gateway.resting):
            self.fail(f"{resting} units rest, but {len(self.gateway.resting)} wait for something")

    def _started(self, run: Run) -> None:
        self._check_limit(run)
        self._check_exclusive(run)

    def _check_exclusive(self, run: Run) -> None:
        """By the handlers' account: also those that should have stopped; not those whose process was given up."""
        for other in self.witness.live_runs.values():
            if other is run or not run.exclusive or (other.agent, other.exclusive) != (run.agent, run.exclusive):
                continue
            if self.world.is_alive(other.instance):
                units = f"{other.unit} at {other.instance} and {run.unit} at {run.instance}"
                self.fail(f"{run.agent} runs two units of the exclusive key {run.exclusive} at once: {units}")

    def _check_limit(self, run: Run) -> None:
        """By the handlers' account: those that came by this connection and need not stop."""
        here = [
            other
            for other in self.witness.live_runs.values()
            if other.instance == run.instance and other.link == run.link and not other.told()
        ]
        role = self.world.cast[run.agent]
        limit = role.concurrency
        # Who has called waits, or has come back at once.
        running = [other for other in here if not (role.rests and other.has_called)]
        self._compare(run, "runs", running, limit)
        self._compare(run, "has open", here, limit * self.world.settings.slots.open_factor)

    def _compare(self, run: Run, how: str, units: list[Run], limit: int) -> None:
        if len(units) > limit:
            shown = " ".join(other.unit for other in units)
            self.fail(f"{run.instance} {how} {len(units)} units at once, its limit is {limit}: {shown}")

    def at_end(self) -> None:
        """Nothing is held any more: no slot, no place, no unit, no flight, no parked ticket."""
        gateway = self.gateway
        held = {
            "units": len(gateway.units),
            "flights": len(gateway.flights),
            "waits": len(gateway.resting),
            "declared waits": len(gateway.awaiting.open_waits()),
            "waits for signals": gateway.signals.book.waiting,
            **{f"parked at {name}": len(parking) for name, parking in gateway.parkings.items()},
            **{f"calls of {peer.instance}": len(peer.calls) for peer in gateway.peers.connected},
        }
        for agent in gateway.policies.slots.states(self.witness.now()):
            held[f"queue of {agent.agent}"] = agent.queued
            held.update({f"slots of {instance.name}": instance.outstanding for instance in agent.instances})
            held.update({f"resting at {instance.name}": instance.resting for instance in agent.instances})
        held["runs"] = len(self.witness.live_runs)
        left = {name: count for name, count in held.items() if count}
        if left:
            self.fail(f"still held at the end: {left}")
