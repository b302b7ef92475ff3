"""Calls over HTTP, without a word about sockets: headers and a body in, a reply out.

`take` is made for a protocol that is called back: it begins a call and costs one task, the call's own. `answer` is the
same for whoever would rather wait. A keyed call that takes long is answered with 202 and goes on; it is asked for by
its id (`look`). What is wrong with a request ends its call inside the gate, so that it leaves a span like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from agentgate.core.call_id import key_of
from agentgate.errors import WireError
from agentgate.gateway import reading
from agentgate.gateway.entry import PRIORITY_MAX, TIMEOUT_MS_MAX
from agentgate.gateway.front import FrontCall
from agentgate.model import OBSERVE, OPERATE, SUBMIT, Call, Identity, KeyId, Outcome, Problem, problem
from agentgate.model.link import CallParams
from agentgate.runtime.later import Later
from agentgate.server import replies
from agentgate.server.call_headers import CallHeaders, Headers, read_headers
from agentgate.server.limit_fields import LimitFields, Who
from agentgate.server.replies import Reply

if TYPE_CHECKING:
    from agentgate.gateway.gateway import Gateway
    from agentgate.gateway.passage import Passage
    from agentgate.ports.clock import Clock

UNREADABLE: Final = "(unreadable)"
LATE_S: Final = 1.0
AGAIN_S: Final = 1.0
LOOK_S_MAX: Final = 60  # of waiting for a call that is asked for by its id; then ask again

WITHOUT_KEY: Final = (
    "a call that is not declared a read needs a business key, such as the order's id: "
    "the header Idempotency-Key, or `business_key` in the body"
)
TWO_KEYS: Final = "the header Idempotency-Key and `business_key` in the body differ; send one of them"
TWO_TOKENS: Final = "the header agentgate-unit-token and `token` in the body differ; send one of them"
NOT_KNOWN: Final = (
    "nothing is known of this call: it never came, was turned away a while ago, or its record has expired"
)
STOPS: Final = "the gate stops"
SAFE_TO_REPEAT: Final = "Make the same call again: running it twice does no harm."
REPEAT: Final = "Repeat the call with the same key and body: it runs at most once."


class CallBody(CallParams, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The body of a call over HTTP: a call as on the link, and who makes it, where no token says so."""

    caller: str = ""


_body: Final = msgspec.json.Decoder(CallBody)


class Pending:
    """A call that was begun and is not answered yet."""

    __slots__ = ("_call", "_calls", "_is_given_up", "_key", "_reply", "_timer")

    def __init__(self, calls: HttpCalls, call: FrontCall, wait_s: float | None, reply: Callable[[Reply], None]) -> None:
        self._calls = calls
        self._call = call
        made = call.passage.call
        self._key = made.key_id if made.keyed and made.business_key else None
        self._is_given_up = False
        self._reply: Callable[[Reply], None] | None = reply
        self._timer: asyncio.TimerHandle | None = None
        if wait_s is not None:  # after its deadline there is an outcome in any case
            at = min(made.received_at + wait_s, made.deadline + LATE_S)
            self._timer = asyncio.get_running_loop().call_at(at, self.let_go)
        calls.waiting[self] = None
        call.ended.then(lambda ended: self._answer(ended.result()))

    def left(self) -> None:
        """Whoever waits for the reply is gone."""
        self._call.left()

    def let_go(self) -> None:
        """Answer that it goes on."""
        assert self._key is not None, "only a keyed call can be asked for later"
        self._calls.known.accept(self._call)
        made = self._call.passage.call
        flight = self._call.passage.flight
        state = flight.state() if flight is not None else ""
        limits = self._calls.limits.of((made.tenant, made.caller), made)
        self._send(replies.running(self._key, state, made.trace_id, limits))

    def give_up(self) -> None:
        """The gate stops: what can be asked for later is; anything else ends, and its end says whether it was sent."""
        if self._timer is not None:
            self.let_go()
            return
        self._is_given_up = True
        self._call.cancel()

    def _answer(self, outcome: Outcome) -> None:
        if self._reply is None:
            return
        made = self._call.passage.call
        if self._is_given_up and outcome.code == "cancelled":
            outcome = Outcome(error=_when_stopping(self._call.passage, has_record=made.keyed and self._calls.keeps))
        self._send(self._calls.reply_to((made.tenant, made.caller), outcome, self._key, made.trace_id, made))

    def _send(self, reply: Reply) -> None:
        if self._timer is not None:
            self._timer.cancel()
        del self._calls.waiting[self]
        say, self._reply = self._reply, None
        assert say is not None, "a call is answered once"
        say(reply)


