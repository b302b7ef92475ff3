"""Idempotency keys: how one is shown, when two requests have the same body, which parts are acceptable.

Rules. A key is its parts (`model.KeyId`), never a random string; the gate builds it, nobody passes one. Shown to
people and to the target it is `caller:task_type:business_key:action`; a `:` or `%` inside a part is written `%3A` or
`%25`, so different parts never look the same. Tenant and target belong to the identity, not to the text: the one who
reads it is inside both.

Two bodies are the same when their canonical JSON is: keys sorted, no white space, numbers as they are. 1, 1.0 and "1"
are different bodies, key order and white space are not a difference (DESIGN 12, decision 8). What is kept is a hash:
128 bits, because an unnoticed conflict takes two bodies under one key, not two among all bodies of the world.

A part is at most 200 characters, is not blank where it has to name something, and holds no control characters, no
line or paragraph separators and no lone surrogates: it appears in log lines, tables, headers and SQL text. A call that
is not declared a read needs a business key, for without one it could not be told from the next.

Not covered: whether a caller may use a name (identity) and whether the target exists (directory).
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, Final

from msgspec.json import Encoder

from agentgate.model import ASIDE_PREFIXES, Call, KeyId, Problem, problem, served_type

PART_LENGTH_MAX: Final = 200  # characters; room for an URL-like name, and an index entry stays small
FINGERPRINT_BYTES: Final = 16

_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SEPARATORS: Final = 3  # in the text of a key whose parts need no escape

_encode: Final = Encoder(order="sorted").encode


def shown_key(key: Call | KeyId) -> str:
    """The key as one text, which gives back its parts unambiguously."""
    text = f"{key.caller}:{key.task_type}:{key.business_key}:{key.action}"
    if text.count(":") == _SEPARATORS and "%" not in text:
        return text
    return ":".join(_escaped(part) for part in (key.caller, key.task_type, key.business_key, key.action))


def told_key(call: Call) -> str:
    """The key that the target is told: of a write its own, of what stands beside a write that write's, else none."""
    if call.keyed:
        return shown_key(call)
    if not (call.business_key and call.task_type.startswith(ASIDE_PREFIXES)):
        return ""
    asked = call.key_id
    return shown_key(asked._replace(task_type=served_type(asked.task_type)))


def fingerprint(payload: Any) -> str:
    """A hash of the body, equal for equal bodies; the payload must be one that `core.payload` accepts."""
    return blake2b(_encode(payload), digest_size=FINGERPRINT_BYTES).hexdigest()


def check_parts(call: Call) -> Problem | None:
    """What is wrong with the parts of the call's key, as an error that says which part and why."""
    if call.keyed and not call.business_key.strip():
        return _bad("business_key is empty: a call that is not declared a read needs one, such as the order's id")
    if _is_plain(call):
        return None
    for name in ("target", "task_type", "action", "caller", "tenant"):
        if (finding := name_flaw(name, getattr(call, name))) is not None:
            return _bad(finding)
    if call.user and (finding := name_flaw("user", call.user)) is not None:
        return _bad(finding)
    finding = _text_flaw("business_key", call.business_key)
    return _bad(finding) if finding is not None else None


def _is_plain(call: Call) -> bool:
    """Whether one glance at all parts together shows that nothing is wrong, as with nearly every call."""
    names = call.target, call.task_type, call.action, call.caller, call.user or call.caller, call.tenant
    text = "".join(names) + call.business_key
    return len(text) <= PART_LENGTH_MAX and text.isprintable() and all(map(str.strip, names))


def name_flaw(what: str, name: str) -> str | None:
    """What is wrong with something that has to name somebody, as a sentence that says which and why."""
    return _text_flaw(what, name) if name.strip() else f"{what} is empty"


def _text_flaw(what: str, text: str) -> str | None:
    if len(text) > PART_LENGTH_MAX:
        return f"{what} has {len(text)} characters; at most {PART_LENGTH_MAX} are allowed"
    if not text.isprintable() and (unfit := _UNFIT.search(text)) is not None:
        return f"{what} contains the character U+{ord(unfit[0]):04X}, which is not allowed in a name"
    return None


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _bad(detail: str) -> Problem:
    return problem("bad_request", detail=detail)
