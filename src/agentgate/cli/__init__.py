"""The command line. One file a command; each is thin."""

from __future__ import annotations

import sys


def main() -> None:
    """`agentgate`, as installed."""
    try:
        from agentgate.cli.main import run
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "agentgate":
            raise
        sys.stderr.write(
            f"agentgate: the command line needs {error.name!r}, which the base install leaves out; "
            "type: pip install 'agentgate-control-plane[gate]'\n"
        )
        sys.exit(2)
    sys.exit(run())
