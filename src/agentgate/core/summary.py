"""One line about a payload or an outcome, short and without secrets, for spans and tables.

Rules. A summary has at most 200 characters; what did not fit is an ellipsis. It looks like JSON. The value under a key
that looks like a secret (password, token, cookie and the like) is `[redacted]`, whatever it is, except that a number
under a plural such as `max_tokens` is a count and stays. Inside free text, `password=…` and `Bearer …` are redacted as
well. Characters that do not print, line breaks among them, are escaped, so a summary is always one line of any log.
Making one never fails: an object of an unknown type is shown by the name of its type, and none of its own code runs.

How it works. Nearly every payload is light and mentions no word that secrets are called by: it is encoded as a whole
and cut. All others are written piece by piece until the limit is passed, which costs what 200 characters cost, not what
the payload does. Light is judged by a glance at two levels; bulk hidden deeper is bounded by the limit on payloads.

Not covered: secrets that look like nothing (a card number, a key in a list of words). A summary is no export format.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from msgspec.json import Encoder

from agentgate.model import Outcome

LENGTH_MAX: Final = 200
REDACTED: Final = "[redacted]"

_DEPTH_MAX: Final = 8  # deeper down little fits, and the recursion stays shallow
_INT_SHOWN_MAX: Final = 10**20  # writing out a longer integer costs time that grows with its square
_KEYS_REMEMBERED: Final = 1024
_BYTES_MAX: Final = 4 * (LENGTH_MAX + 1)  # of UTF-8
_LIGHT_MAX: Final = 256  # members, items or characters
_CONTAINERS: Final = frozenset({dict, list, tuple})
_SIZED: Final = frozenset({str, dict, list, tuple})
_NUMBERS: Final = frozenset({int, float})
_CONSTANTS: Final = {None: "null", True: "true", False: "false"}

# A secret in free text contains one of these words; `key` and `auth` alone are too common for the patterns below.
_WORDS: Final = ("passw", "passphrase", "pwd", "secret", "token", "auth", "bearer", "credential", "cookie", "key")
_NAMES: Final = (
    r"passw(?:or)?d|passphrase|\bpwd\b|secret|authorization|(?:api|private|access)[-_ ]?key|credential|cookie"
)
_SECRET_KEY: Final = re.compile(rf"{_NAMES}|token", re.IGNORECASE)
_COUNT_KEY: Final = re.compile(r"tokens(?:_\w+)?$", re.IGNORECASE)
_SECRET_TEXT: Final = re.compile(
    rf"""((?:{_NAMES}|token(?!s))\\?["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?|\bbearer\s+)(?!\[redacted\])[^\s"',;&}}\]]+""",
    re.IGNORECASE,
)


_encode: Final = Encoder().encode


def summary(value: Any) -> str:
    """A payload (or any value) in one line of at most 200 characters."""
    if _is_light(value):
        try:
            text = _encode(value)[:_BYTES_MAX].decode("utf-8", "ignore")[: LENGTH_MAX + 1]
        except (TypeError, ValueError, RecursionError):
            text = ""
        if text and not _names_secret(text):
            # The encoder escapes what does not print in ASCII, with one exception.
            return _cut(text) if text.isascii() and "\x7f" not in text else _line(text)
    pieces: list[str] = []
    _write(pieces, value, LENGTH_MAX, 0)
    return _line(_redacted(_cut("".join(pieces))))


def outcome_summary(outcome: Outcome) -> str:
    """What a call came to: its value, or its error's code and detail."""
    error = outcome.error
    if error is None:
        return summary(outcome.value)
    return _line(_redacted(_cut(f"{error.code}: {error.detail}" if error.detail else error.code)))


def _is_light(value: Any) -> bool:
    kind = type(value)
    if kind not in _SIZED:
        return True
    if len(value) > _LIGHT_MAX:
        return False
    if kind is str:
        return True
    for item in value.values() if kind is dict else value:
        if type(item) in _SIZED and len(item) > _LIGHT_MAX:
            return False
    return True


def _names_secret(text: str) -> bool:
    lowered = text.lower()
    for word in _WORDS:  # noqa: SIM110 - a generator would take twice the time
        if word in lowered:
            return True
    return False


def _redacted(text: str) -> str:
    return _SECRET_TEXT.sub(rf"\g<1>{REDACTED}", text) if _names_secret(text) else text


def _line(text: str) -> str:
    text = _cut(text)
    if text.isprintable():
        return text
    return _cut("".join(char if char.isprintable() else _escaped(char) for char in text))


def _cut(text: str) -> str:
    return text if len(text) <= LENGTH_MAX else text[: LENGTH_MAX - 1] + "…"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _write(pieces: list[str], value: Any, room: int, depth: int) -> int:
    """Append the text of a value; returns how many characters are left, negative when there are none."""
    if type(value) not in _CONTAINERS:
        text = _leaf(value)
    elif not value:
        text = "{}" if type(value) is dict else "[]"
    elif depth >= _DEPTH_MAX:
        text = "{…}" if type(value) is dict else "[…]"
    elif type(value) is dict:
        return _write_members(pieces, value, room, depth + 1)
    else:
        return _write_items(pieces, value, room, depth + 1)
    pieces.append(text)
    return room - len(text)


def _write_members(pieces: list[str], members: dict[Any, Any], room: int, depth: int) -> int:
    before = "{"
    for key, value in members.items():
        if room < 0:
            break
        name = (key if type(key) is str else _leaf(key))[:LENGTH_MAX]
        if _is_secret(name) and not (type(value) in _NUMBERS and _COUNT_KEY.search(name)):
            text = f'{before}"{name}":"{REDACTED}"'
        elif type(value) not in _CONTAINERS:
            text = f'{before}"{name}":{_leaf(value)}'
        else:
            pieces.append(f'{before}"{name}":')
            room = _write(pieces, value, room - len(name), depth)
            text = ""
        pieces.append(text)
        room -= len(text)
        before = ","
    pieces.append("}")
    return room - 1


def _write_items(pieces: list[str], items: list[Any] | tuple[Any, ...], room: int, depth: int) -> int:
    before = "["
    for item in items:
        if room < 0:
            break
        pieces.append(before)
        room = _write(pieces, item, room - len(before), depth)
        before = ","
    pieces.append("]")
    return room - 1


def _leaf(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return f'"{value[:LENGTH_MAX]}"'
    if value is None or kind is bool:
        return _CONSTANTS[value]
    if kind is float or (kind is int and -_INT_SHOWN_MAX < value < _INT_SHOWN_MAX):
        return repr(value)
    return f"<{kind.__name__}>"


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _is_secret(name: str) -> bool:
    return _SECRET_KEY.search(name) is not None
