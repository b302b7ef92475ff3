"""Checks payloads and answers against the JSON Schemas of the cards.

A schema comes from an agent, so it is not trusted: it is compiled without access to the network or to files, its
size is bounded where the card is accepted, and one that cannot be compiled counts as absent.
"""

from __future__ import annotations

from typing import Any, Final

import jsonschema_rs
import msgspec
import structlog

from agentgate.core.bounded import BoundedMap

log = structlog.get_logger(__name__)

# Compiled schemas kept: some per skill, of all agents of a large platform.
COMPILED_MAX: Final = 10_000
FINDING_CHARS_MAX: Final = 300


class Schemas:
    """Compiled schemas by content."""

    def __init__(self) -> None:
        self._compiled: BoundedMap[int, tuple[dict[str, Any], Any]] = BoundedMap(COMPILED_MAX)

    def finding(self, schema: dict[str, Any] | None, value: object) -> str | None:
        """What is wrong with a value, and where; None when it fits (or nothing is declared)."""
        if schema is None:
            return None
        validator = self._validator(schema)
        if validator is None or validator.is_valid(value):
            return None
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            place = "".join(f"[{part!r}]" for part in error.instance_path)
            return f"{error.message} at {place or 'the top'}"[:FINDING_CHARS_MAX]
        return None

    def _validator(self, schema: dict[str, Any]) -> Any | None:
        # By identity, as long as the very object is kept: hashing the content would cost more than the check.
        known = self._compiled.peek(id(schema))
        if known is not None and known[0] is schema:
            return known[1]
        try:
            validator = jsonschema_rs.validator_for(schema, offline=True)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            log.warning("schema_ignored", error=str(error)[:FINDING_CHARS_MAX], bytes=len(msgspec.json.encode(schema)))
            validator = None
        self._compiled[id(schema)] = (schema, validator)
        return validator
