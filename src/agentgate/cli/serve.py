"""`agentgate serve`."""

from __future__ import annotations

from agentgate.cli.options import AsJson, ConfigFile, Host, LogLevel, Port, Store, Tokens
from agentgate.cli.output import print_json, say
from agentgate.cli.signals import stop_signal


def serve(
    config: ConfigFile = None,
    host: Host = None,
    port: Port = None,
    store: Store = None,
    tokens: Tokens = None,
    log_level: LogLevel = "info",
    *,
    as_json: AsJson = False,
) -> None:
    """Run the gate until it is told to stop.

    SIGTERM or Ctrl-C takes nothing new, lets running calls end, and stops; a second one stops at once. What is keyed
    goes on after a restart.
    With --json the first line on standard output is {"url": …}, once the gate takes calls.

    Example: agentgate serve --config agentgate.yaml --port 7070
    """
    from agentgate.cli import gate

    settings = gate.read_settings(config, host, port, store, tokens)
    gate.start_logs(log_level)
    store_said = gate.store_of(settings)

    async def main() -> None:
        stop = stop_signal()
        async with gate.open_gate(settings) as (_, server):
            if as_json:
                print_json({"url": server.url}, in_one_line=True)
            else:
                say(f"agentgate {server.url}, {store_said}; Ctrl-C stops it")
            await stop.wait()
            say("agentgate stops: it takes nothing new and lets running calls end; Ctrl-C again stops it at once")

    gate.run_gate(main)
