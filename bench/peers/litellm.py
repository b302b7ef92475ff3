"""LiteLLM's proxy with one worker."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import msgspec

from bench import http_wire, processes
from bench.peers import CHAT, LOOPBACK, Place, Target, chat


class LiteLlm:
    """The command `litellm` on the path: it wants an environment of its own, so it is no extra of ours."""

    name = "litellm"
    note = "litellm: one worker, 2 retries, one key, no database; chat completions, so bodies are larger"

    def missing(self) -> str:
        """The command."""
        if shutil.which("litellm"):
            return ""
        return "pip install 'litellm[proxy]' in another environment, and put its folder of commands on the path"

    @contextlib.contextmanager
    def running(self, place: Place) -> Iterator[dict[str, Target]]:
        """With one model, which is the upstream; it is kept from fetching price lists and from reporting its use."""
        port = processes.free_port()
        file = place.folder / "litellm.yaml"
        key = f"sk-{os.urandom(32).hex()}"  # it does not start without a good one
        file.write_bytes(msgspec.json.encode(_configuration(place.upstream_port, key)))  # JSON is YAML
        command = shutil.which("litellm")
        assert command is not None
        arguments = [command, "--config", str(file), "--host", LOOPBACK, "--port", str(port), "--num_workers", "1"]
        quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "NO_PROXY": "*"}
        request = http_wire.request("POST", CHAT, chat.question(place.payload), authorization=f"Bearer {key}")
        environment = {**os.environ, **quiet}
        environment.pop("PYTHONPATH", None)  # it is not our environment
        with processes.server([*arguments, "--telemetry", "False"], place.folder, port, request, environment) as pid:
            yield {self.name: Target(port=port, request=request, pid=pid)}


def _configuration(upstream_port: int, key: str) -> dict[str, object]:
    parameters = {
        "model": f"openai/{chat.MODEL}",
        "api_base": f"http://{LOOPBACK}:{upstream_port}/v1",
        "api_key": chat.KEY,
    }
    return {
        "model_list": [{"model_name": chat.MODEL, "litellm_params": parameters}],
        "router_settings": {"num_retries": 2},
        "general_settings": {"master_key": key},
        "litellm_settings": {"telemetry": False},
    }
