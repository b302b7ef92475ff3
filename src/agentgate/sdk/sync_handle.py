"""What a handler in a thread has begun and may wait for later; see `sdk.handle`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from typing import Any, Generic, TypeVar

from agentgate.model.outcome import Outcome, failure
from agentgate.sdk.calling import value_of
from agentgate.sdk.port import Done, LinkPort

T = TypeVar("T")


class SyncHandle(Generic[T]):
    """Something that has been begun. Ask for its `result`, several times if you like; or `cancel` it."""

    def __init__(
        self, port: LinkPort, start: Callable[[Done], str], give_up: Callable[[str], None], returns: Any = None
    ) -> None:
        self.answered: Future[Outcome] = Future()
        self.id = start(self._settle)
        self._port = port
        self._give_up = give_up
        self._returns = returns

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.answered.done()

    def result(self) -> T:
        """Its value, as soon as there is one; raises `CallFailed`."""
        wait_any(self._port, [self])
        return self.value()

    def cancel(self) -> None:
        """It is not needed any more. A write that runs already runs on; who asks for the result sees `cancelled`."""
        if not self.done:
            self._give_up(self.id)

    def interrupt(self) -> None:
        """The unit was told to stop: nobody may wait any longer."""
        self.cancel()
        self._settle(failure("cancelled", sent=True, detail="the unit was told to stop"))

    def value(self) -> T:
        """Its value, once it is done; raises `CallFailed`."""
        value: T = value_of(self.answered.result(), self._returns)
        return value

    def _settle(self, outcome: Outcome) -> None:
        with contextlib.suppress(InvalidStateError):  # the other of two ends, in another thread, was first
            self.answered.set_result(outcome)


def wait_any(port: LinkPort, handles: Sequence[SyncHandle[Any]]) -> None:
    """Block until one of them is done; the gate knows for what the unit stands still meanwhile."""
    if any(handle.done for handle in handles):
        return
    wait_id = port.begin_wait([handle.id for handle in handles])
    try:
        wait([handle.answered for handle in handles], return_when=FIRST_COMPLETED)
    finally:
        port.end_wait(wait_id, tell=not any(handle.done for handle in handles))
