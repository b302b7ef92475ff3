"""Every policy of a gate, built from its options: plain objects that decide, shared by stages and onlookers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgate.core.abuse import Abuse
from agentgate.core.admission import Admission
from agentgate.core.backoff import Backoff
from agentgate.core.breakers import Breakers
from agentgate.core.budget import RetryBudget
from agentgate.core.chain import ChainGuard
from agentgate.core.cool_down import CoolDown
from agentgate.core.duplicates import Duplicates
from agentgate.core.locks import Locks
from agentgate.core.patience import Patience
from agentgate.core.quota import Quotas
from agentgate.core.rate import RateLimiter
from agentgate.core.slots import Slots
from agentgate.core.timeout import Timeouts
from agentgate.core.unit_token import UnitTokens
from agentgate.core.waits import Waits
from agentgate.gateway.parking import Parking

if TYPE_CHECKING:
    from agentgate.core.policy import Policy
    from agentgate.gateway.gateway_options import GatewayOptions
    from agentgate.ports.clock import Chance, Clock
    from agentgate.ports.routes import Routes
    from agentgate.ports.store import Lifetime


class Policies:
    """One of each; none of them knows another."""

    def __init__(self, options: GatewayOptions, chance: Chance, lifetime: Lifetime, routes: Routes) -> None:
        draw = chance.draw
        self.rate = RateLimiter(options.rate)
        self.abuse = Abuse(options.abuse)
        self.duplicates = Duplicates(options.duplicates)
        self.patience = Patience()
        self.quotas = Quotas(options.quota, routes.quotas)
        self.guard = ChainGuard(options.chain)
        self.graph = Waits()
        self.tokens = UnitTokens(lifetime.secret.encode())
        self.locks = Locks(options.locks, draw, lifetime.epoch)
        self.cool_down = CoolDown(options.cool_down)
        self.slots = Slots(options.slots, observes=options.mechanisms.get("concurrency") == "observe")
        self.breakers = Breakers(options.breaker, draw)
        fixed = options.mechanisms.get("dynamic_timeout") == "off"
        self.timeouts = Timeouts(options.timeout, draw, fixed=fixed)
        self.backoff = Backoff(options.retry)
        self.budget = RetryBudget(options.budget)
        self.admission = Admission(options.admission, draw)

    def parkings(self, clock: Clock) -> dict[str, Parking]:
        """A place to wait for each policy that parks calls, by the name of its stage."""
        parks: dict[str, Policy] = {
            "rate": self.rate,
            "chain_guard": self.guard,
            "cool_down": self.cool_down,
            "slot": self.slots,
        }
        return {name: Parking(policy, clock) for name, policy in parks.items()}
