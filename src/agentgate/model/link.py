"""The messages of the link: JSON-RPC 2.0 over a WebSocket, subprotocol `agentgate.v1` (DESIGN 4.5).

Agent to gate: requests `hello`, `call`, `lock`, `wait_for`, `signal`, `routes`; notifications `beat`, `cancel`,
`unlock`, `wait`, `unwait`, `progress`, `drain`.
Gate to agent: requests `invoke` (id = the unit; its response is an `Answer`) and `probe`; notifications `stop`, `ack`,
`lock_lost`, `drain`.

The id of a `call`, a `lock`, a `wait_for` or a `signal` is its own globally unique id, the id of `invoke` is the
unit's: a repeated frame is recognised by it. A frame may be one message or a JSON array of messages (a JSON-RPC batch),
handled in order.
An outcome is a `result`, also when it is a failure; JSON-RPC `error` is kept for frames that break the protocol.
Times on the wire are remaining milliseconds, so that clocks need not agree.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from agentgate.model.call import Effect, OnDisconnect
from agentgate.model.card import Card
from agentgate.model.lock import LockMode, LockScope
from agentgate.model.outcome import Problem
from agentgate.model.route import RouteSnapshot

SUBPROTOCOL: Final = "agentgate.v1"
LINK_PATH: Final = "/link"


class ProtocolProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A JSON-RPC error object: the frame itself was wrong."""

    code: int
    message: str
    data: Any = None


