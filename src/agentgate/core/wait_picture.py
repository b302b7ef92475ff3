"""What has changed between two pictures of who waits for whom, and what it makes of the first.

Decides what somebody who follows the waits is sent. The rules:

- A wait is known by its id: it is opened once, may change, and is closed once. What begins and ends between two
  pictures is in neither, so nobody hears of it.
- A difference applied to the picture that it was made from gives the other one. Of equal pictures there is none.
- Knots are few and told whole.

How it works. Two maps by id. The order of the waits is that of the first picture, with what was opened behind it.

Not covered: how often a picture is taken, and for whom (the server).
"""

from __future__ import annotations

from agentgate.model import WaitDifference, WaitPicture


def difference(before: WaitPicture, after: WaitPicture) -> WaitDifference | None:
    """What leads from one picture to the other; None when they show the same."""
    was = {wait.id: wait for wait in before.waits}
    now = {wait.id: wait for wait in after.waits}
    if was == now and (before.knots, before.truncated) == (after.knots, after.truncated):
        return None
    return WaitDifference(
        seq=after.seq,
        after=before.seq,
        at=after.at,
        opened=tuple(wait for id_, wait in now.items() if id_ not in was),
        changed=tuple(wait for id_, wait in now.items() if id_ in was and was[id_] != wait),
        closed=tuple(id_ for id_ in was if id_ not in now),
        knots=after.knots,
        truncated=after.truncated,
    )


def applied(picture: WaitPicture, change: WaitDifference) -> WaitPicture:
    """The picture after this difference; raises `ValueError` if it was not made from this picture."""
    if change.after != picture.seq:
        raise ValueError(f"a difference from {change.after} does not fit the picture {picture.seq}")
    waits = {wait.id: wait for wait in picture.waits}
    for id_ in change.closed:
        waits.pop(id_, None)
    waits.update((wait.id, wait) for wait in (*change.changed, *change.opened))
    return WaitPicture(
        seq=change.seq,
        at=change.at,
        mode=picture.mode,
        waits=tuple(waits.values()),
        knots=change.knots,
        truncated=change.truncated,
    )
