"""Runs schemathesis, as its own command does, with the one library of it that lags behind brought up to date.

`hypothesis-jsonschema` asks a collection with `more()` whether it goes on; hypothesis itself iterates by now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis_jsonschema._from_schema as from_schema
from hypothesis.internal.conjecture import utils
from schemathesis.cli import schemathesis


class Many(utils.many):
    """A collection that can be asked, too."""

    _steps: Iterator[None]

    def more(self) -> bool:
        """Whether there is one more."""
        if self._depth is None:
            self.__enter__()
            self._steps = iter(self)
        return any(True for _ in self._steps)


class Utils:
    """What the library uses of hypothesis."""

    many = Many

    def __getattr__(self, name: str) -> Any:
        return getattr(utils, name)


if __name__ == "__main__":
    vars(from_schema)["cu"] = Utils()
    schemathesis()
