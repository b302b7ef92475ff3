"""From what was given to `Settings`: later sources win, unknown keys are refused, every error names its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentgate.config.key import Key
from agentgate.config.keys import KEYS, NOT_BUILT
from agentgate.config.mechanisms import MECHANISMS, default_modes, read_mode
from agentgate.config.settings import PARTS, Settings
from agentgate.config.source import ENV_FILE, Given, read_environment, read_file
from agentgate.core.policy import Mode
from agentgate.errors import ConfigError

MECHANISM_PREFIX: Final = "mechanisms."
CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")  # in a URL; errors end up in logs
ALIKE: Final = 0.6  # how alike two names must be for one to be meant by the other

_KEYS: Final[dict[str, Key]] = {key.name: key for key in KEYS}
_NAMES: Final = (*_KEYS, *NOT_BUILT, *(MECHANISM_PREFIX + name for name in MECHANISMS))


class Loaded(NamedTuple):
    """The settings, where each given key came from, and what a careful reader should know about them."""

    settings: Settings
    origins: dict[str, str]
    notes: list[str]


def load(path: Path | None = None, environ: Mapping[str, str] | None = None, more: Sequence[Given] = ()) -> Loaded:
    """Read the file (`path`, else the one that AGENTGATE_CONFIG names), the environment over it, `more` over both.

    Raises `ConfigError`: what is wrong, where, and what would be right.
    """
    environ = environ or {}
    if path is None and environ.get(ENV_FILE):
        path = Path(environ[ENV_FILE])
    given = [*(read_file(path) if path is not None else ()), *read_environment(environ), *more]
    reading = _Reading()
    for item in {item.name: item for item in given}.values():
        reading.take(item)
    return reading.finish()


@dataclass
class _Reading:
    """What has been understood so far."""

    options: dict[type, dict[str, tuple[Given, object]]] = field(default_factory=dict)
    modes: dict[str, Mode] = field(default_factory=default_modes)
    origins: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take(self, item: Given) -> None:
        """Understand one value."""
        self.origins[item.name] = item.place
        if item.name in NOT_BUILT:
            self.notes.append(f"{item.place}: {item.name} is accepted and has no effect: {NOT_BUILT[item.name]}")
            return
        try:
            if item.name in _KEYS:
                key = _KEYS[item.name]
                self.options.setdefault(key.part, {})[key.option] = item, key.read(item.value)
                return
            if item.name.removeprefix(MECHANISM_PREFIX) in MECHANISMS and item.name.startswith(MECHANISM_PREFIX):
                name = item.name.removeprefix(MECHANISM_PREFIX)
                self.modes[name] = read_mode(name, item.value)
                return
        except ValueError as error:
            raise ConfigError(f"{item.place}: {item.name} {error}") from None
        raise ConfigError(f"{item.place}: there is no key {item.name}; {_hint(item.name)}")

    def finish(self) -> Loaded:
        """Make every options object, so that each checks what it was given."""
        parts = {attribute: _make(part, self.options.get(part, {})) for attribute, part in PARTS.items()}
        settings = Settings(mechanisms=self.modes, **parts)
        return Loaded(settings, self.origins, self.notes)


def _make(part: type, values: Mapping[str, tuple[Given, object]]) -> Any:
    try:
        return part(**{option: value for option, (_, value) in values.items()})
    except ValueError as error:
        # Each value alone first: then the sentence is about the key that is wrong, and not about its neighbours. One
        # that is wrong alone, and right with what is given beside it, is not meant.
        whole = str(error)
        for item, flaw in sorted(_wrong_alone(part, values), key=lambda found: found[1] != whole)[:1]:
            sentence = f"{item.place}: {item.name} cannot be {item.value!r}: {flaw}"
            raise ConfigError(CREDENTIALS.sub("//***@", sentence)) from None
        names = ", ".join(f"{item.name} ({item.place})" for item, _ in values.values())
        raise ConfigError(f"{error}; given together: {names}") from None


def _wrong_alone(part: type, values: Mapping[str, tuple[Given, object]]) -> list[tuple[Given, str]]:
    """The values that cannot be, whatever the others are, each with the reason."""
    found: list[tuple[Given, str]] = []
    for option, (item, value) in values.items():
        try:
            part(**{option: value})
        except ValueError as flaw:
            found.append((item, str(flaw)))
    return found


def _hint(name: str) -> str:
    """The nearest right name: in the same section, the same key in another one, or what there is to choose from."""
    section, _, last = name.partition(".")
    siblings = {known.partition(".")[2]: known for known in _NAMES if known.startswith(section + ".")}
    if siblings:
        if near := get_close_matches(last, siblings, n=1, cutoff=ALIKE):
            return f"did you mean {siblings[near[0]]}?"
        if last and (elsewhere := [known for known in _NAMES if known.partition(".")[2] == last]):
            return f"did you mean {' or '.join(elsewhere)}?"
        return f"the section {section} has {', '.join(siblings)}"
    if near := get_close_matches(name, _NAMES, n=1, cutoff=ALIKE):
        return f"did you mean {near[0]}?"
    sections = sorted({known.partition(".")[0] for known in _NAMES})
    near = get_close_matches(section, sections, n=1, cutoff=ALIKE)
    return f"did you mean the section {near[0]}?" if near else f"the sections are {', '.join(sections)}"
