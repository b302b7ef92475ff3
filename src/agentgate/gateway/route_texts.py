"""The routes as they are sent to processes, written out once a version and tenant: they may be large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agentgate.gateway import frames
from agentgate.model.link import Routes

if TYPE_CHECKING:
    from agentgate.ports.routes import Routes as Directory


class RouteTexts:
    """Answers to `routes`."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._version = -1
        self._texts: dict[str, msgspec.Raw] = {}  # by tenant, of this version

    def since(self, version: int, tenant: str) -> msgspec.Raw:
        """The routes of a tenant; only their version, if that is the one that is known."""
        snapshot = self._directory.snapshot(tenant)
        if snapshot.version == version:
            return msgspec.Raw(frames.encode(Routes(version=version)))
        if self._version != snapshot.version:
            self._version = snapshot.version
            self._texts.clear()
        if tenant not in self._texts:
            self._texts[tenant] = msgspec.Raw(frames.encode(Routes(version=snapshot.version, snapshot=snapshot)))
        return self._texts[tenant]