class Frame(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Any JSON-RPC message: with `method` a request (id set) or notification, without it a response."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: str | int | None = None
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ProtocolProblem | None = None


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a unit came to, as the agent reports it.

    `seq` numbers the keyed answers of an instance from 1; the SDK keeps each until `ack` covers it. Unkeyed: 0.
    `unseen` answers a `stop` for a unit this process never received: nothing happened.
    """

    value: Any = None
    error: Problem | None = None
    seq: int = 0
    handler_ms: float = 0.0
    unseen: bool = False


class UnitReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit that this process still runs, or a keyed answer that no `ack` has covered yet."""

    unit: str
    key: str = ""
    token: str = ""
    remaining_ms: int = 0
    answer: Answer | None = None  # None: still running


class LockReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Locks that this process holds: as they were asked for, in which unit, and the epoch of their grant."""

    id: str
    names: tuple[str, ...]
    mode: LockMode = "exclusive"
    scope: LockScope = "message"
    epoch: int = 0
    unit: str = ""


class HelloParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who connects. Without a card: a client that only calls.

    `calls` are the ids of the calls, locks and signals that it still waits for, `locks` what it holds.

    A client may leave `agent` empty: it is called as its token is.
    """

    agent: str
    instance: str
    card: Card | None = None
    units: tuple[UnitReport, ...] = ()
    calls: tuple[str, ...] = ()
    locks: tuple[LockReport, ...] = ()
    sdk: str = ""
    pid: int = 0


class Welcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to `hello`.

    `unknown_units`: reported units that the gate will not take an answer from any more; the process stops them and
    forgets their answers. `lost_locks`: reported locks, by id, that it does not hold any more. `beat_ms`: send a
    beat at least this often; after `silent_ms` without any frame either side takes the link for dead. `agent`: the
    name that the process has here, for one that left it to its token.
    """

    session: str
    gateway: str
    gateway_epoch: int
    acked: int = 0
    unknown_units: tuple[str, ...] = ()
    lost_locks: tuple[str, ...] = ()
    beat_ms: int = 2000
    silent_ms: int = 6000
    payload_bytes_max: int = 262_144
    agent: str = ""


class CallParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call as a caller sends it. `token` is the unit token of the handler it is made in, if any.

    `age_ms` is for a call that is sent again: how long ago it was made. `timeout_ms` is what is left of the caller's
    own time-out; without one, the gate's counts from when the call was made. `user` is on whose behalf a root call is
    made, by default the caller; a call made in a unit has its root's user, whatever it says. `awaited`: its unit
    stands still until the outcome comes; False: only while a `wait` names it.
    """

    target: str
    task_type: str
    business_key: str = ""
    action: str = "run"
    payload: Any = None
    effect: Effect = "write"
    heavy: bool = False
    timeout_ms: int | None = None
    age_ms: int = 0
    priority: int | None = None
    again: bool = False
    join: bool = True
    on_disconnect: OnDisconnect | None = None
    user: str = ""
    token: str = ""
    traceparent: str = ""
    awaited: bool = True


class WaitForParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit waits for a signal of this name about this object; the response is an `Outcome` with the signal's value.

    `from_agent`: only that agent's signal will do. `token` is the unit's. `timeout_ms`, `age_ms` and `awaited` are
    those of a call.
    """

    name: str
    about: str = ""
    from_agent: str = ""
    token: str = ""
    timeout_ms: int | None = None
    age_ms: int = 0
    awaited: bool = True


class SignalParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit says that something has happened; the response is an `Outcome`. `to`: only that agent's units hear it."""

    name: str
    about: str = ""
    value: Any = None
    to: str = ""
    token: str = ""


class WaitParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From now on a unit stands still until any of these ends: calls and waits that were sent with `awaited` false.

    It is over at the first end, or at an `unwait` of the same id.
    """

    id: str
    any_of: tuple[str, ...]


class UnwaitParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The unit goes on before any of what this `wait` names has ended."""

    id: str


class LockParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for locks, all or none; its response is an `Outcome` whose value is a `LockGrant`.

    `scope`: locks of a message end with the unit that `token` names, those of a session with the process. `timeout_ms`
    and `age_ms` are as in a call; without a time-out the gate's own holds.
    """

    names: tuple[str, ...]
    mode: LockMode = "exclusive"
    scope: LockScope = "message"
    timeout_ms: int | None = None
    age_ms: int = 0
    token: str = ""


class LockGrant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The locks are held. `epoch` is higher than that of every earlier grant of any of them.

    `lease_ms`: they are lost when the process gives no sign of life for so long.
    """

    epoch: int
    lease_ms: int


class UnlockParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Gives back what the `lock` request of this id holds, or no longer waits for it."""

    id: str


class InvokeParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit of work for an agent. `remaining_ms` is what is left until the deadline, `key` as shown to people.

    `unrecorded`: a write that the ledger does not keep (idempotency is off, or only observed). It runs whatever else
    runs under its key.
    """

    task_type: str
    caller: str
    payload: Any = None
    business_key: str = ""
    action: str = "run"
    effect: Effect = "write"
    key: str = ""
    remaining_ms: int = 0
    token: str = ""
    traceparent: str = ""
    attempt: int = 1
    unrecorded: bool = False


class BeatParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sign of life: how many units run, and how far behind the handlers' event loop is."""

    units: int = 0
    lag_ms: float = 0.0


class CancelParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nobody is interested in the end of this call, or of this `wait_for`, any more."""

    id: str


class ProgressParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A note on how far a unit has come."""

    unit: str
    note: str


class RoutesParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Asks for the routes, unless the caller has them already."""

    version: int = -1


class Routes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to `routes`; no snapshot when the version asked with is the current one."""

    version: int
    snapshot: RouteSnapshot | None = None


class DrainParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From the agent: I finish what is in hand, give me nothing new. From the gate: please do so (and restart)."""

    reason: str = ""
    restart: bool = False


StopKind = Literal["cancel", "expire"]


class StopParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tells a unit to stop: `cancel` interrupts the handler, `expire` only tells it (`ctx.expired`)."""

    unit: str
    kind: StopKind
    reason: str = ""


PROBE_ID: Final = "probe"  # one is under way at a time, and no unit is called so

UnitHealth = Literal["running", "waiting", "unknown"]


class ProbeParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Asks for the health of units that have shown no progress for long."""

    units: tuple[str, ...]


class ProbeAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How those units are, and how far behind the handlers' event loop is.

    `running`: a handler is at work. `waiting`: the unit is here and its handler has not begun. `unknown`: it is not
    here, or has ended.
    """

    units: dict[str, UnitHealth] = {}
    lag_ms: float = 0.0


class AckParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every keyed answer up to and including `seq` is on disk; the process may forget them."""

    seq: int


class LockLostParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lease of what this `lock` request held is over: others may have it now."""

    id: str
    reason: str = ""
