"""Where handlers and the link meet: each sees the other through these, on one loop or across threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from agentgate.model.link import (
    Answer,
    CallParams,
    DrainParams,
    InvokeParams,
    LockParams,
    SignalParams,
    StopKind,
    WaitForParams,
    Welcome,
)
from agentgate.model.outcome import Outcome

Done = Callable[[Outcome], None]
Lost = Callable[[], None]
# What a process asks for, and hears the outcome of.
Asked: TypeAlias = CallParams | LockParams | WaitForParams | SignalParams


class LinkPort(Protocol):
    """The link, as handlers and clients use it. Nothing here waits."""

    @property
    def payload_bytes_max(self) -> int:
        """How large a payload or result may be, as the gate said last."""
        ...

    def now(self) -> float:
        """The clock that deadlines are given in."""
        ...

    def require_process(self) -> None:
        """Raise `LinkDown` in a process that was forked from the link's."""
        ...

    def start_call(self, params: Asked, deadline: float | None, done: Done) -> str:
        """Send a call (or a signal, or a wait for one), again over every new connection until there is an outcome.

        `done` hears the outcome exactly once, also when the link ends. Returns the id. `deadline` is when the gate
        answers at the latest, if the caller knows. Raises `LinkDown` in a forked process.
        """
        ...

    def cancel_call(self, call_id: str) -> None:
        """Nobody waits for this call any more; its outcome is `cancelled`, unless it has one."""
        ...

    def start_lock(self, unit: str, params: LockParams, deadline: float, done: Done, lost: Lost) -> str:
        """Ask for locks in this unit; `done` hears the outcome as that of a call. Returns the id of the request.

        `lost` is called at most once, after `done`: what was granted is not held any more, and was not given back.
        """
        ...

    def unlock(self, lock_id: str) -> None:
        """Give back what this request holds, or wait for it no longer."""
        ...

    def begin_wait(self, any_of: Sequence[str]) -> str:
        """A unit stands still until the first of these ends, calls that were sent as not awaited; returns an id."""
        ...

    def end_wait(self, wait_id: str, *, tell: bool) -> None:
        """It goes on; `tell`: none of them has ended."""
        ...

    def progress(self, unit: str, note: str) -> None:
        """Send a note on how far a unit has come; a later note replaces one that has not left yet."""
        ...

    def answer(self, unit: str, answer: Answer) -> None:
        """The handler of this unit ended."""
        ...

    def drain(self, reason: str) -> None:
        """Take nothing new; the link ends by itself when nothing is in hand."""
        ...


class Receiver(Protocol):
    """The handlers (or the client), as the link uses them. Nothing here waits or raises."""

    def start(self, unit: str, params: InvokeParams, deadline: float) -> None:
        """Run the handler of this unit; the port hears its answer."""
        ...

    def stop(self, unit: str, kind: StopKind, reason: str) -> None:
        """Tell a running unit to stop."""
        ...

    def drain(self, params: DrainParams) -> None:
        """The gate asks this process to finish and leave."""
        ...

    def link_up(self, welcome: Welcome) -> None:
        """The gate has welcomed this process."""
        ...

    def link_down(self, error: Exception) -> None:
        """The link is lost, or an attempt to make one failed; it goes on trying."""
        ...

    def runs(self, unit: str) -> bool:
        """Whether a handler is at work for this unit. Asked from the link's thread, at any moment."""
        ...

    def lag_ms(self) -> float:
        """How far behind the handlers' event loop is."""
        ...
