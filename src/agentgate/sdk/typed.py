"""What a declared type means: what is accepted, and the JSON Schema that the card publishes.

dataclass, TypedDict, msgspec.Struct and the builtins are msgspec's business; models of pydantic are recognised by their
methods, so that pydantic need not be installed. A missing annotation, `Any` and `object` accept everything.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from agentgate.errors import ConfigError

_ANYTHING: Final = (Any, object, inspect.Parameter.empty)


class Shape:
    """One declared type. `where` names the place for error messages."""

    def __init__(self, declared: Any, where: str) -> None:
        self.declared = None if declared is type(None) else declared
        self.is_anything = any(declared is anything for anything in _ANYTHING)
        self.schema = None if self.is_anything else _schema(declared, where)
        self._decoder = None if self.is_anything else msgspec.json.Decoder(declared, dec_hook=_from_json_type)

    def take(self, value: Any) -> Any:
        """The value as the declared type; raises `ValueError` that says what is wrong and where."""
        return value if self.is_anything else convert(value, self.declared)

    def check(self, raw: msgspec.Raw) -> None:
        """Raise `ValueError` unless this JSON fits."""
        if self._decoder is not None:
            self._decoder.decode(raw)


def convert(value: Any, declared: Any) -> Any:
    """JSON values as a declared type; raises `ValueError` that says what is wrong and where."""
    return msgspec.convert(value, declared, dec_hook=_from_json_type)


def signature_of(
    function: Callable[..., Any], names: Mapping[str, Any]
) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """The positional parameters and the resolved annotations; `names`: what the place of definition can see."""
    title = getattr(function, "__qualname__", repr(function))
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    annotated = function if inspect.isroutine(function) else type(function).__call__
    try:
        hints = typing.get_type_hints(annotated, localns=dict(names), include_extras=True)
    except NameError as error:
        raise ConfigError(f"handler `{title}`: its annotations cannot be read: {error}") from error
    return parameters, hints


def _schema(declared: Any, where: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {}

    def of_model(model: Any) -> dict[str, Any]:
        describe = getattr(model, "model_json_schema", None)
        if describe is None:
            raise NotImplementedError
        schema: dict[str, Any] = describe(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        return schema

    try:
        schema = msgspec.json.schema(declared, schema_hook=of_model)
    except Exception as error:
        raise ConfigError(
            f"{where}: {declared!r} cannot travel as JSON; use a dataclass, a TypedDict, a msgspec.Struct "
            f"or a pydantic model ({str(error).splitlines()[0]})"
        ) from error
    if definitions:
        schema["$defs"] = definitions | schema.get("$defs", {})
    return schema


def _from_json_type(declared: type[Any], value: Any) -> Any:
    """How types that msgspec does not know are read: models of pydantic."""
    validate = getattr(declared, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"{declared!r} cannot be read from JSON")
    return validate(value)
