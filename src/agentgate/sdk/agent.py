"""An agent: a name, what it declares, and its handlers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from agentgate.errors import ConfigError
from agentgate.model.call import Effect
from agentgate.model.card import (
    CHECK_PREFIX,
    DEGRADED_PREFIX,
    Card,
    Exclusive,
    Grade,
    Skill,
    Tier,
    check_type,
    degraded_type,
    served_type,
)
from agentgate.sdk import last_words
from agentgate.sdk.handler import Handler

F = TypeVar("F", bound=Callable[..., Any])

# Names are parts of keys, which are shown joined by colons.
_NAME: Final = re.compile(r"[\w.+-]{1,128}")


class Agent:
    """A named participant. Each process that runs it is an instance, and takes `concurrency` calls at a time.

    An async handler that waits for a call of its own does not count meanwhile. `tier` is the agent's importance: when
    the system sheds load, `optional` goes first and `core` last. What cannot be declared raises `ConfigError`; where
    nobody catches it, the program ends with its one line, and with exit code 78.

        agent = Agent("stock_agent", tier="core")

        @agent.handles("reserve")
        async def reserve(order: Order, ctx: Context) -> Reservation: ...

        agent.run()
    """

    def __init__(self, name: str, *, tier: Tier = "standard", concurrency: int = 8, version: str = "") -> None:
        last_words.install()
        self.name = _checked_name("the name of an agent", name)
        if concurrency < 1:
            raise ConfigError(f"agent `{name}`: concurrency is at least 1, not {concurrency}")
        if tier not in ("core", "standard", "optional"):
            raise ConfigError(f"agent `{name}`: tier is core, standard or optional, not {tier!r}")
        self.tier: Tier = tier
        self.concurrency = concurrency
        self.version = version
        self._handlers: dict[str, Handler] = {}

    def handles(  # noqa: PLR0913 - what a skill may declare, by name
        self,
        task_type: str,
        *,
        effect: Effect = "write",
        repeatable: bool = False,
        timeout_s: float | None = None,
        grade: Grade = "required",
        compensate: str | None = None,
        exclusive: Exclusive | None = None,
        cost: float = 1.0,
        promises: Sequence[str] = (),
    ) -> Callable[[F], F]:
        """Register a handler for calls of this task type.

        The function takes `(payload)` or `(payload, ctx)`; its annotations are checked on the way in and out and
        published on the card. It may be async (`ctx: Context`), or not, and runs in a thread then (`ctx: SyncContext`).

        `effect`: "write" runs once per idempotency key; "read" promises that nothing changes. `repeatable`: a write
        that may run again without harm. `timeout_s`: the longest an honest answer takes. What takes longer is told to
        stop and run again, if that does no harm; any other write is waited for until its caller's deadline.
        `compensate`: the task type that undoes it. `exclusive`: "business_key" lets work on one business key run one
        after the other, in all processes of the agent, together with its other handlers that say so. `cost`: what a
        call counts for in the quotas of its user, 1 unit for ordinary work. `promises`: the signals that it sends about
        its business key before it ends; who waits for one from this agent is told when it ends without. What the
        function raises says what happened: `Rejected` (a final no), `TryLater` (nothing happened), anything else
        (`handler_error`; `SystemExit` too: it ends the unit, not the agent).
        """
        if timeout_s is not None and timeout_s <= 0:
            raise ConfigError(f"`{task_type}`: timeout_s is more than 0 seconds, not {timeout_s}")
        if exclusive not in (None, "business_key") or (exclusive and effect == "read"):
            raise ConfigError(f'`{task_type}`: exclusive is "business_key", and for writes, not {exclusive!r}')
        if not cost >= 0:
            raise ConfigError(f"`{task_type}`: cost is at least 0 units, not {cost}")
        skill = Skill(
            task_type=_checked_name("a task type", task_type),
            effect=effect,
            repeatable=repeatable,
            timeout_s=timeout_s,
            grade=grade,
            compensate=compensate,
            exclusive=exclusive,
            cost=cost,
            promises=_signal_names(task_type, promises),
        )
        return self._register(skill, _names_where_called())

    def check(self, task_type: str, *, timeout_s: float | None = None) -> Callable[[F], F]:
        """Register the check of a write: a read that tells whether it happened, asked when nobody else can tell.

        It takes the payload of the write and returns what the write would have returned, or None if it did not happen.
        """
        name = check_type(_checked_name("a task type", task_type))
        return self._register(Skill(task_type=name, effect="read", timeout_s=timeout_s), _names_where_called())

    def degraded(self, task_type: str, *, timeout_s: float | None = None) -> Callable[[F], F]:
        """Register the degraded handler of a skill: it answers when the skill itself does not.

        It takes the same payload and returns the same result type, which is checked here, and has no effect by itself:
        the run that it stands in for may still come to its end. Its answers are marked as `degraded`.
        """
        name = degraded_type(_checked_name("a task type", task_type))
        return self._register(Skill(task_type=name, effect="read", timeout_s=timeout_s), _names_where_called())

    def card(self) -> Card:
        """What this agent declares to the gate."""
        return Card(
            agent=self.name,
            tier=self.tier,
            concurrency=self.concurrency,
            skills=tuple(self._described(handler) for handler in self._handlers.values()),
            version=self.version,
        )

    def handler(self, task_type: str) -> Handler | None:
        """The handler of a task type."""
        return self._handlers.get(task_type)

    def run(self, url: str | None = None, *, grace_s: float = 30.0) -> None:
        """Connect to the gate and work until told to stop (Ctrl-C, SIGTERM, or by the gate).

        The gate is at `url`, else at `$AGENTGATE_URL`, else at http://127.0.0.1:7070. Stopping finishes what is in
        hand for up to `grace_s` seconds (the gate's default for how long a call may take). Returns when nothing was
        left; exits with 1 when something was, 75 when the gate asked for a restart, 78 when a setting is wrong or the
        gate refuses this agent for good, 130 at a second Ctrl-C.
        """
        from agentgate.sdk.process import run_process  # noqa: PLC0415 - signals and sockets, only when it runs

        run_process(self, url, grace_s)

    def _register(self, skill: Skill, names: dict[str, Any]) -> Callable[[F], F]:
        def register(function: F) -> F:
            if skill.task_type in self._handlers:
                raise ConfigError(f"agent `{self.name}` has two handlers for `{skill.task_type}`")
            self._handlers[skill.task_type] = Handler(function, skill, names)
            self._check_stand_in(served_type(skill.task_type))
            return function

        return register

    def _check_stand_in(self, task_type: str) -> None:
        """A degraded handler is declared with the very types of its skill, as far as either declares any."""
        skill, stand_in = self._handlers.get(task_type), self._handlers.get(degraded_type(task_type))
        if skill is None or stand_in is None:
            return
        for what, mine, its in (("takes", stand_in.input, skill.input), ("returns", stand_in.output, skill.output)):
            if not mine.is_anything and mine.schema != its.schema:
                raise ConfigError(
                    f"agent `{self.name}`: the degraded handler of `{task_type}` {what} {mine.declared!r}, "
                    f"the handler itself {its.declared!r}"
                )

    def _described(self, handler: Handler) -> Skill:
        """The skill as published: with its schemas, and knowing its check and its degraded handler."""
        skill = handler.skill
        served = self._served_by(skill.task_type)
        stands_in = skill.task_type.startswith(DEGRADED_PREFIX)
        return msgspec.structs.replace(
            skill,
            check=check_type(skill.task_type) in self._handlers,
            degraded=degraded_type(skill.task_type) in self._handlers,
            rests=handler.is_async,  # any other holds a thread
            input_schema=served.input.schema,
            output_schema=(served if stands_in else handler).output.schema,
        )

    def _served_by(self, task_type: str) -> Handler:
        """The handler that this one is a check or the degraded handler of; else itself."""
        name = served_type(task_type)
        served = self._handlers.get(name)
        if served is None:
            does = "checks" if task_type.startswith(CHECK_PREFIX) else "answers for"
            raise ConfigError(f"agent `{self.name}` {does} `{name}`, but has no handler for it")
        return served


def _checked_name(what: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{what} is up to 128 letters, digits, `_`, `.`, `+` or `-`, not {name!r}")
    return name


def _signal_names(task_type: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(map(str.strip, names)):
        raise ConfigError(f"`{task_type}`: promises is a list of names of signals, not {names!r}")
    return tuple(names)


def _names_where_called() -> dict[str, Any]:
    """The local names of the code that calls `handles`, `check` or `degraded`: annotations may refer to them."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    return dict(caller.f_locals) if caller is not None else {}
