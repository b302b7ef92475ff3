"""Calls of those who are not connected: each comes by itself, over HTTP, and there is no session behind it.

The counterpart of `gateway/link.py`. A call is attributed and walks down the same path; who made it waits for `ended`,
or leaves. How many may be open is bounded, for each caller and for all. What is asked for afterwards, by the call's id,
is in `known_calls`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from agentgate.gateway.peers import RunningCall
from agentgate.model import Call, Outcome, Problem, Tier, failure, plain
from agentgate.runtime.later import Later

if TYPE_CHECKING:
    from agentgate.core.chain import ChainGuard
    from agentgate.core.unit_token import UnitTokens
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.entry import Entry
    from agentgate.gateway.options import CallOptions
    from agentgate.gateway.passage import Passage
    from agentgate.model.link import CallParams
    from agentgate.ports.routes import Routes

ANONYMOUS: Final = "client"  # who does not say who it is, where nobody has to
AGAIN_S: Final = 1.0


class FrontCall(RunningCall):
    """A call that has no outcome yet; `ended` comes true with it."""

    __slots__ = ("_on_left", "ended")

    def __init__(
        self, passage: Passage, task: asyncio.Task[None], ended: Later[Outcome], on_left: Callable[[Call], None]
    ) -> None:
        super().__init__(passage, task)
        self.ended = ended
        self._on_left = on_left

    def left(self) -> None:
        """Who made it is gone: keyed work goes on until its deadline, unless it was asked not to (DESIGN 12.3)."""
        self._on_left(self.passage.call)
        if not self.detached:
            self.cancel()


class Front:
    """Takes calls, and counts those that are open."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        *,
        run: Callable[[Passage], Awaitable[Outcome]],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        new_id: Callable[[str], str],
        entry: Entry,
        guard: ChainGuard,
        tokens: UnitTokens,
        routes: Routes,
        counters: Counters,
        left: Callable[[Call], None],
        options: CallOptions,
    ) -> None:
        self._run = run
        self._spawn = spawn
        self._new_id = new_id
        self._entry = entry
        self._guard = guard
        self._tokens = tokens
        self._routes = routes
        self._counters = counters
        self._left = left
        self._options = options
        self._open: Counter[tuple[str, str]] = Counter()  # by tenant and caller
        self._passages: dict[str, Passage] = {}  # of open calls, by id
        self.is_stopping = False

    def __len__(self) -> int:
        """How many calls are open."""
        return len(self._passages)

    @property
    def passages(self) -> list[Passage]:
        """The open calls, in the order in which they came."""
        return list(self._passages.values())

    def call(self, params: CallParams, tenant: str, caller: str, refusal: Problem | None = None) -> FrontCall | Outcome:
        """Begin a call; an outcome at once means that it was not taken.

        Without a caller it is whose unit token it carries. `refusal` is what is wrong with the request itself: it ends
        the call inside, so that it leaves a span like any other.
        """
        self._counters.messages += 1
        caller = caller or self._caller_of(params.token)
        who = (tenant, caller)
        if len(self) >= self._options.http_calls_max or self._open[who] >= self._options.peer_calls_max:
            detail = (
                f"{self._open[who]} calls of {caller[:100]} are open over HTTP, {len(self)} in all: a bound is reached"
            )
            return failure("overloaded", retry_after_s=AGAIN_S, detail=detail)
        passage = self._entry.read(
            self._new_id("c"),
            params,
            tenant=tenant,
            caller=caller,
            instance="",  # no process that could be told from another
            tier=self._tier_of(tenant, params.token, caller),
            refusal=refusal,
        )
        if self.is_stopping and not passage.call.parent_unit:
            return failure("overloaded", retry_after_s=AGAIN_S, detail="the gate stops; the next one takes it")
        self._passages[passage.call.id] = passage
        self._open[who] += 1
        ended: Later[Outcome] = Later()
        return FrontCall(passage, self._spawn(self._carry(passage, who, ended)), ended, self._left)

    def _caller_of(self, token: str) -> str:
        claim = self._tokens.read(token) if token else None
        unit = self._guard.units.get(claim.unit) if claim is not None else None
        return plain(unit.call.agent) if unit is not None else ANONYMOUS

    def _tier_of(self, tenant: str, token: str, caller: str) -> Tier:
        """An agent's own, when the call is made by its unit; anybody else is a client."""
        route = self._routes.resolve(tenant, caller) if token else None
        return route.card.tier if route is not None else "standard"

    async def _carry(self, passage: Passage, who: tuple[str, str], ended: Later[Outcome]) -> None:
        try:
            outcome = await self._run(passage)
        except asyncio.CancelledError:
            outcome = failure("cancelled", sent=passage.sent)
        del self._passages[passage.call.id]
        self._open[who] -= 1
        if not self._open[who]:
            del self._open[who]
        self._counters.messages += 1
        ended.set_result(outcome)
