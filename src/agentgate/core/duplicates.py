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

How it works. A bounded map from caller, target, task type and the hash of the body that the ledger needs anyway, to the
business keys seen with it. What is older than the window begins anew. Where many different writes come within the
window, the oldest are forgotten sooner: then it samples.

Not covered: repeats under the same key, which the ledger answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentgate.core.bounded import BoundedMap
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


class _Write:
    __slots__ = ("at", "keys")

    def __init__(self, key: str, now: float) -> None:
        self.keys = [key]
        self.at = now


class Duplicates:
    """The bodies of the last writes."""

    def __init__(self, options: DuplicateOptions) -> None:
        self._window_s = options.window_s
        self._writes: BoundedMap[tuple[str, ...], _Write] = BoundedMap(WRITES_MAX)

    def __len__(self) -> int:
        return len(self._writes)

    def note(self, call: Call, fingerprint: str, now: float) -> list[str] | None:
        """A write begins; the business keys of its equals and its own, newest last, if there are any."""
        if self._window_s is None or not call.payload:
            return None
        name = _name(call, fingerprint)
        known = self._writes.get(name)
        if known is None or now - known.at > self._window_s:
            self._writes[name] = _Write(call.business_key, now)
            return None
        known.at = now
        if call.business_key in known.keys:
            return None
        known.keys = [*known.keys[1 - KEYS_SHOWN :], call.business_key]
        return list(known.keys)

    def ended(self, call: Call, fingerprint: str, outcome: Outcome) -> None:
        """The write came to this: if its caller has no reason to try it again, its equals are others."""
        error = outcome.error
        if call.parent_unit or (error is not None and error.sent):
            return
        name = _name(call, fingerprint)
        known = self._writes.peek(name)
        if known is not None and call.business_key in known.keys:
            known.keys.remove(call.business_key)
            if not known.keys:
                self._writes.pop(name)


def _name(call: Call, fingerprint: str) -> tuple[str, ...]:
    """Whose equals they are: those of one chain, or those that a caller makes by itself."""
    chain = call.trace_id if call.parent_unit else ""
    return call.tenant, call.caller, call.target, call.task_type, fingerprint, chain
