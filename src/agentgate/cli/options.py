"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Where the gate is [AGENTGATE_URL, else http://127.0.0.1:7070]."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The configuration [AGENTGATE_CONFIG, else defaults].")
]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Listen here [server.host: 127.0.0.1].")]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="PORT", help="Listen on this port, 0 for any free one [server.port: 7070]."),
]
Store = Annotated[
    str | None,
    typer.Option("--store", metavar="STORE", help="memory, or sqlite:FILE [store: sqlite:agentgate.sqlite]."),
]
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", metavar="FILE", help="Let in who shows one of these tokens [server.tokens: off]."),
]
LogLevel = Annotated[str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")]
