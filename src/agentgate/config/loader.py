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
FLAWS_MAX: Final = 50  # more than anybody corrects at once
ALIKE: Final = 0.6  # how alike two names must be for one to be meant by the other

_KEYS: Final[dict[str, Key]] = {key.name: key for key in KEYS}
_NAMES: Final = (*_KEYS, *NOT_BUILT, *(MECHANISM_PREFIX + name for name in MECHANISMS))


class Loaded(NamedTuple):
    """The settings, where each given key came from, and what a careful reader should know about them."""

    settings: Settings
    origins: dict[str, str]
    notes: list[str]


class Examined(NamedTuple):
    """What can be used of a configuration, what is wrong with the rest of it, and the keys of which that was said."""

    loaded: Loaded
    flaws: list[str]
    unusable: set[str]


def load(path: Path | None = None, environ: Mapping[str, str] | None = None, more: Sequence[Given] = ()) -> Loaded:
    """Read the file (`path`, else the one that AGENTGATE_CONFIG names), the environment over it, `more` over both.

    Raises `ConfigError`: everything that is wrong, where, and what would be right.
    """
    loaded, flaws, _ = examine(path, environ, more)
    if flaws:
        raise ConfigError(*flaws)
    return loaded


def examine(path: Path | None = None, environ: Mapping[str, str] | None = None, more: Sequence[Given] = ()) -> Examined:
    """As `load`, but whatever cannot be used is left out; raises `ConfigError` only for a file that is none at all."""
    environ = environ or {}
    if path is None and environ.get(ENV_FILE):
        path = Path(environ[ENV_FILE])
    reading = _Reading()
    given = [*(read_file(path, reading.flaws) if path is not None else ()), *read_environment(environ), *more]
    for item in {item.name: item for item in given}.values():
        reading.take(item)
    return reading.finish()


@dataclass
class _Reading:
    """What has been understood so far, and what has not."""

    options: dict[type, dict[str, tuple[Given, object]]] = field(default_factory=dict)
    modes: dict[str, Mode] = field(default_factory=default_modes)
    origins: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)
    unusable: set[str] = field(default_factory=set)

    def take(self, item: Given) -> None:
        """Understand one value, or say why not."""
        self.origins[item.name] = item.place
        if item.name in NOT_BUILT:
            self.notes.append(f"{item.place}: {item.name} is accepted and has no effect: {NOT_BUILT[item.name]}")
            return
        mechanism = item.name.removeprefix(MECHANISM_PREFIX)
        try:
            if item.name in _KEYS:
                key = _KEYS[item.name]
                self.options.setdefault(key.part, {})[key.option] = item, key.read(item.value)
            elif item.name.startswith(MECHANISM_PREFIX) and mechanism in MECHANISMS:
                self.modes[mechanism] = read_mode(mechanism, item.value)
            else:
                # Looking for the nearest name takes a while, and nobody corrects that many at once.
                hint = f"; {_hint(item.name)}" if len(self.flaws) < FLAWS_MAX else ""
                self._refuse([item], f"{item.place}: there is no key {item.name}{hint}")
        except ValueError as error:
            self._refuse([item], f"{item.place}: {item.name} {error}")

    def finish(self) -> Examined:
        """Make every options object, so that each checks what it was given."""
        parts = {attribute: self._make(part, self.options.get(part, {})) for attribute, part in PARTS.items()}
        settings = Settings(mechanisms=self.modes, **parts)
        if len(self.flaws) > FLAWS_MAX:
            self.flaws[FLAWS_MAX:] = [f"and {len(self.flaws) - FLAWS_MAX} more"]
        return Examined(Loaded(settings, self.origins, self.notes), self.flaws, self.unusable)

    def _make(self, part: type, values: dict[str, tuple[Given, object]]) -> Any:
        """The options, of those values that can be used; each round leaves out what it has refused."""
        while True:
            try:
                return part(**{option: value for option, (_, value) in values.items()})
            except ValueError as error:
                refused = self._wrong(part, values, str(error))
            values = {option: given for option, given in values.items() if option not in refused}

    def _wrong(self, part: type, values: Mapping[str, tuple[Given, object]], why: str) -> set[str]:
        """Refuse what these values are together refused for; the options that are meant.

        That is a value that is refused alone for the same reason, so that the sentence is about the key that is wrong
        and not about its neighbours. One that is wrong alone, and right with what is given beside it, is not meant.
        """
        for option, (item, _) in values.items():
            if why == _flaw_alone(part, option, values[option][1]):
                sentence = f"{item.place}: {item.name} cannot be {item.value!r}: {why}"
                self._refuse([item], CREDENTIALS.sub("//***@", sentence))
                return {option}
        names = ", ".join(f"{item.name} ({item.place})" for item, _ in values.values())
        self._refuse([item for item, _ in values.values()], f"{why}; given together: {names}")
        return set(values)

    def _refuse(self, items: Sequence[Given], flaw: str) -> None:
        self.flaws.append(flaw)
        for item in items:
            self.unusable.add(item.name)
            self.origins.pop(item.name, None)


def _flaw_alone(part: type, option: str, value: object) -> str:
    """Why an option cannot have this value, whatever the others are; empty if it can."""
    try:
        part(**{option: value})
    except ValueError as flaw:
        return str(flaw)
    return ""


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
