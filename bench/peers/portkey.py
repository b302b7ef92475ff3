"""Portkey's open gateway, from npm."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import http_wire, processes
from bench.peers import CHAT, LOOPBACK, Place, Target, chat

PACKAGE: Final = "@portkey-ai/gateway"
ASK_NPM_S: Final = 20.0


class Portkey:
    """The package, installed in the folder the measurement is started in, or globally."""

    name = "portkey"
    note = (
        "portkey: one process of Node, 2 retries; asks and answers chat completions, so bodies are larger;"
        " it listens on every address of the machine while it is measured"
    )

    def missing(self) -> str:
        """Node or the package."""
        if shutil.which("node") is None:
            return f"install Node.js, then npm install {PACKAGE}"
        return "" if _script() else f"npm install {PACKAGE}"

    @contextlib.contextmanager
    def running(self, place: Place) -> Iterator[dict[str, Target]]:
        """Told with every request where its provider is."""
        script = _script()
        assert script is not None
        port = processes.free_port()
        headers = {
            "authorization": f"Bearer {chat.KEY}",
            "x_portkey_provider": "openai",
            "x_portkey_custom_host": f"http://{LOOPBACK}:{place.upstream_port}/v1",
            "x_portkey_config": '{"retry":{"attempts":2}}',
        }
        request = http_wire.request("POST", CHAT, chat.question(place.payload), **headers)
        arguments = ["node", str(script), f"--port={port}", "--headless"]
        with processes.server(arguments, place.folder, port, request) as pid:
            yield {self.name: Target(port=port, request=request, pid=pid)}


def _script() -> Path | None:
    """What starts it."""
    folders = [Path.cwd() / "node_modules"]
    if npm := shutil.which("npm"):
        root = subprocess.run([npm, "root", "--global"], capture_output=True, text=True, timeout=ASK_NPM_S, check=False)
        folders.append(Path(root.stdout.strip()))
    scripts = [folder / PACKAGE / "build" / "start-server.js" for folder in folders]
    return next((script for script in scripts if script.exists()), None)
