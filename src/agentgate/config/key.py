"""One key of the configuration: what it sets, in which unit, and what it means."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec

from agentgate.core.ranges import all_of

Kind = Literal["number", "whole number", "yes or no", "text", "list of texts", "rows"]
KINDS: Final[dict[type, Kind]] = {
    float: "number",
    int: "whole number",
    bool: "yes or no",
    str: "text",
}

# Words for "none" where an option may be off.
OFF: Final = ("off", "none")


@dataclass(frozen=True, slots=True)
class Key:
    """`name` as in the file; it sets `option` of the options class `part`, which is given in `scale` of its units.

    `scale` is what the file's number is multiplied with: 0.001 where the file says milliseconds and the option
    seconds. Type and default are those of the option. `too_high` and `too_low` say what a bad value does.
    """

    name: str
    part: type
    option: str
    meaning: str
    too_high: str = ""
    too_low: str = ""
    scale: float = 1.0

    @property
    def kind(self) -> Kind:
        """What the file has to hold: the type of the option."""
        if get_origin(self.hint) is tuple:
            return "list of texts" if self._types[0] is str else "rows"
        return KINDS[self._types[0]]

    @property
    def may_be_off(self) -> bool:
        """Whether the option knows an "off"."""
        return type(None) in self._types

    @property
    def default(self) -> object:
        """The option's default, in the file's unit; None is off."""
        value = self._field.default
        assert value is not MISSING, f"{self.part.__name__}.{self.option} has no default"
        return self.shown(value)

    @property
    def hint(self) -> Any:
        """The type of the option."""
        return get_type_hints(self.part)[self.option]

    def shown(self, value: object) -> object:
        """A value of the option, as the file would have it."""
        if self.kind == "list of texts" and isinstance(value, tuple):
            return ", ".join(value)
        if self.kind == "rows":
            rows: list[object] = msgspec.to_builtins(value)
            return [_without_blanks(row) for row in rows]
        return _tidy(value / self.scale) if isinstance(value, float) and self.scale != 1.0 else value

    @property
    def _field(self) -> Field[object]:
        return next(field for field in fields(self.part) if field.name == self.option)

    @property
    def _types(self) -> tuple[type, ...]:
        return get_args(self.hint) or (self.hint,)

    def read(self, value: object) -> object:
        """The option's value for what the file holds; raises `ValueError` with what it should hold."""
        if value is None:
            raise ValueError("has no value; leave the line out for the default")
        if self.may_be_off and value in OFF:
            return None
        wanted = self.kind
        if wanted == "rows":
            return self._rows(value)
        if wanted == "text" and isinstance(value, str):
            return value
        if wanted == "list of texts" and (items := _items(value)) is not None:
            return items
        if wanted == "yes or no" and (word := _yes_or_no(value)) is not None:
            return word
        if wanted == "number" and isinstance(value, int | float) and not isinstance(value, bool):
            return value * self.scale
        if wanted == "whole number" and isinstance(value, int) and not isinstance(value, bool):
            return value
        given = repr(value)
        if isinstance(value, list):
            wrong = [repr(item) for item in value if not isinstance(item, str)]
            given = f"one with {all_of(wrong)}" if wanted == "list of texts" else "a list"
        raise ValueError(f"must be a {wanted}{' or off' if self.may_be_off else ''}, not {given}")

    def _rows(self, value: object) -> object:
        """A list, as the file has it or as JSON in the environment; every row is checked."""
        try:
            if isinstance(value, str):
                value = msgspec.json.decode(value)
            return msgspec.convert(value, self.hint)
        except msgspec.ValidationError as error:
            wrong = _wrong_rows(value, self._types[0]) if isinstance(value, list) else [str(error)]
            raise ValueError(f"is not right: {all_of(wrong)}") from None
        except (msgspec.DecodeError, RecursionError):
            raise ValueError(f"must be a list, not {value!r}") from None


def _wrong_rows(rows: list[object], kind: type) -> list[str]:
    """What is wrong with each of them, as it would be said of the first."""
    found: list[str] = []
    for number, row in enumerate(rows):
        try:
            msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            why, _, place = str(error).partition(" - at `$")
            found.append(f"{why} - at `$[{number}]{place or '`'}")
    return found


def _without_blanks(row: object) -> object:
    """A row as somebody would write it: what is not said is left out."""
    return {name: value for name, value in row.items() if value not in ("", None)} if isinstance(row, dict) else row


def _yes_or_no(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"yes": True, "on": True, "no": False, "off": False}.get(value) if isinstance(value, str) else None


def _items(value: object) -> tuple[str, ...] | None:
    """A list of texts, or one text with commas in between, as in an environment variable."""
    if isinstance(value, str):
        return tuple(item for part in value.split(",") if (item := part.strip()))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None


def _tidy(number: float) -> float:
    """Without the dust of the division: 2.0 / 0.001 is to be 2000."""
    rounded = round(number, 9)
    return int(rounded) if rounded == int(rounded) else rounded
