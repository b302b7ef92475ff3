"""Everything that can be set, as the options of the parts; read once and handed down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, get_type_hints

from agentgate.adapters.http import HttpOptions
from agentgate.config.mechanisms import default_modes
from agentgate.control.deadlocks import WaitGraphOptions
from agentgate.control.retention import RetentionOptions
from agentgate.core.abuse import AbuseOptions
from agentgate.core.admission import AdmissionOptions
from agentgate.core.backoff import BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.core.budget import BudgetOptions
from agentgate.core.chain import ChainOptions
from agentgate.core.cool_down import CoolDownOptions
from agentgate.core.duplicates import DuplicateOptions
from agentgate.core.instances import SlotOptions
from agentgate.core.ledger import LedgerOptions
from agentgate.core.locks import LockOptions
from agentgate.core.payload import PayloadOptions
from agentgate.core.policy import Mode
from agentgate.core.presence import PresenceOptions
from agentgate.core.quota import QuotaOptions
from agentgate.core.ranges import require
from agentgate.core.rate import RateOptions
from agentgate.core.signals import SignalOptions
from agentgate.core.timeout import TimeoutOptions
from agentgate.core.watchdog import WatchdogOptions
from agentgate.directory import CardOptions, DirectoryOptions
from agentgate.gateway.http_options import HttpAgentOptions
from agentgate.gateway.options import CallOptions
from agentgate.server.options import ServerOptions

MEMORY: Final = "memory"
SQLITE_PREFIX: Final = "sqlite:"
SPAN_DAYS_MAX: Final = 3650


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreOptions:
    """Where the durable truth is kept.

    - `url`, sqlite:agentgate.sqlite in the working directory: nothing to install, and nothing is lost by default.
      `memory` keeps nothing over a restart.
    - `span_days`, 7: how many full days of spans are kept beside the current one; a week is what people look back.
    """

    url: str = "sqlite:agentgate.sqlite"
    span_days: int = 7

    def __post_init__(self) -> None:
        require(self, "span_days", low=1, high=SPAN_DAYS_MAX)
        if self.url == MEMORY or (self.url.startswith(SQLITE_PREFIX) and self.path is not None):
            return
        built = f"{MEMORY!r} or '{SQLITE_PREFIX}FILE'"
        if self.url.startswith(("postgresql:", "postgres:")):
            raise ValueError(f"PostgreSQL is not built yet; store must be {built}")
        raise ValueError(f"store must be {built}, not {self.url!r}")

    @property
    def path(self) -> Path | None:
        """The SQLite file; None for the memory."""
        name = self.url.removeprefix(SQLITE_PREFIX)
        return Path(name) if self.url.startswith(SQLITE_PREFIX) and name.strip("/ ") else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The options of every part, and how each mechanism is switched. `Settings()` is all defaults."""

    server: ServerOptions = field(default_factory=ServerOptions)
    store: StoreOptions = field(default_factory=StoreOptions)
    rate: RateOptions = field(default_factory=RateOptions)
    abuse: AbuseOptions = field(default_factory=AbuseOptions)
    duplicates: DuplicateOptions = field(default_factory=DuplicateOptions)
    quota: QuotaOptions = field(default_factory=QuotaOptions)
    chain: ChainOptions = field(default_factory=ChainOptions)
    payload: PayloadOptions = field(default_factory=PayloadOptions)
    cool_down: CoolDownOptions = field(default_factory=CoolDownOptions)
    slots: SlotOptions = field(default_factory=SlotOptions)
    locks: LockOptions = field(default_factory=LockOptions)
    breaker: BreakerOptions = field(default_factory=BreakerOptions)
    timeout: TimeoutOptions = field(default_factory=TimeoutOptions)
    retry: BackoffOptions = field(default_factory=BackoffOptions)
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    ledger: LedgerOptions = field(default_factory=LedgerOptions)
    calls: CallOptions = field(default_factory=CallOptions)
    signals: SignalOptions = field(default_factory=SignalOptions)
    presence: PresenceOptions = field(default_factory=PresenceOptions)
    directory: DirectoryOptions = field(default_factory=DirectoryOptions)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    cards: CardOptions = field(default_factory=CardOptions)
    wait_graph: WaitGraphOptions = field(default_factory=WaitGraphOptions)
    watchdog: WatchdogOptions = field(default_factory=WatchdogOptions)
    retention: RetentionOptions = field(default_factory=RetentionOptions)
    agents: HttpAgentOptions = field(default_factory=HttpAgentOptions)
    http: HttpOptions = field(default_factory=HttpOptions)
    mechanisms: Mapping[str, Mode] = field(default_factory=default_modes)

    @property
    def gateway_name(self) -> str:
        """What this gateway is called."""
        return self.server.name


# Attribute -> options class, for the loader.
PARTS: Final[dict[str, type]] = {
    item.name: get_type_hints(Settings)[item.name] for item in fields(Settings) if item.name != "mechanisms"
}
