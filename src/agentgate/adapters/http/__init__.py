"""Calls agents by plain HTTP: a small keep-alive client on httptools (docs/explanation/dependencies.md says why)."""

from agentgate.adapters.http.client import SystemHttp
from agentgate.adapters.http.options import HttpOptions

__all__ = ["HttpOptions", "SystemHttp"]
