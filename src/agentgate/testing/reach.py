"""Finds structures by walking over objects, so that a new bounded map is watched without being named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentgate.core.bounded import BoundedMap

OBJECTS_MAX: Final = 100_000  # looked at in one walk


def bounded_maps(root: object) -> Iterator[tuple[str, BoundedMap[Any, Any]]]:
    """Every bounded map reachable from an object of ours through attributes, lists and dicts, with its path."""
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [("gateway", root)]
    while todo and len(seen) < OBJECTS_MAX:
        path, item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, BoundedMap):
            yield path, item
        elif isinstance(item, dict):
            todo.extend((f"{path}[{key!r}]", value) for key, value in item.items())
        elif isinstance(item, list | tuple):
            todo.extend((f"{path}[{place}]", value) for place, value in enumerate(item))
        elif type(item).__module__.startswith("agentgate."):
            todo.extend((f"{path}.{name}", value) for name, value in _attributes(item))


def _attributes(item: object) -> Iterator[tuple[str, object]]:
    names = list(getattr(item, "__dict__", ()))
    for kind in type(item).__mro__:
        slots = getattr(kind, "__slots__", ())
        names.extend((slots,) if isinstance(slots, str) else slots)
    for name in names:
        if (value := getattr(item, name, None)) is not None:
            yield name, value
