"""Checks payloads and answers against the JSON Schemas of the cards.

A schema comes from an agent, so it is not trusted: it is compiled without access to the network or to files, its
size is bounded where the card is accepted, and a card with one that cannot be compiled is refused. A card that an
earlier gate has accepted may have one all the same until its agent comes again; that counts as absent.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import jsonschema_rs
import msgspec
import structlog

from agentgate.core.bounded import BoundedMap

if TYPE_CHECKING:
    from agentgate.model import Card

log = structlog.get_logger(__name__)

# Compiled schemas kept: some per skill, of all agents of a large platform.
COMPILED_MAX: Final = 10_000
FINDING_CHARS_MAX: Final = 300
DIGEST_BYTES: Final = 16
UNUSABLE: Final = (ValueError, jsonschema_rs.ReferencingError)


class Schemas:
    """Compiled schemas by content."""

    def __init__(self) -> None:
        self._compiled: BoundedMap[bytes, Any] = BoundedMap(COMPILED_MAX)
        # By identity, as long as the very object is kept: hashing the content would cost more than the check.
        self._found: BoundedMap[int, tuple[dict[str, Any], Any]] = BoundedMap(COMPILED_MAX)

    def __len__(self) -> int:
        """How many different ones are known."""
        return len(self._compiled)

    def flaw(self, card: Card) -> str | None:
        """Which schema of a card cannot be used, and why; None when all can. Compiles what is new to the gate."""
        for skill in card.skills:
            for which, schema in (("input_schema", skill.input_schema), ("output_schema", skill.output_schema)):
                try:
                    self._validator(schema)
                except UNUSABLE as error:
                    return f"the {which} of {skill.task_type!r} cannot be used: {_shown(error)}"
        return None

    def finding(self, schema: dict[str, Any] | None, value: object) -> str | None:
        """What is wrong with a value, and where; None when it fits (or nothing is declared)."""
        if schema is None:
            return None
        known = self._found.peek(id(schema))
        validator = known[1] if known is not None and known[0] is schema else self._find(schema)
        if validator is None or validator.is_valid(value):
            return None
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return _shown(error)
        return None

    def _find(self, schema: dict[str, Any]) -> Any | None:
        try:
            validator = self._validator(schema)
        except UNUSABLE as error:
            log.warning("schema_ignored", error=_shown(error), bytes=len(msgspec.json.encode(schema)))
            validator = None
        self._found[id(schema)] = (schema, validator)
        return validator

    def _validator(self, schema: dict[str, Any] | None) -> Any | None:
        """Raises what `UNUSABLE` names for one that is none, or refers to something that is not in it."""
        if schema is None:
            return None
        content = blake2b(msgspec.json.encode(schema), digest_size=DIGEST_BYTES).digest()
        validator = self._compiled.get(content)
        if validator is None:
            validator = self._compiled[content] = jsonschema_rs.validator_for(schema, offline=True)
        return validator


def _shown(error: Exception) -> str:
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error)[:FINDING_CHARS_MAX]
    place = "".join(f"[{part!r}]" for part in error.instance_path)
    return f"{error.message} at {place or 'the top'}"[:FINDING_CHARS_MAX]
