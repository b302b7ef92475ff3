"""The simulation finds what it is there for: a policy that is broken on purpose breaks a promise in the World."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentgate.config import Settings
from agentgate.control.deadlocks import DeadlockTimer
from agentgate.core import ledger
from agentgate.core.budget import BudgetOptions, RetryBudget
from agentgate.core.deadlock import released
from agentgate.core.instances import Instance, SlotOptions
from agentgate.core.knots import Tangle
from agentgate.core.ledger import LedgerOptions
from agentgate.core.policy import Ticket
from agentgate.core.slots import Slots
from agentgate.core.waits import Waits
from agentgate.gateway.passage import Passage
from agentgate.gateway.stages.replay import Replay
from agentgate.gateway.waits import UnitWaits
from agentgate.model import Claim, Claimed, KeyId, Outcome, Record, problem
from agentgate.testing.cast import TIGHT, Role
from agentgate.testing.connection import Weather
from agentgate.testing.faults import CALM_MIX, FaultMix, StoreMood
from agentgate.testing.loop import run_virtual
from agentgate.testing.sim import quieten
from agentgate.testing.witness import Broken
from agentgate.testing.world import Length, World

# Handlers that fail now and then, and nothing else: the broken policy is the only thing that is wrong.
FAILING = FaultMix(
    weather=Weather(latency_s=(0.0005, 0.01)),
    store=StoreMood(),
    agent_killed_every_s=0.0,
    agent_paused_every_s=0.0,
    pause_s=0.0,
    gate_killed_every_s=0.0,
    handler_fault_share=0.4,
)
# Few slots, so that each one counts, given back while a unit waits.
NARROW = {
    "order": Role(instances=2, concurrency=1),
    "stock": Role(instances=2, concurrency=2),
    "pay": Role(instances=1, concurrency=2),
}
CREDIT_S = 20.0
BUSY = Length(load_s=3.0, faults_s=40.0, pause_s=0.1)
# Room enough that circles of waits close as they were meant to, instead of in the queues.
ROOMY = Length(load_s=3.0, faults_s=60.0, pause_s=1.0)


def broken_promise(settings: Settings | None = None) -> int:
    """The number of the promise that a run of this world breaks."""
    quieten()
    with pytest.raises(Broken) as broken:
        run_virtual(World(1, mix=FAILING, length=BUSY, settings=settings or Settings(), cast=NARROW).run)
    return broken.value.invariant


def tight_world() -> World:
    """A world in which orders close circles of waits on purpose, and nothing else is wrong."""
    quieten()
    return World(1, mix=CALM_MIX, length=ROOMY, settings=Settings(), cast=TIGHT)


def broken_in_tight_world() -> tuple[int, str]:
    """Which promise a run of that world breaks, and what is said of it."""
    with pytest.raises(Broken) as broken:
        run_virtual(tight_world().run)
    return broken.value.invariant, broken.value.text


def test_the_world_is_whole_without_a_broken_policy(tmp_path: Path) -> None:
    """What the tests below find is what they broke."""
    quieten()
    assert tmp_path.is_dir()
    run_virtual(World(1, mix=FAILING, length=BUSY, settings=Settings(), cast=NARROW).run)


def test_the_tight_world_is_whole_too() -> None:
    """D2, D3: its circles are refused where they would close, or opened within 3 s; of each kind there are some."""
    world = tight_world()
    run_virtual(world.run)
    assert world.totals["knots_refused"] > 5
    assert world.totals["knots_confirmed"] > 0


def test_a_permit_that_is_not_given_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """F104: a slot that stays taken after a failed call shows as units over the limit, or as calls without an end."""
    settle = Slots.settle

    def forgetful(self: Slots, ticket: Ticket, outcome: Outcome, now: float) -> None:
        if outcome.ok:
            settle(self, ticket, outcome, now)

    monkeypatch.setattr(Slots, "settle", forgetful)
    assert broken_promise() in (2, 7)


def test_a_unit_that_goes_on_without_a_slot_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """F104: a wait whose end is overlooked lets more units run than the limit allows."""
    monkeypatch.setattr(Slots, "resume", lambda *_: None)
    assert broken_promise() == 2


def test_a_slot_that_everybody_gives_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that does not look how many units are open lets them grow with the waits."""
    monkeypatch.setattr(Instance, "has_room", property(lambda self: self.outstanding < self.capacity))
    settings = replace(Settings(), slots=SlotOptions(open_factor=1))
    assert broken_promise(settings) == 2


def test_waits_that_nobody_looks_at_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: a gate whose check finds nothing and whose timer does nothing leaves units to wait until their deadlines."""
    monkeypatch.setattr(Waits, "check", lambda *_: None)
    monkeypatch.setattr(DeadlockTimer, "look", _sleeps)
    invariant, text = broken_in_tight_world()
    assert (invariant, "nobody was told" in text) == (3, True)


def test_a_timer_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: a circle that closes because an instance is lost is closed by no call, so only the timer can find it."""
    monkeypatch.setattr(DeadlockTimer, "look", _sleeps)
    invariant, text = broken_in_tight_world()
    assert (invariant, "nobody was told" in text) == (3, True)


def test_a_check_that_refuses_everything_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """D3: whoever waits for a slot that somebody works in is in no circle."""
    monkeypatch.setattr(UnitWaits, "refusal", lambda *_: problem("deadlock"))
    invariant, text = broken_in_tight_world()
    assert (invariant, "there is none" in text) == (3, True)


def test_a_second_victim_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """D3: one who gives way is enough; a second one is told of a circle that is open already."""

    def everybody(self: DeadlockTimer, tangle: Tangle) -> None:
        del self
        for member in tangle.members:
            for wait in tangle.waits_of(member.unit):
                wait.release(released(tangle.knot(member.unit)))

    monkeypatch.setattr(DeadlockTimer, "_resolve", everybody)
    invariant, text = broken_in_tight_world()
    assert (invariant, "there is none" in text) == (3, True)


async def _sleeps(_: object) -> None:
    """A look that sees nothing."""


def test_a_claim_that_is_not_checked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """F07: a gate that runs a key without looking whether it is taken does an effect twice."""
    claim = ledger.claim

    def careless(
        record: Record | None, asked: Claim, *, gateway: str, gateway_epoch: int, now: float, options: LedgerOptions
    ) -> Claimed:
        del record
        return claim(None, asked, gateway=gateway, gateway_epoch=gateway_epoch, now=now, options=options)

    async def looks_away(self: Replay, key: KeyId, passage: Passage, body: str) -> None:
        del self, key, passage, body

    monkeypatch.setattr(ledger, "claim", careless)
    monkeypatch.setattr(Replay, "_look_up", looks_away)
    assert broken_promise() == 1


def test_a_budget_that_is_charged_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: a budget that is charged some time after a retry was planned is no bound for what happens meanwhile."""
    take = RetryBudget.take
    owed: list[tuple[float, str]] = []

    def take_on_credit(self: RetryBudget, agent: str, now: float) -> bool:
        while owed and owed[0][0] <= now:
            take(self, owed.pop(0)[1], now)
        owed.append((now + CREDIT_S, agent))
        return self.tokens(agent, now) >= 1.0

    monkeypatch.setattr(RetryBudget, "take", take_on_credit)
    settings = replace(Settings(), budget=BudgetOptions(tokens_max=2.0, per_success=0.01, floor_s=60.0))
    assert broken_promise(settings) == 7
