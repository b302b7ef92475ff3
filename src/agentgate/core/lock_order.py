"""The one order of locks within a unit: what it may ask for beside what it has.

Decides whether a unit that holds locks, or waits for them, may ask for more (REQUIREMENTS D6). Rules:

- What it has, it has: asking again, be it in another mode, would wait for itself. A shared lock is never raised to an
  exclusive one: two that both hold it shared would wait for one another.
- More only behind all that it holds, in the order of the names. Two units that take the same locks one by one then meet
  at the first of them, and not crosswise.
- One request at a time. Who gets the later of two while it still waits for the earlier one has broken the order.

The order is that of the text; a refusal says how the request would be right.

Not covered: locks of several units of one chain (the wait graph), and what is asked for outside of any unit.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentgate.core.lock import LockTicket
from agentgate.model import plain


def order_flaw(ticket: LockTicket, own: Iterable[LockTicket]) -> str | None:
    """What is wrong with this request of a unit whose open requests are `own`, as a sentence."""
    for other in own:
        has = "holds" if other.state == "held" else "waits for"
        again = [name for name in ticket.names if name in other.names]
        all_of_them = shown(sorted({*ticket.names, *other.names}))
        if again and ticket.mode != other.mode:
            return (
                f"this unit {has} {shown(again)} {other.mode}, which cannot be changed to {ticket.mode}: "
                "ask for it as it is needed most, once"
            )
        if again:
            return f"this unit {has} {shown(again)} already: pass on what `lock` gave you, and do not ask twice"
        if other.waiting:
            return f"this unit waits for {shown(other.names)} already: ask for {all_of_them} in one request"
        if ticket.names[0] < other.names[-1]:
            return (
                f"this unit holds {shown(other.names)} and asks for {shown(ticket.names)}, which comes before in the "
                f"order of names: ask for {all_of_them} in one request, or in this order"
            )
    return None


def shown(names: Iterable[str]) -> str:
    """Names of locks for a sentence."""
    return ", ".join(f"'{plain(name)}'" for name in names)
