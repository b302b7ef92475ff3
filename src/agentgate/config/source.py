"""Where settings come from: one YAML file, the environment, the command line. Nothing is interpreted here.

The file is read as a tree of text with places, not as Python values: YAML's own reading turns `off` into false, `1:30`
into ninety and `010` into eight, and forgets where everything stood. A scalar is null, true, false, a decimal number,
or else a word. Nested mappings become dotted names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from agentgate.errors import ConfigError

FILE_BYTES_MAX: Final = 1_048_576  # a thousand times the largest sensible file
DEPTH_MAX: Final = 8  # twice the deepest key
LIST_DEPTH_MAX: Final = 3  # a list of rows of values
ENV_PREFIX: Final = "AGENTGATE__"
ENV_FILE: Final = "AGENTGATE_CONFIG"

WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
NUMBER = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)([eE][-+]?[0-9]+)?")

Value = str | int | float | bool | None | list[object]


class Given(NamedTuple):
    """One value as it was given: the dotted name, what stood there, and where."""

    name: str
    value: Value
    place: str


def read_scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted scalar means; `on`, `off`, `yes` and `no` are words."""
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if WHOLE.fullmatch(text):
        return int(text)
    if NUMBER.fullmatch(text):
        return float(text)
    return text


def read_environment(environ: Mapping[str, str]) -> list[Given]:
    """`AGENTGATE__SECTION__KEY=value`, in order of name."""
    names = sorted(name for name in environ if name.startswith(ENV_PREFIX))
    return [
        Given(name.removeprefix(ENV_PREFIX).replace("__", ".").lower(), read_scalar(environ[name].strip()), name)
        for name in names
    ]


def read_file(path: Path, flaws: list[str]) -> list[Given]:
    """Every value of a YAML file; what cannot be read in it is left out, and said in `flaws`.

    Raises `ConfigError` for a file that cannot be read as one.
    """
    root = _parse(path)
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(
            f"{_place(path, root)}: a configuration is a mapping of sections, not a list or a single value"
        )
    return list(_flatten(path, root, "", flaws))


def _parse(path: Path) -> yaml.Node | None:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {os.strerror(error.errno or 0)}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: is larger than {FILE_BYTES_MAX} bytes; this cannot be a configuration")
    try:
        return yaml.compose(data.decode("utf-8-sig"), Loader=yaml.BaseLoader)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise ConfigError(f"{path}:{line}: is not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError):
        raise ConfigError(f"{path}: is not valid YAML: control characters, or nested too deeply") from None


def _flatten(path: Path, mapping: yaml.MappingNode, prefix: str, flaws: list[str], depth: int = 1) -> Iterator[Given]:
    seen: set[str] = set()
    for key, value in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            flaws.append(f"{_place(path, key)}: a key is a word, not a list or a mapping")
            continue
        name = prefix + key.value
        if name in seen:
            flaws.append(f"{_place(path, key)}: {name} is given twice")
            continue
        seen.add(name)
        if isinstance(value, yaml.MappingNode) and depth < DEPTH_MAX:
            yield from _flatten(path, value, name + ".", flaws, depth + 1)
            continue
        try:
            yield Given(name, _value(path, value), _place(path, key))
        except ConfigError as flaw:
            flaws.append(str(flaw))


def _value(path: Path, node: yaml.Node) -> Value:
    value: Value = _plain(path, node, LIST_DEPTH_MAX)
    return value


def _plain(path: Path, node: yaml.Node, depth: int) -> Any:
    """A list with what is in it; bounded, for a short text can name the same part many times."""
    if isinstance(node, yaml.ScalarNode):
        return read_scalar(node.value) if node.style is None else str(node.value)
    if not depth:
        raise ConfigError(f"{_place(path, node)}: is nested too deeply")
    if not isinstance(node, yaml.MappingNode):
        return [_plain(path, item, depth - 1) for item in node.value]
    row: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in row:
            raise ConfigError(f"{_place(path, key)}: a key is a word and stands once in a row")
        row[key.value] = _plain(path, value, depth - 1)
    return row


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
