"""Which key an open unit works for, by its name."""

from __future__ import annotations

from collections.abc import Iterable

from agentgate.core.ledger import OPEN
from agentgate.model import KeyId, Record


class OpenUnits:
    """Follows every change of a record; as large as what is open."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._keys: dict[str, KeyId] = {}
        for record in records:
            self.keep(None, record)

    def keep(self, before: Record | None, after: Record | None) -> None:
        """A record has changed."""
        for ref in before.units if before is not None else ():
            self._keys.pop(ref.unit, None)
        if after is not None and after.state in OPEN:
            self._keys.update(dict.fromkeys((ref.unit for ref in after.units), after.key))

    def key_of(self, unit: str) -> KeyId | None:
        """The key it works for, if it is open."""
        return self._keys.get(unit)

    def names(self) -> list[str]:
        """All open units, in order."""
        return sorted(self._keys)
