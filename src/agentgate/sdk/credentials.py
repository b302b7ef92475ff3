"""Who this process is, to its gate: the token in `AGENTGATE_TOKEN`. It is shown to the gate and to nobody else."""

from __future__ import annotations

import os
from typing import Final

from agentgate.errors import ConfigError

TOKEN_VARIABLE: Final = "AGENTGATE_TOKEN"  # noqa: S105 - the name of a variable, no secret


def credentials() -> dict[str, str]:
    """The header that shows the token, or nothing; raises `ConfigError` for what cannot be one, without showing it."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        return {}
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"{TOKEN_VARIABLE} holds characters that no token has; set it to the token and nothing else")
    return {"Authorization": f"Bearer {token}"}
