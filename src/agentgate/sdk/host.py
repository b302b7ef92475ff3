"""Runs an agent's handlers for the units that a link brings.

`async with AgentHost(agent, link): await link.run()` is a whole agent on one event loop; with `sdk.thread` the link has
a thread and a loop of its own, and the host does not notice.

Every unit that was started is answered exactly once, whatever its handler does: by its task (or its job in a thread) as
its last act, or for it when it was cancelled before its first step.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from types import TracebackType
from typing import Final, Self

import msgspec

from agentgate.errors import LinkDown
from agentgate.model.link import Answer, DrainParams, InvokeParams, StopKind, Welcome
from agentgate.sdk.agent import Agent
from agentgate.sdk.answers import error_answer, not_sent
from agentgate.sdk.bridge import Bridge, BridgedPort
from agentgate.sdk.context import Context
from agentgate.sdk.handler import Handler
from agentgate.sdk.inbox import units_max
from agentgate.sdk.link import Link
from agentgate.sdk.port import LinkPort
from agentgate.sdk.sync_context import SyncContext
from agentgate.sdk.threads import HandlerThreads
from agentgate.sdk.unit import Unit

log: Final = logging.getLogger("agentgate.agent")


class AgentHost:
    """The handlers of an agent at work; the `Receiver` of its link.

    With a `Link`, everything is on its loop. Otherwise `port` serves tasks, and `thread_port` handlers in threads.
    """

    def __init__(self, agent: Agent, port: Link | LinkPort, *, thread_port: LinkPort | None = None) -> None:
        self.agent = agent
        self.is_up = False
        self.is_draining = False
        self.restart_wanted = False
        self._port: LinkPort = port
        self._thread_port = thread_port
        self._tasks: dict[str, tuple[Unit, asyncio.Task[None]]] = {}
        self._jobs: dict[str, tuple[Unit, SyncContext]] = {}
        self._threads = HandlerThreads(agent.concurrency, waiting_max=units_max(agent.concurrency))
        self._group: asyncio.TaskGroup | None = None
        if isinstance(port, Link):
            port.receiver = self

    async def __aenter__(self) -> Self:
        """Ready for units."""
        if isinstance(self._port, Link):
            loop = asyncio.get_running_loop()
            self._thread_port = BridgedPort(self._port, Bridge(loop), loop.time)
        self._group = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What still runs is cancelled; handlers in threads are left behind."""
        group, self._group = self._group, None
        self._threads.stop()
        for _, task in list(self._tasks.values()):
            task.cancel()
        for _, context in list(self._jobs.values()):
            context.interrupt()
        if group is not None:
            await group.__aexit__(kind, error, trace)

    @property
    def running(self) -> list[str]:
        """The units whose handlers run, as `task_type unit`."""
        units = [unit for unit, _ in self._tasks.values()] + [unit for unit, _ in list(self._jobs.values())]
        return [f"{unit.params.task_type} {unit.id}" for unit in units]

    async def cancel_all(self, wait_s: float) -> None:
        """Interrupt every handler that can be, and wait a while for them to clean up."""
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=wait_s)

    # What the link asks for (`Receiver`).

    def start(self, unit_id: str, params: InvokeParams, deadline: float) -> None:
        """Run the handler of this unit."""
        handler = self.agent.handler(params.task_type)
        unit = Unit(unit_id, params, deadline)
        if self._group is None:
            self._port.answer(unit_id, not_sent("this instance is leaving"))
        elif handler is None:
            why = f"`{self.agent.name}` has no handler for `{params.task_type}`"
            self._port.answer(unit_id, not_sent(why, code="no_route", fault=None))
        elif handler.is_async:
            task = self._group.create_task(self._perform(handler, unit))
            self._tasks[unit_id] = (unit, task)
            task.add_done_callback(partial(self._end_task, unit))
        else:
            assert self._thread_port is not None, "entered"
            context = SyncContext(unit, self._thread_port)
            self._jobs[unit_id] = (unit, context)
            job = partial(self._perform_in_thread, handler, unit, context, self._thread_port)
            asyncio.get_running_loop().run_in_executor(self._threads, job).add_done_callback(
                partial(self._end_job, unit)
            )

    def stop(self, unit: str, kind: StopKind, reason: str) -> None:
        """Tell a unit: `expire` lets it see `ctx.expired`, `cancel` interrupts it (a thread only where it waits)."""
        if (active := self._tasks.get(unit)) is not None:
            active[0].told = kind
            if kind == "cancel":
                active[1].cancel(reason)
        elif (job := self._jobs.get(unit)) is not None:
            job[0].told = kind
            if kind == "cancel":
                job[1].interrupt()

    def drain(self, params: DrainParams) -> None:
        """Finish what is in hand and leave."""
        self.is_draining = True
        self.restart_wanted = self.restart_wanted or params.restart
        self._port.drain(params.reason)

    def link_up(self, welcome: Welcome) -> None:
        """The gate has welcomed this process."""
        self.is_up = True
        log.debug("%s is connected to %s", self.agent.name, welcome.gateway)

    def link_down(self, error: Exception) -> None:
        """The link is lost; handlers go on, their answers are kept."""
        self.is_up = False
        log.debug("%s has no link: %s", self.agent.name, error)

    def runs(self, unit: str) -> bool:
        """Whether its handler was begun, or waits for a thread, and has not ended."""
        return unit in self._tasks or unit in self._jobs

    def lag_ms(self) -> float:
        """On one loop the link feels the lag itself: its beats come late."""
        return 0.0

    # One unit.

    async def _perform(self, handler: Handler, unit: Unit) -> None:
        began = self._port.now()
        answer = _too_late(unit, began)
        if answer is None:
            context = Context(unit, self._port)
            try:
                arguments = handler.arguments(unit.params.payload, context)
                value = await handler.function(*arguments)
                answer = Answer(value=handler.result(value, self._port.payload_bytes_max))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the unit has an answer
                answer = self._failed(unit, error, self._port)
            context.end()
        _answer(unit, answer, self._port.now() - began, self._port)

    def _perform_in_thread(self, handler: Handler, unit: Unit, context: SyncContext, port: LinkPort) -> None:
        began = port.now()
        answer = _too_late(unit, began)
        if answer is None:
            try:
                arguments = handler.arguments(unit.params.payload, context)
                value = handler.function(*arguments)
                answer = Answer(value=handler.result(value, port.payload_bytes_max))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the unit has an answer
                answer = self._failed(unit, error, port)
            context.end()
        _answer(unit, answer, port.now() - began, port)

    def _end_task(self, unit: Unit, task: asyncio.Task[None]) -> None:
        """The task has answered, unless it was cancelled before its first step."""
        self._tasks.pop(unit.id, None)
        if task.cancelled():
            _answer(unit, not_sent("stopped before it began", code="cancelled", fault=None), 0.0, self._port)

    def _end_job(self, unit: Unit, job: asyncio.Future[None]) -> None:
        """The thread has answered; here the unit is only forgotten."""
        self._jobs.pop(unit.id, None)
        job.result()

    def _failed(self, unit: Unit, error: BaseException, port: LinkPort) -> Answer:
        answer = error_answer(error, stopped=unit.told == "cancel")
        code = answer.error.code if answer.error is not None else ""
        if code == "handler_error":
            log.error("handler of `%s` raised (unit %s)", unit.params.task_type, unit.id, exc_info=error)
        elif code == "malformed_output":
            log.error("unit %s: %s", unit.id, error)
        if isinstance(error, KeyboardInterrupt):
            port.drain("interrupted")
        return answer


def _too_late(unit: Unit, now: float) -> Answer | None:
    """Work that nobody waits for any more is not begun."""
    if unit.told == "cancel":
        return not_sent("stopped before it began", code="cancelled", fault=None)
    if now >= unit.deadline:
        return not_sent("its deadline passed before it could begin", code="deadline_exceeded", fault=None)
    return None


def _answer(unit: Unit, answer: Answer, seconds: float, port: LinkPort) -> None:
    unit.ended = True
    with contextlib.suppress(LinkDown):  # the process is leaving; the gate learns of it by the connection
        port.answer(unit.id, msgspec.structs.replace(answer, handler_ms=round(seconds * 1000, 3)))