class HttpCalls:
    """Takes calls and answers them."""

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        options = gateway.options
        self.known = gateway.known_calls
        self.waiting: dict[Pending, None] = {}  # calls that are not answered yet
        self._stops: Later[None] = Later()
        self._has_given_up = False
        self._front = gateway.front
        self._clock = clock
        self._payload = options.payload
        self._answer_within_s = options.calls.answer_within_s
        self.keeps = options.mechanisms.get("idempotency", "enforce") == "enforce"
        self.limits = LimitFields(gateway, clock)

    def take(self, headers: Headers, body: bytes, identity: Identity, reply: Callable[[Reply], None]) -> Pending | None:
        """Begin a call and say `reply` once; None: it has been said already."""
        params, wait_s, refusal = self._read(headers, body)
        caller = params.caller
        if identity.name is not None:
            if caller not in ("", identity.name):
                detail = f"this token is that of {identity.name!r}, which may not call as {caller[:100]!r}"
                refusal = problem("forbidden", detail=detail)
            caller = identity.name
        if not identity.may_call():
            refusal = problem("forbidden", detail=f"a call needs a token with the scope {SUBMIT!r}")
        if self._has_given_up:  # also what a unit calls: nobody would wait for its answer any more
            refusal = problem("overloaded", retry_after_s=AGAIN_S, detail=STOPS)
        begun = self._front.call(params, identity.tenant, caller, refusal)
        if isinstance(begun, Outcome):
            reply(self.reply_to((identity.tenant, caller), begun, None, ""))
            return None
        return Pending(self, begun, wait_s if refusal is None else None, reply)

    async def answer(self, headers: Headers, body: bytes, identity: Identity) -> Reply:
        """The reply to a call; being cancelled means that whoever waited for it is gone."""
        said: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        pending = self.take(headers, body, identity, lambda reply: None if said.done() else said.set_result(reply))
        try:
            return await said
        except asyncio.CancelledError:
            if pending is not None:
                pending.left()
            raise

    def stop_waiting(self) -> None:
        """The gate stops: say to those who ask what became of a call what is known by now."""
        self._stops.set_result(None)

    def give_up(self) -> None:
        """The gate is about to end: answer whoever still waits for a call."""
        self._has_given_up = True
        for pending in list(self.waiting):
            pending.give_up()

    async def look(self, name: str, headers: Headers, identity: Identity) -> Reply:
        """What became of the call with this id; `Prefer: wait=n` waits for its end. Raises `StoreError`."""
        try:
            wait_s = read_headers(headers).wait_s or 0
        except WireError as error:
            return replies.refusal(problem(error.code, detail=error.detail))
        key = key_of(name, identity.tenant)
        if key is not None and not _may_see(identity, key):
            detail = f"another caller's call; that needs a token with the scope {OBSERVE!r} or {OPERATE!r}"
            return replies.refusal(problem("forbidden", detail=detail))
        known = None
        if key is not None:
            known = await self.known.find(key, self._clock.now() + min(wait_s, LOOK_S_MAX), self._stops)
        if key is None or known is None:
            return replies.refusal(replace(problem("not_found", detail=NOT_KNOWN), advice=REPEAT))
        if known.outcome is None:
            return replies.running(key, known.state, known.trace_id, [])
        return self.reply_to((key.tenant, key.caller), known.outcome, key, known.trace_id)

    def reply_to(self, who: Who, outcome: Outcome, key: KeyId | None, trace_id: str, call: Call | None = None) -> Reply:
        """An outcome for this caller, and for its call if it is just this one's."""
        return replies.of_outcome(outcome, key, trace_id, self.limits.of(who, call, outcome.error))

    def _read(self, headers: Headers, body: bytes) -> tuple[CallBody, float | None, Problem | None]:
        """The call, how long a keyed one may take before it is answered that it goes on, and what is wrong."""
        try:
            said = read_headers(headers)
            params = _merged(reading.call(body, self._payload, _body), said)
        except WireError as error:
            params = CallBody(target=UNREADABLE, task_type=UNREADABLE, effect="read")
            return params, None, problem(error.code, detail=error.detail)
        if params.effect != "write" or not self.keeps:
            return params, None, None
        if said.wait_s is None:  # a handler has a deadline of its own, and wants the answer, not an id
            return params, None if params.token else self._answer_within_s, None
        return params, said.wait_s, None


def _when_stopping(passage: Passage, *, has_record: bool) -> Problem:
    """What a caller is told whose call a stopping gate cannot wait for; a client may repeat it only if that is safe."""
    if not passage.sent:
        return problem("overloaded", retry_after_s=AGAIN_S, detail=STOPS)
    if passage.safe:  # a read, or declared repeatable
        error = problem("overloaded", sent=True, retry_after_s=AGAIN_S, detail=f"{STOPS}, and the agent is at work")
        return replace(error, advice=SAFE_TO_REPEAT)
    if has_record:
        return problem("in_progress", sent=True, retry_after_s=AGAIN_S, detail=f"{STOPS}, and the agent is at work")
    return problem("outcome_unknown", sent=True, detail=f"{STOPS}, the agent is at work, and nothing keeps its answer")


def _check(params: CallBody) -> None:
    """Numbers that mean nothing; the link takes the nearest that does, a person is told."""
    if params.priority is not None and not 0 <= params.priority <= PRIORITY_MAX:
        raise WireError(f"`priority` is 0 to {PRIORITY_MAX}, not {params.priority}")
    if params.timeout_ms is not None and not 0 < params.timeout_ms <= TIMEOUT_MS_MAX:
        raise WireError(f"`timeout_ms` is 1 to {TIMEOUT_MS_MAX} (a day), not {params.timeout_ms}")


def _merged(params: CallBody, said: CallHeaders) -> CallBody:
    """The body with what the headers add; raises `WireError` where they contradict it."""
    _check(params)
    more: dict[str, Any] = {}
    if said.key and said.key != params.business_key:
        if params.business_key:
            raise WireError(TWO_KEYS)
        more["business_key"] = said.key
    is_read = params.effect == "read"
    if not (is_read or said.key or params.business_key.strip()):
        raise WireError(WITHOUT_KEY)
    if is_read and said.wait_s is not None:  # it cannot be asked for later, so it ends when nobody waits any more
        said.end_by(said.wait_s * 1000)
    if said.timeout_ms is not None and (params.timeout_ms is None or said.timeout_ms < params.timeout_ms):
        more["timeout_ms"] = said.timeout_ms
    if said.token and said.token != params.token:
        if params.token:
            raise WireError(TWO_TOKENS)
        more["token"] = said.token
    if said.traceparent and not params.traceparent:
        more["traceparent"] = said.traceparent
    return replace(params, **more) if more else params


def _may_see(identity: Identity, key: KeyId) -> bool:
    return identity.name == key.caller or identity.may(OBSERVE) or identity.may(OPERATE)
