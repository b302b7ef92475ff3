"""Logs go to standard error, as JSON for machines, whoever writes them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SCRIPT = """
import logging
import structlog
from agentgate.server.logs import configure_logs

configure_logs("info")
log = structlog.get_logger("agentgate.test")
log.debug("hidden")
log.info("shown", agent="stock", count=3)
logging.getLogger("uvicorn.error").warning("from a library: %s", "odd request")
logging.getLogger("websockets.server").debug("payload")
try:
    raise ValueError("broken")
except ValueError:
    log.exception("failed")
"""


def logged() -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_every_line_is_one_json_object() -> None:
    """Events, lines of libraries and exceptions are one JSON object a line, above the level, with time and level."""
    shown, library, failed = logged()
    assert (shown["event"], shown["agent"], shown["count"], shown["level"]) == ("shown", "stock", 3, "info")
    assert (library["event"], library["level"]) == ("from a library: odd request", "warning")
    assert failed["event"] == "failed"
    assert "ValueError: broken" in failed["exception"]
    assert all(line["timestamp"].endswith("Z") for line in (shown, library, failed))
