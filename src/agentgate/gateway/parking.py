"""Where calls wait that a policy has parked: the link between a pure policy and the event loop."""

from __future__ import annotations

import asyncio

from agentgate.core.policy import Admit, Policy, Refuse, Ticket
from agentgate.ports.clock import Clock


class Parking:
    """Holds the parked tickets of one policy as futures, and wakes them when the policy says so."""

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        self._parked: dict[Ticket, asyncio.Future[Admit | Refuse]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._parked)

    async def wait(self, ticket: Ticket) -> Admit | Refuse:
        """What becomes of a ticket that the policy has just parked; a caller that leaves meanwhile gives it back."""
        future: asyncio.Future[Admit | Refuse] = asyncio.get_running_loop().create_future()
        self._parked[ticket] = future
        self.pump()
        try:
            return await future
        except asyncio.CancelledError:
            self._leave(ticket, future)
            raise

    def pump(self) -> None:
        """Wake what is due and set the timer for the rest; to be called after every change of the policy's state."""
        if not self._parked and self._timer is None:
            return
        if self._parked:
            self._wake_due()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parked:
            due = self._policy.next_deadline()
            if due is not None:
                self._timer = asyncio.get_running_loop().call_at(due, self.pump)

    def close(self) -> None:
        """Stop the timer; whoever still waits is cancelled by its own owner."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_due(self) -> None:
        for ticket, decision in self._policy.tick(self._clock.now()):
            future = self._parked.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(decision)
            elif isinstance(decision, Admit):
                # Its caller left in this very moment; the ticket goes back, and perhaps wakes another.
                self._policy.abandon(ticket, self._clock.now())

    def _leave(self, ticket: Ticket, future: asyncio.Future[Admit | Refuse]) -> None:
        parked = self._parked.pop(ticket, None) is not None
        admitted = future.done() and not future.cancelled() and isinstance(future.result(), Admit)
        if parked or admitted:
            self._policy.abandon(ticket, self._clock.now())
            self.pump()
