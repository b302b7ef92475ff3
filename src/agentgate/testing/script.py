"""A scripted agent: a real SDK agent whose handlers do what a seed draws, and tell a witness.

Before a write answers it takes effect: it is written down outside the platform, and what is written down twice has
happened twice. A unit may end in every way a handler can end (`plan.End`), dying with its process included.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from agentgate.errors import AgentGateError, CallFailed, Rejected, TryLater
from agentgate.sdk.agent import Agent
from agentgate.sdk.calling import CallOptions
from agentgate.sdk.context import Context
from agentgate.sdk.gate import Gate
from agentgate.sdk.handle import Handle
from agentgate.testing.plan import TASKS, Child, Plan, Task, draw_plan, way_plan
from agentgate.testing.witness import Asked, Key, Run, Witness

HANG_LOOK_S = 0.25  # how often a hanging unit looks whether it is told to stop
NEWS = "seen"
NEWS_S = 1.0  # how long a unit waits for news; others of its order run about as long
HANG_S_MAX = 60.0  # beyond any deadline: then even a unit that nobody tells comes to an end


class Order(Struct, frozen=True, kw_only=True):
    """What a scripted agent is asked for. `clean`: a failure must leave no effect, since it may be run again.

    `way`: whom to call, one after the other along the chain, each after `takes_s`; without one the seed says.
    """

    named: str  # the target as the caller named it, which the key as shown does not say
    body: str
    clean: bool = False
    asked: int = 0  # a read: the number of the call
    way: tuple[str, ...] = ()
    takes_s: float = 0.0


class Receipt(Struct, frozen=True, kw_only=True):
    """What it answers: which unit did it, and what it was asked for."""

    unit: str
    body: str


@dataclass(slots=True, kw_only=True, eq=False)
class Life:
    """One process of a scripted agent, from its start to its end."""

    agent: str
    instance: str
    draws: random.Random
    witness: Witness
    targets: Sequence[str]  # whom its units may call
    fault_share: Callable[[], float]  # of its units, now
    kill: Callable[[], None] = field(default=lambda: None)
    links: int = 0  # connections it has had
    dead: bool = False


def scripted_agent(life: Life, concurrency: int) -> Agent:
    """The agent of one process: a handler for every kind of work, and the check of the one that has one."""
    agent = Agent(life.agent, concurrency=concurrency)

    def add(task: Task) -> None:
        @agent.handles(
            task.name,
            effect=task.effect,
            repeatable=task.repeatable,
            timeout_s=task.timeout_s,
            exclusive="business_key" if task.exclusive else None,
        )
        async def work(order: Order, ctx: Context) -> Receipt:
            return await ScriptedUnit(life, task, order, ctx).run()

    def add_check(task: Task) -> None:
        @agent.check(task.name)
        async def happened(order: Order, ctx: Context) -> Receipt | None:
            return look_for_effect(life.witness, _key_of(order, ctx, task), order)

    for task in TASKS:
        add(task)
        if task.check:
            add_check(task)
    return agent


def look_for_effect(witness: Witness, key: Key, order: Order) -> Receipt | None:
    """What a check can know: whether it happened, and nothing as long as it still may."""
    effects = witness.effects_by_key.get(key)
    if effects:
        return Receipt(unit=effects[0].unit, body=order.body)
    if any(run.key == key for run in witness.live_runs.values()):
        raise TryLater("it is still at work", after=1.0)
    return None


class ScriptedUnit:
    """One execution of a handler."""

    def __init__(self, life: Life, task: Task, order: Order, ctx: Context) -> None:
        self._life = life
        self._task = task
        self._order = order
        self._ctx = ctx
        self._took_effect = False
        self._begun: list[Asked] = []  # calls that it does not stand still for
        self._run = Run(
            unit=ctx.unit,
            key=_key_of(order, ctx, task),
            task_type=task.name,
            body=order.body,
            agent=life.agent,
            instance=life.instance,
            link=life.links,
            repeatable=task.repeatable,
            exclusive=ctx.business_key if task.exclusive else "",
            write=task.effect == "write",
            asked=order.asked,
            started_at=life.witness.now(),
            until=life.witness.now() + ctx.deadline,
            told=lambda: ctx.expired,
        )

    async def run(self) -> Receipt:
        """The course that the seed draws for it."""
        life = self._life
        plan = self._plan()
        life.witness.unit_started(self._run)
        end = "cancelled"
        try:
            receipt = await self._follow(plan)
            end = plan.end
        except asyncio.CancelledError:
            if life.dead or not plan.stubborn_s:
                raise
            await asyncio.sleep(plan.stubborn_s)
            end = "answered although told to stop"
            receipt = self._answer()
        except (AgentGateError, RuntimeError) as error:
            end = f"{plan.end}: {error!r}"
            raise
        finally:
            for asked in self._begun:
                _write_down(life.witness, asked, None)
            life.witness.unit_ended(self._run, end)
        return receipt

    def _plan(self) -> Plan:
        life, order = self._life, self._order
        if order.takes_s:
            return way_plan(order.way, order.takes_s)
        depth = self._ctx.business_key.count("/")
        return draw_plan(life.draws, life.targets, depth=depth, fault_share=life.fault_share())

    async def _follow(self, plan: Plan) -> Receipt:
        await asyncio.sleep(plan.before_s)
        await self._exchange_news(plan)
        await self._under_lock(plan)
        if plan.effect_first and plan.end not in ("rejected", "later") and not (self._order.clean and _fails(plan)):
            self._take_effect()
        await asyncio.sleep(plan.after_s)
        match plan.end:
            case "answer":
                return self._answer()
            case "rejected":
                raise Rejected("it is not to be")
            case "later":
                raise TryLater("not now", after=self._life.draws.choice((None, 0.0, 0.5, 5.0)))
            case "raise":
                raise RuntimeError("it went wrong")
            case "malformed":
                nonsense: Any = {"unit": 7}
                return nonsense  # type: ignore[no-any-return]  # which is what is wrong with it
            case "hang":
                return await self._hang(plan)
            case "die":
                self._life.kill()
                await asyncio.sleep(HANG_S_MAX)
                raise asyncio.CancelledError

    async def _hang(self, plan: Plan) -> Receipt:
        """Until told to stop, and then perhaps for a while; whoever began with the effect answers after all."""
        for _ in range(int(HANG_S_MAX / HANG_LOOK_S)):
            if self._ctx.expired:
                break
            await asyncio.sleep(HANG_LOOK_S)
        await asyncio.sleep(plan.stubborn_s)
        if plan.effect_first:
            return self._answer()
        raise RuntimeError("told to stop, and stopped")

    async def _exchange_news(self, plan: Plan) -> None:
        """Units of one order may hear of one another; no news is an ordinary end."""
        ctx, witness = self._ctx, self._life.witness
        order = ctx.business_key.partition("/")[0]
        with contextlib.suppress(CallFailed):
            if plan.news == "tell":
                witness.news_told(ctx.unit, order)
                await ctx.signal(NEWS, about=order, value=ctx.unit)
            elif plan.news == "hear":
                self._run.has_called = True  # it rests meanwhile, as with a call
                witness.news_heard(ctx.unit, order, await ctx.wait_for(NEWS, about=order, timeout=NEWS_S))

    async def _under_lock(self, plan: Plan) -> None:
        """What it has others do, alone with what the lock stands for; if it does not get it, without them."""
        if not plan.lock:
            await self._call_children(plan)
            return
        witness, how = self._life.witness, "left"
        wanted = witness.lock_wanted(plan.lock, self._run)
        try:
            async with self._ctx.lock(plan.lock, timeout=plan.lock_wait_s):
                witness.lock_granted(wanted)
                await self._call_children(plan)
                await asyncio.sleep(plan.after_s)
            how = "gave back"
        except CallFailed as error:
            how = f"lost ({error.code})"
        finally:
            witness.lock_ended(wanted, how)

    async def _call_children(self, plan: Plan) -> None:
        if plan.manner in ("first", "background") and plan.children:
            answers = await self._begin_children(plan)
        elif plan.manner == "gathered" and plan.children:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(self._call_child(*child)) for child in enumerate(plan.children)]
            answers = [task.result() for task in asked]
        else:
            answers = [await self._call_child(*child) for child in enumerate(plan.children)]
        failed = [answer for answer in answers if answer.error is not None]
        if failed and not plan.forgiving:
            raise RuntimeError(f"could not go on without {failed[0].target}")

    async def _call_child(self, number: int, child: Child) -> Asked:
        return await ask(self._life.witness, self._ctx, self._asked(number, child), child.timeout_s)

    async def _begin_children(self, plan: Plan) -> list[Asked]:
        """Start them; then wait for the first, for each of them later, or for none."""
        handles: list[Handle[Any]] = []
        with contextlib.suppress(CallFailed):
            for number, child in enumerate(plan.children):
                asked = self._asked(number, child)
                asked.holds_up = False
                self._begun.append(asked)
                handles.append(begin(self._life.witness, self._ctx, asked, child.timeout_s))
            if plan.manner == "first":
                with self._life.witness.stands_still(self._run.unit, self._begun):
                    await self._ctx.first(*handles)
            else:
                await asyncio.sleep(plan.after_s)
                for asked, handle in zip(self._begun, [] if plan.forgiving else handles, strict=False):
                    with self._life.witness.stands_still(self._run.unit, [asked]):
                        await handle
        return self._begun

    def _asked(self, number: int, child: Child) -> Asked:
        """A loop is the unit's own work, asked for again; any other child has a key of its own below this one's."""
        ctx, run, now = self._ctx, self._run, self._life.witness.now()
        until = now + ctx.deadline
        return Asked(
            caller=self._life.agent,
            target=run.key.named if child.loop else child.target,
            task_type=run.task_type if child.loop else child.task.name,
            business_key=ctx.business_key if child.loop else f"{ctx.business_key}/{number}",
            action=ctx.action,
            body=run.body,
            write=run.write if child.loop else child.task.effect == "write",
            repeatable=run.repeatable if child.loop else child.task.repeatable,
            again=False,
            started_at=now,
            deadline=until if child.timeout_s is None else min(until, now + child.timeout_s),
            way=child.way,
            takes_s=self._order.takes_s,
            by_unit=run.unit,
        )

    def _take_effect(self) -> None:
        if self._run.write and not self._took_effect and not self._life.dead:
            self._took_effect = True
            self._life.witness.took_effect(self._run)

    def _answer(self) -> Receipt:
        self._take_effect()
        return Receipt(unit=self._run.unit, body=self._order.body)


async def ask(witness: Witness, caller: Context | Gate, asked: Asked, timeout_s: float | None) -> Asked:
    """Make a call and write down how it ended for its caller; only being cancelled is raised."""
    order, options = _said(witness, asked, timeout_s)
    try:
        asked.value = await caller.call(asked.target, asked.task_type, asked.business_key, order, **options)
    except CallFailed as error:
        asked.error = error
    except asyncio.CancelledError:
        asked.cancelled = True
        raise
    finally:
        witness.call_ended(asked)
    return asked


def begin(witness: Witness, ctx: Context, asked: Asked, timeout_s: float | None) -> Handle[Any]:
    """Start a call; how it ends is written down when it does."""
    order, options = _said(witness, asked, timeout_s)
    handle = ctx.start(asked.target, asked.task_type, asked.business_key, order, **options)
    handle.answered.add_done_callback(lambda _: _write_down(witness, asked, handle))
    return handle


def _write_down(witness: Witness, asked: Asked, handle: Handle[Any] | None) -> None:
    """What a call that was started came to; without a handle, its unit has ended before it."""
    if asked.ended_at is not None:
        return
    try:
        asked.value = handle.value() if handle is not None else None
        asked.cancelled = handle is None
    except CallFailed as error:
        asked.error, asked.cancelled = error, error.code == "cancelled"
    except asyncio.CancelledError:
        asked.cancelled = True
    witness.call_ended(asked)


def _said(witness: Witness, asked: Asked, timeout_s: float | None) -> tuple[Order, CallOptions]:
    """What a call says, from its start on."""
    witness.call_started(asked)
    options: CallOptions = {
        "action": asked.action,
        "effect": "write" if asked.write else "read",
        "timeout": timeout_s,
        "again": asked.again,
    }
    options.update(asked.options)
    order = Order(
        named=asked.target,
        body=asked.body,
        clean=asked.clean,
        asked=0 if asked.write else asked.number,
        way=asked.way,
        takes_s=asked.takes_s,
    )
    return order, options


def _fails(plan: Plan) -> bool:
    """Whether its end is a failure that may be stored, and run again by `again`."""
    return plan.end in ("raise", "malformed") or (plan.end == "hang" and not plan.effect_first)


def _key_of(order: Order, ctx: Context, task: Task) -> Key:
    """The key of the unit's call, for reads and checks as well."""
    return Key(order.named, f"{ctx.caller}:{task.name}:{ctx.business_key}:{ctx.action}")
