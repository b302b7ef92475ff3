"""The HTTP API, one file a resource: thin handlers that ask the view and say what scope they need.

`HANDLERS` is the route table; every handler carries the scope that a token needs for it (`requires`, or `PUBLIC`).
"""

from typing import Final

from litestar.handlers import HTTPRouteHandler

from agentgate.server.api.agents import agents
from agentgate.server.api.breakers import breakers
from agentgate.server.api.calls import list_calls, look, make_call, settle_call
from agentgate.server.api.chains import chain
from agentgate.server.api.findings import findings
from agentgate.server.api.health import healthz, metrics, readyz
from agentgate.server.api.instances import register, unregister
from agentgate.server.api.locks import locks
from agentgate.server.api.quota import drop_quota, set_quota
from agentgate.server.api.schema import schema
from agentgate.server.api.switch import switch_agent
from agentgate.server.api.waits import list_waits, watch_waits

HANDLERS: Final[list[HTTPRouteHandler]] = [
    healthz,
    readyz,
    metrics,
    agents,
    chain,
    breakers,
    findings,
    list_waits,
    watch_waits,
    locks,
    make_call,
    look,
    list_calls,
    settle_call,
    switch_agent,
    set_quota,
    drop_quota,
    register,
    unregister,
    schema,
]
