"""One set of requests to the ledger, taken in order, as if each had been alone.

Decides what a store has to write after a batch of claims or changes. The rules:

- Requests for one key take effect in the order given: the second sees what the first did.
- Either all of it is written or nothing: a request that raises leaves the batch without effect, because the store
  writes only after the last decision.
- Only what changed is written.

How it works: a store reads the records of all keys in question, hands them in, asks for one decision after the other
and then writes `written` in one transaction. Every store does so; that is why they cannot disagree.

Not covered: transactions, order of locks, what a row looks like (the adapters).
"""

from __future__ import annotations

from collections.abc import Mapping

from agentgate.core import expiry, ledger
from agentgate.core.ledger import LedgerOptions
from agentgate.model import Change, Changed, Claim, Claimed, KeyId, Record


class LedgerBatch:
    """Decides about the requests of one batch. `written` maps each changed key to its record; None: the key is free."""

    def __init__(self, records: Mapping[KeyId, Record], *, now: float, horizon: float, options: LedgerOptions) -> None:
        self._records = records
        self._now = now
        self._horizon = horizon
        self._options = options
        self.written: dict[KeyId, Record | None] = {}

    def claim(self, claim: Claim, gateway: str, gateway_epoch: int) -> Claimed:
        """Decide about one claim."""
        standing = self._standing(claim.key)
        answer = ledger.claim(
            standing, claim, gateway=gateway, gateway_epoch=gateway_epoch, now=self._now, options=self._options
        )
        if answer.record is not standing:
            self.written[claim.key] = answer.record
        return answer

    def change(self, change: Change) -> Changed:
        """Decide about one report."""
        answer = ledger.change(self._standing(change.key), change, now=self._now, options=self._options)
        if answer.accepted:
            self.written[change.key] = answer.record
        return answer

    def _standing(self, key: KeyId) -> Record | None:
        """The live record of a key after the requests so far."""
        if key in self.written:
            return self.written[key]
        return expiry.live(self._records.get(key), self._horizon)
