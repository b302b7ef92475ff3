"""The configuration as people ask about it: every key with its value, where that comes from, and what it means."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from agentgate.config.key import Key
from agentgate.config.keys import KEYS
from agentgate.config.loader import CREDENTIALS, MECHANISM_PREFIX, Loaded
from agentgate.config.mechanisms import MECHANISMS
from agentgate.config.settings import PARTS, Settings

DEFAULT: Final = "default"
OFF: Final = "off"

_ATTRIBUTES: Final = {part: attribute for attribute, part in PARTS.items()}


class Row(Struct, frozen=True, kw_only=True):
    """One key. `value` and `default` are in the unit of the file; `origin` is where the value was given."""

    name: str
    value: object
    default: object
    origin: str
    takes: str
    meaning: str
    too_high: str = ""
    too_low: str = ""
    when_off: str = ""

    @property
    def is_given(self) -> bool:
        """Whether somebody has set it."""
        return self.origin != DEFAULT

    @property
    def consequences(self) -> list[str]:
        """What bad values do, a sentence each."""
        said = (("too high", self.too_high), ("too low", self.too_low), ("off", self.when_off))
        return [f"{what}: {text}" for what, text in said if text]


def rows(loaded: Loaded) -> list[Row]:
    """Every key that can be set, the switches first, in the order of the table."""
    switches = [_switch(name, loaded) for name in MECHANISMS]
    return switches + [_row(key, loaded) for key in KEYS]


def _row(key: Key, loaded: Loaded) -> Row:
    return Row(
        name=key.name,
        value=_shown(key.shown(_value(key, loaded.settings))),
        default=_shown(key.default),
        origin=loaded.origins.get(key.name, DEFAULT),
        takes=f"{key.kind} or {OFF}" if key.may_be_off else key.kind,
        meaning=key.meaning,
        too_high=key.too_high,
        too_low=key.too_low,
    )


def _value(key: Key, settings: Settings) -> object:
    value: object = getattr(getattr(settings, _ATTRIBUTES[key.part]), key.option)
    return value


def _switch(name: str, loaded: Loaded) -> Row:
    mechanism = MECHANISMS[name]
    full = MECHANISM_PREFIX + name
    return Row(
        name=full,
        value=loaded.settings.mechanisms[name],
        default=mechanism.default,
        origin=loaded.origins.get(full, DEFAULT),
        takes=" or ".join(mechanism.modes),
        meaning=mechanism.meaning + ("" if mechanism.built else " (not built yet)"),
        when_off=mechanism.when_off,
    )


def _shown(value: object) -> object:
    if value is None:
        return OFF
    return CREDENTIALS.sub("//***@", value) if isinstance(value, str) else value
