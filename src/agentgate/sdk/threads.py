"""Threads for handlers that are not async: at most so many, started when needed, and never in the way of leaving.

They are daemons: a handler that never returns must not keep the process from ending, as the threads of
`concurrent.futures.ThreadPoolExecutor` would.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

STOP: Final = None


class HandlerThreads(Executor):
    """Runs jobs, in the order they come, in at most `size` threads; at most `waiting_max` jobs wait for one."""

    def __init__(self, size: int, waiting_max: int) -> None:
        self._size = size
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(waiting_max + size)
        self._idle = threading.Semaphore(0)  # threads that wait and have not been promised a job
        self._started = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a job. Raises `queue.Full` when too many wait. Called by one thread only."""
        future: Future[T] = Future()
        self._jobs.put_nowait(partial(_run, future, partial(fn, *args, **kwargs)))
        if not self._idle.acquire(blocking=False) and self._started < self._size:
            self._started += 1
            threading.Thread(target=self._work, name=f"agentgate-handler-{self._started}", daemon=True).start()
        return future

    def stop(self) -> None:
        """Let every thread end after its job; waits for none."""
        for _ in range(self._started):
            if not self._jobs.full():
                self._jobs.put_nowait(STOP)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                self._idle.release()
                job = self._jobs.get()
            if job is STOP:
                return
            job()


def _run(future: Future[T], job: Callable[[], T]) -> None:
    try:
        future.set_result(job())
    except BaseException as error:  # noqa: BLE001 - whoever submitted the job is told
        future.set_exception(error)
