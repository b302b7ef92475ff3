"""What an option may be: a number within bounds, checked when the options are made.

A limit that is blank, negative, NaN or absurd must be refused when it is read, not when a call meets it (FAILURES F26).
Every options class of the core calls `require` for each of its fields from `__post_init__`. Rules:

- 0 is a value, not "unset": whether it is allowed is up to `low` (FAILURES F48).
- None is a value only where the option may be off (`off=True`).
- What two options mean together is checked by their class; the message then names both.
- Of a list, all entries that are wrong are named (`all_of`), for one correction should be enough.

Not covered: types beyond numbers, and unknown names; both are the configuration loader's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

SHOWN_MAX: Final = 20  # of what is wrong with one list; nobody corrects more at once


def require(options: object, *names: str, low: float = 0.0, high: float = inf, off: bool = False) -> None:
    """Raise `ValueError` unless each named option is a finite number in [low, high], or None where it may be off."""
    for name in names:
        value = getattr(options, name)
        if value is None and off:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high or value == inf:
            bounds = f"at least {low:g}" if high == inf else f"from {low:g} to {high:g}"
            raise ValueError(f"{name} must be a number {bounds}, not {value!r}")


def all_of(flaws: Sequence[str]) -> str:
    """What is wrong with the entries of a list, as one sentence."""
    more = [f"and {len(flaws) - SHOWN_MAX} more"] if len(flaws) > SHOWN_MAX else []
    return "; ".join([*flaws[:SHOWN_MAX], *more])
