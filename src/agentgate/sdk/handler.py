"""A handler: a function, what it declares, and how its arguments and its result are checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Raw

from agentgate.errors import ConfigError
from agentgate.model.card import Skill
from agentgate.sdk.answers import InputDefect
from agentgate.sdk.payload import ValueDefect, checked_json
from agentgate.sdk.typed import Shape, signature_of


class Handler:
    """One task type of an agent.

    The function takes `(payload)` or `(payload, ctx)`; a coroutine function runs on the event loop, any other in a
    thread of its own. `names`: local names its annotations may refer to.
    """

    def __init__(self, function: Callable[..., Any], skill: Skill, names: Mapping[str, Any]) -> None:
        called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 - the method itself is wanted
        title = f"handler `{getattr(function, '__qualname__', function)}` of `{skill.task_type}`{_place_of(called)}"
        if inspect.isasyncgenfunction(called) or inspect.isgeneratorfunction(called):
            raise ConfigError(f"{title} yields; a handler returns its result once")
        parameters, hints = signature_of(function, names)
        if len(parameters) not in (1, 2):
            raise ConfigError(f"{title} takes {len(parameters)} parameters; it takes (payload) or (payload, ctx)")
        self.function = function
        self.skill = skill
        self.is_async = inspect.iscoroutinefunction(called)
        self.takes_context = len(parameters) == 2  # noqa: PLR2004 - (payload, ctx)
        self.input = Shape(hints.get(parameters[0].name, Any), f"{title}, parameter `{parameters[0].name}`")
        self.output = Shape(hints.get("return", Any), f"{title}, result")
        self._refuse_wrong_context(title, hints.get(parameters[-1].name) if self.takes_context else None)

    def arguments(self, payload: Any, context: object) -> tuple[Any, ...]:
        """What the function is called with; raises `InputDefect`."""
        try:
            taken = self.input.take(payload)
        except Exception as error:
            raise InputDefect(f"payload of `{self.skill.task_type}`: {error}") from error
        return (taken, context) if self.takes_context else (taken,)

    def result(self, value: Any, bytes_max: int) -> Raw:
        """The result as checked JSON; raises `ValueDefect`."""
        raw = checked_json(value, bytes_max)
        try:
            self.output.check(raw)
        except Exception as error:
            raise ValueDefect(f"result of `{self.skill.task_type}`: {error}") from error
        return raw

    def _refuse_wrong_context(self, title: str, declared: Any) -> None:
        wrong, right = ("SyncContext", "Context") if self.is_async else ("Context", "SyncContext")
        if getattr(declared, "__name__", "") == wrong:
            kind = "async" if self.is_async else "not async"
            raise ConfigError(f"{title} is {kind}: its second parameter is a {right}, not a {wrong}")


def _place_of(function: Callable[..., Any]) -> str:
    """Where it is written, for an error that people see without a traceback."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f" ({Path(code.co_filename).name}:{code.co_firstlineno})"
