"""The routes as they are sent: they may be large, and many ask for them at once, so they are written out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agentgate.gateway import frames
from agentgate.model.link import Routes

if TYPE_CHECKING:
    from agentgate.ports.routes import Routes as Directory


class RouteTexts:
    """The current version of each tenant's routes that somebody has asked for."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._version = -1
        self._texts: dict[str, msgspec.Raw] = {}  # by tenant, of this version

    def of(self, tenant: str, version: int) -> msgspec.Raw:
        """The routes of a tenant, for one that has this version of them: without them, if that is the current one."""
        snapshot = self._directory.snapshot(tenant)
        if snapshot.version == version:
            return msgspec.Raw(frames.encode(Routes(version=version)))
        if self._version != snapshot.version:
            self._version = snapshot.version
            self._texts.clear()
        if tenant not in self._texts:
            self._texts[tenant] = msgspec.Raw(frames.encode(Routes(version=snapshot.version, snapshot=snapshot)))
        return self._texts[tenant]
