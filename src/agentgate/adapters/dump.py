"""Everything a store holds, in one form for all of them, so that two stores can be compared. Not part of the port."""

from __future__ import annotations

from msgspec import Struct

from agentgate.core.expiry import Expiry
from agentgate.model import Record, RouteSnapshot


class Dump(Struct, frozen=True, kw_only=True):
    """Records in key order, open units and gateways in the order of their names."""

    records: list[Record]
    units: list[str]
    epochs: dict[str, int]
    expiry: Expiry | None
    secret: str
    routes: RouteSnapshot
