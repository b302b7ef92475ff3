"""Messages on their way out: one ordered queue, several of them sent as one."""

from __future__ import annotations

from collections import OrderedDict
from itertools import count

from agentgate.sdk.wire import batch


class Outbox:
    """What waits for the connection. Bounded by what may be in it: open calls, kept answers, one note a unit."""

    def __init__(self, batch_bytes_max: int) -> None:
        self._batch_bytes_max = batch_bytes_max
        self._messages: OrderedDict[object, bytes] = OrderedDict()
        self._numbers = count()

    def put(self, message: bytes) -> None:
        """Append a message."""
        self._messages[next(self._numbers)] = message

    def put_note(self, unit: str, message: bytes) -> None:
        """Append a progress note, or put it in the place of the unit's note that still waits."""
        self._messages[unit] = message

    def take(self) -> bytes:
        """The next messages as one: as many as fit, at least one."""
        taken: list[bytes] = []
        size = 0
        while self._messages:
            key, message = self._messages.popitem(last=False)
            size += len(message) + 1
            if taken and size > self._batch_bytes_max:
                self._messages[key] = message
                self._messages.move_to_end(key, last=False)
                break
            taken.append(message)
        return batch(taken)

    def clear(self) -> None:
        """The connection is gone: what has to survive it is kept elsewhere."""
        self._messages.clear()

    def __len__(self) -> int:
        return len(self._messages)
