"""The configuration file as a JSON Schema, so that an editor completes keys and says what they mean."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentgate.config.describe import rows
from agentgate.config.key import OFF, Key, Kind
from agentgate.config.keys import KEYS, NOT_BUILT
from agentgate.config.loader import MECHANISM_PREFIX, load
from agentgate.config.mechanisms import MECHANISMS, Mechanism

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# Older readers of YAML take an unquoted `off` for false, and so do some editors.
OFF_AS_READ: Final = [*OFF, False]
TYPES: Final[dict[Kind, dict[str, Any]]] = {
    "number": {"type": "number"},
    "whole number": {"type": "integer"},
    "yes or no": {"enum": [True, False, "yes", "no", "on", "off"]},
    "text": {"type": "string"},
    "list of texts": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
}


def schema() -> dict[str, Any]:
    """The whole file."""
    root = _section()
    root |= {"$schema": DIALECT, "title": "AgentGate", "$defs": _rows_of_lists()}
    shapes = {MECHANISM_PREFIX + name: _modes(mechanism) for name, mechanism in MECHANISMS.items()}
    shapes |= {key.name: _values(key) for key in KEYS}
    for row in rows(load()):
        said = {"default": row.default, "description": "; ".join([row.meaning, *row.consequences])}
        _put(root, row.name, shapes[row.name] | said)
    for name, why in NOT_BUILT.items():
        _put(root, name, {"description": f"accepted, without effect: {why}"})
    return root


def _modes(mechanism: Mechanism) -> dict[str, Any]:
    return {"enum": [*mechanism.modes, *([False] if "off" in mechanism.modes else [])]}


def _values(key: Key) -> dict[str, Any]:
    if key.kind == "rows":
        return _list_schema([key.hint])[0][0]
    kind = TYPES[key.kind]
    return {"anyOf": [kind, {"enum": OFF_AS_READ}]} if key.may_be_off else kind


def _rows_of_lists() -> dict[str, Any]:
    """What the rows of lists look like, for all keys that are lists."""
    return _list_schema([key.hint for key in KEYS if key.kind == "rows"])[1]


def _list_schema(hints: list[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    schemas, rows = msgspec.json.schema_components(hints, ref_template="#/$defs/{name}")
    return list(schemas), dict(rows)


def _section() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _put(root: dict[str, Any], name: str, described: dict[str, Any]) -> None:
    *sections, last = name.split(".")
    place = root
    for section in sections:
        place = place["properties"].setdefault(section, _section())
    place["properties"][last] = described
