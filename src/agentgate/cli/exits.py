"""How a command ends: its exit code, and the one sentence of an error."""

from __future__ import annotations

from typing import Final, Literal

DONE: Final = 0
FAILED: Final = 1  # a call that failed, agents that crashed for good, nothing found
MISUSED: Final = 2  # an option, a file or a setting is wrong
NO_GATE: Final = 3
UNKNOWN: Final = 4  # nobody can tell whether the effect happened
INTERRUPTED: Final = 130

ExitCode = Literal[0, 1, 2, 3, 4, 130]

EXIT_CODES_HELP: Final = (
    "Exit codes: 0 done · 1 failed or not found · 2 wrong option, file or setting · 3 no gate answers · "
    "4 outcome unknown · 130 interrupted."
)


class CommandError(Exception):
    """A command ends here; the message says what is wrong, where, and what to do next."""

    def __init__(self, message: str, code: ExitCode = FAILED) -> None:
        super().__init__(message)
        self.code = code
