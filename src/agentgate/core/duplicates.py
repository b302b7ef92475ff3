"""Equal writes under different keys: what looks like one effect that was asked for twice.

What is noticed: a caller has the same thing done at the same target, with an equal body, under another business key,
within a while, although the first time is still under way or ended badly for its caller. A key that is made anew for
each try (a random one, or one that a model made up) protects from nothing, and this is how it shows. Rules:

- The call goes on: two orders of the same thing are as equal as one order placed twice. It is for people to judge.
- A root call that ended well, or was refused before anything was sent, is forgotten: its equal is a new order. Within
  one chain it is not: one piece of work that does the same twice under two keys has lost count.
- Only writes that are the first of their key count, and only with a body that says something: where the business key
  says it all, equal bodies are the rule.
- Another `action` on the same business key is a second effect on purpose, and no duplicate.

How it works. A map from caller, target, task type and the hash of the body that the ledger needs anyway, to the
business keys seen with it. It costs every write, so it is as plain as it can be: in order of the last sight, and at its
bound the first one goes. What is older than the window begins anew. Where more different writes come within the window
than the map holds, it samples.

Not covered: repeats under the same key, which the ledger answers.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from agentgate.core.ranges import require
from agentgate.model import Call, Outcome

WRITES_MAX: Final = 10_000
KEYS_SHOWN: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class DuplicateOptions:
    """How long an equal body counts.

    - `window_s`, 60 seconds: a caller that lost an answer tries again within it, and honest twins are rarer than later
      on. None: nothing is noticed.
    """

    window_s: float | None = 60.0

    def __post_init__(self) -> None:
        require(self, "window_s", low=1.0, high=86_400.0, off=True)


class Duplicates:
    """The bodies of the last writes."""

    def __init__(self, options: DuplicateOptions) -> None:
        self._window_s = options.window_s
        # By body, caller and so on: when an equal was last seen, and under which business keys.
        self._writes: OrderedDict[tuple[str, ...], tuple[float, tuple[str, ...]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._writes)

    def note(self, call: Call, fingerprint: str, now: float) -> list[str] | None:
        """A write begins; the business keys of its equals and its own, newest last, if there are any."""
        if self._window_s is None or not call.payload:
            return None
        writes, key = self._writes, call.business_key
        name = _name(call, fingerprint)
        known = writes.pop(name, None)
        if known is None or now - known[0] > self._window_s:
            writes[name] = (now, (key,))
            if len(writes) > WRITES_MAX:
                writes.popitem(last=False)
            return None
        keys = known[1] if key in known[1] else (*known[1][1 - KEYS_SHOWN :], key)
        writes[name] = (now, keys)
        return list(keys) if keys is not known[1] else None

    def ended(self, call: Call, fingerprint: str, outcome: Outcome) -> None:
        """The write came to this: if its caller has no reason to try it again, its equals are others."""
        error = outcome.error
        if call.parent_unit or (error is not None and error.sent):
            return
        name = _name(call, fingerprint)
        known = self._writes.get(name)
        if known is None:
            return
        keys = tuple(key for key in known[1] if key != call.business_key)
        if keys:
            self._writes[name] = (known[0], keys)
        else:
            del self._writes[name]


def _name(call: Call, fingerprint: str) -> tuple[str, ...]:
    """Whose equals they are: those of one chain, or those that a caller makes by itself."""
    chain = call.trace_id if call.parent_unit else ""
    return fingerprint, call.caller, call.target, call.task_type, call.tenant, chain
