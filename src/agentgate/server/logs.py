"""Logs go to stderr: lines of JSON for machines, coloured text for a person at a terminal.

Events have names and fields, never payloads or secrets. Libraries that use `logging` come out the same way.
"""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal

import structlog

Level = Literal["debug", "info", "warning", "error"]
LEVELS: Final[dict[Level, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logs(level: Level = "info", *, as_json: bool | None = None) -> None:
    """Set up logging for this process; by default JSON unless stderr is a terminal."""
    as_json = not sys.stderr.isatty() if as_json is None else as_json
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # A trace in colours would show the local variables of every frame; payloads and tokens are among them.
    plain = structlog.dev.plain_traceback
    last: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
