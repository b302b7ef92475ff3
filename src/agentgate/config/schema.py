"""The configuration file as a JSON Schema, so that an editor completes keys and says what they mean."""

from __future__ import annotations

from typing import Any, Final

from agentgate.config.describe import OFF
from agentgate.config.key import OFF as OFF_WORDS
from agentgate.config.key import Key, Kind
from agentgate.config.keys import KEYS, NOT_BUILT
from agentgate.config.loader import MECHANISM_PREFIX
from agentgate.config.mechanisms import MECHANISMS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# Older readers of YAML take an unquoted `off` for false, and so do some editors.
OFF_AS_READ: Final = [*OFF_WORDS, False]
TYPES: Final[dict[Kind, dict[str, Any]]] = {
    "number": {"type": "number"},
    "whole number": {"type": "integer"},
    "yes or no": {"enum": [True, False, "yes", "no", "on", "off"]},
    "text": {"type": "string"},
}


def schema() -> dict[str, Any]:
    """The whole file."""
    root = _section()
    root |= {"$schema": DIALECT, "title": "AgentGate"}
    for name, mechanism in MECHANISMS.items():
        modes: list[object] = [*mechanism.modes, *([False] if OFF in mechanism.modes else [])]
        said = mechanism.meaning + (f"; off: {mechanism.when_off}" if mechanism.when_off else "")
        _put(root, MECHANISM_PREFIX + name, {"enum": modes, "default": mechanism.default, "description": said})
    for key in KEYS:
        _put(root, key.name, _of(key))
    for name, why in NOT_BUILT.items():
        _put(root, name, {"description": f"accepted, without effect: {why}"})
    return root


def _of(key: Key) -> dict[str, Any]:
    said = [key.meaning]
    said += [f"too high: {key.too_high}"] if key.too_high else []
    said += [f"too low: {key.too_low}"] if key.too_low else []
    kind = TYPES[key.kind]
    described = {"anyOf": [kind, {"enum": OFF_AS_READ}]} if key.may_be_off else dict(kind)
    return described | {"default": OFF if key.default is None else key.default, "description": "; ".join(said)}


def _section() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _put(root: dict[str, Any], name: str, described: dict[str, Any]) -> None:
    *sections, last = name.split(".")
    place = root
    for section in sections:
        place = place["properties"].setdefault(section, _section())
    place["properties"][last] = described
