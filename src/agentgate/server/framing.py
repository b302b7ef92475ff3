"""Where WebSocket frames begin and end, and the header of the one kind that nearly all of them are.

A message in one frame is unmasked here, and one that leaves gets its header here; that is all the traffic of a link
in good health. Everything else (fragments, pings, closing, whatever is wrong) goes to websockets' protocol as the
peer sent it, frame by frame. What that saves is in docs/explanation/performance.md.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform for which websockets has no compiled part
    from websockets.utils import apply_mask

MESSAGE: Final = 0x81  # the first byte of a whole text message
MASKED: Final = 0x80
MASK_BYTES: Final = 4
SHORT_MAX: Final = 125  # a longer size is in the next two bytes, or in the next eight
MEDIUM: Final = 126
MEDIUM_MAX: Final = 0xFFFF
LONG: Final = 127


class Place(Struct, frozen=True):
    """Where a frame is in a stream: its first byte, its mask, and the beginning of the next one."""

    start: int
    mask: int
    end: int


def place(stream: bytes | bytearray, start: int, size_max: int) -> Place | None:
    """The frame that starts there; None while it is not complete.

    One that is not masked, or is larger than `size_max`, ends the stream: it has no mask (0), and no end but that of
    what is there.
    """
    available = len(stream)
    mask = start + 2
    if available < mask:
        return None
    size = stream[start + 1] - MASKED
    if size < 0:
        return Place(start, 0, available)
    if size > SHORT_MAX:
        mask += 2 if size == MEDIUM else 8
        if available < mask:
            return None
        size = int.from_bytes(stream[start + 2 : mask], "big")
    if size > size_max:
        return Place(start, 0, available)
    end = mask + MASK_BYTES + size
    return Place(start, mask, end) if end <= available else None


def message(stream: bytes, frame: Place) -> bytes | None:
    """The message that is all of this frame; None when the frame is anything else."""
    if not frame.mask or stream[frame.start] != MESSAGE:
        return None
    data = frame.mask + MASK_BYTES
    return apply_mask(stream[data : frame.end], stream[frame.mask : data])


def framed(message: bytes) -> bytes:
    """A message as a server sends it: in one frame, and not masked."""
    size = len(message)
    if size <= SHORT_MAX:
        return bytes((MESSAGE, size)) + message
    if size <= MEDIUM_MAX:
        return bytes((MESSAGE, MEDIUM)) + size.to_bytes(2, "big") + message
    return bytes((MESSAGE, LONG)) + size.to_bytes(8, "big") + message
