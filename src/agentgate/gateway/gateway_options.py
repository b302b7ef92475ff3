"""What a gateway is set to: the options of its parts, and how its mechanisms are switched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentgate.core.abuse import AbuseOptions
from agentgate.core.admission import AdmissionOptions
from agentgate.core.backoff import BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.core.budget import BudgetOptions
from agentgate.core.chain import ChainOptions
from agentgate.core.cool_down import CoolDownOptions
from agentgate.core.duplicates import DuplicateOptions
from agentgate.core.locks import LockOptions
from agentgate.core.payload import PayloadOptions
from agentgate.core.policy import Mode
from agentgate.core.quota import QuotaOptions
from agentgate.core.rate import RateOptions
from agentgate.core.signals import SignalOptions
from agentgate.core.slots import SlotOptions
from agentgate.core.timeout import TimeoutOptions
from agentgate.core.watchdog import WatchdogOptions
from agentgate.gateway.http_options import HttpAgentOptions
from agentgate.gateway.options import CallOptions


@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    """The options of every policy on the path, and how each mechanism is switched."""

    name: str = "gate"
    mechanisms: Mapping[str, Mode]
    rate: RateOptions
    quota: QuotaOptions
    abuse: AbuseOptions
    duplicates: DuplicateOptions
    chain: ChainOptions
    payload: PayloadOptions
    cool_down: CoolDownOptions
    slots: SlotOptions
    locks: LockOptions
    breaker: BreakerOptions
    timeout: TimeoutOptions
    retry: BackoffOptions
    budget: BudgetOptions
    calls: CallOptions
    signals: SignalOptions
    agents: HttpAgentOptions
    admission: AdmissionOptions
    watchdog: WatchdogOptions
    silent_s: float  # of the presence of instances
