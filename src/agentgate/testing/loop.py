"""Virtual time: an event loop whose clock jumps to the next timer whenever nothing else is left to do.

`asyncio.sleep`, `timeout`, `wait_for` and every other use of the loop's clock work unchanged; hours pass in
milliseconds, and the same program takes the same path every time. When nothing can ever wake the loop it raises
`NothingCanWake`: lost wake-ups and deadlocks show at once instead of hanging.

How it works. The loop asks its selector to wait until the next timer. This selector does not wait: it looks whether
a file is ready now, and if none is, moves the clock by the time it was asked to wait. Time therefore stands still
while callbacks run, and starts at 0.0: the loop compares times with a resolution of 1 ns, which floats near today's
epoch cannot express. Tasks are hashed by their number instead of their address, so that sets of tasks (asyncio keeps
them in sets, and cancels a group in the order of one) are walked in the same order in every run.

Threads are the exception, since the loop cannot see what they will do. While a job of `run_in_executor` is under way
the clock waits for it, for `THREAD_GRACE_S` of real time before each jump (the job may itself be waiting for
something that only a timer brings). Any other thread may use `call_soon_threadsafe` as ever: before the loop says
that nothing can wake it, it gives them `THREAD_PATIENCE_S`. Programs that use threads are not deterministic.
"""

from __future__ import annotations

import asyncio
import itertools
import selectors
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, Unpack

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

THREAD_GRACE_S = 0.02  # long enough for a thread that is about to report, short enough not to be felt
THREAD_PATIENCE_S = 1.0  # a thread that has not reported after a second of real time is not going to

# Beyond 2**24 s floats are coarser than the loop's resolution of 1 ns, and a timer may never come due.
VIRTUAL_S_MAX = 10_000_000.0

Selected = list[tuple[selectors.SelectorKey, int]]


class NothingCanWake(RuntimeError):
    """Every task waits for something that cannot happen any more; `tasks` names them and where they wait."""

    def __init__(self, now: float, tasks: list[str]) -> None:
        lines = "\n".join(f"  {task}" for task in tasks)
        super().__init__(f"at {now:.6f} s nothing can wake the loop; {len(tasks)} tasks wait:\n{lines}")
        self.now = now
        self.tasks = tasks


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time: `asyncio.Runner(loop_factory=VirtualLoop)`."""

    def __init__(self) -> None:
        self._virtual_s = 0.0
        self._outside_jobs = 0  # in threads, and sure to report
        self._task_numbers = itertools.count(1)
        super().__init__(_JumpingSelector(self))
        self.set_task_factory(_numbered_task)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual_s

    def jump(self, wait_s: float) -> None:
        """Let time pass at once."""
        if self._virtual_s + wait_s > VIRTUAL_S_MAX:
            raise OverflowError(f"virtual time is exact up to {VIRTUAL_S_MAX:.0f} s only")
        self._virtual_s += wait_s

    def next_task_number(self) -> int:
        """Counts tasks from 1."""
        return next(self._task_numbers)

    @property
    def outside_jobs(self) -> int:
        """How many jobs of `run_in_executor` are under way."""
        return self._outside_jobs

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As ever; meanwhile the clock waits."""
        future = super().run_in_executor(executor, func, *args)
        self._outside_jobs += 1
        future.add_done_callback(self._job_ended)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of 3.12; 3.11 knows no such limit
    ) -> None:
        """As ever; a thread of its own does the waiting, so that it counts as a job, and is given the time it needs."""
        del timeout
        self._outside_jobs += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._outside_jobs -= 1

    def _job_ended(self, _: asyncio.Future[Any]) -> None:
        self._outside_jobs -= 1


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    def __init__(self, coro: Any, *, loop: asyncio.AbstractEventLoop, **rest: Any) -> None:
        assert isinstance(loop, VirtualLoop)
        self._number = loop.next_task_number()  # first: the base class enters the task into a set
        super().__init__(coro, loop=loop, **rest)

    def __hash__(self) -> int:
        return self._number


def _numbered_task(loop: asyncio.AbstractEventLoop, coro: Any, **rest: Any) -> asyncio.Task[Any]:
    return _NumberedTask(coro, loop=loop, **rest)


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for time to pass: it makes it pass."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Selected:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return self._wait_for_others()
        if self._loop.outside_jobs:
            ready = super().select(THREAD_GRACE_S)
        if not ready:
            self._loop.jump(timeout)
        return ready

    def _wait_for_others(self) -> Selected:
        """No timer is set. Only a thread or a socket can go on, if there is any."""
        own_wakeup_only = len(self.get_map()) <= 1
        if self._loop.outside_jobs or not own_wakeup_only:
            return super().select(None)
        ready = super().select(THREAD_PATIENCE_S) if threading.active_count() > 1 else []
        if not ready:
            raise NothingCanWake(self._loop.time(), _describe_tasks(self._loop))
        return ready


def run_virtual(main: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `main(*args, **kwargs)` from start to end in virtual time, as `asyncio.run` does in real time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main(*args, **kwargs))


def _describe_tasks(loop: VirtualLoop) -> list[str]:
    return sorted(f"{task.get_name()} at {_place(task)}" for task in asyncio.all_tasks(loop))


def _place(task: asyncio.Task[Any]) -> str:
    """The innermost place in the code where a task waits."""
    awaited: Any = task.get_coro()
    frame = None
    while (inner := getattr(awaited, "cr_frame", None)) is not None:
        frame, awaited = inner, getattr(awaited, "cr_await", None)
    if frame is None:
        return repr(task.get_coro())
    return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})"
