"""How a program ends that made an agent that cannot be: with one line, and the exit code of a wrong setting.

A wrong handler is found while its file is being read, before `agent.run`. Python would end the program with a traceback
through our own code and exit code 1, which supervisors take for a crash and start again.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Final

from agentgate.errors import ConfigError

EXIT_REFUSED: Final = 78  # EX_CONFIG


def install() -> None:
    """Let a `ConfigError` that nobody catches end this program so, unless somebody else has a say in that."""
    if sys.excepthook is sys.__excepthook__ and not hasattr(sys, "ps1"):  # a session of a person goes on
        sys.excepthook = _end


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, ConfigError):
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write(f"{error}\n")
    sys.exit(EXIT_REFUSED)
