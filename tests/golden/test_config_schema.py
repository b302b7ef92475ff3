"""The schema for editors and the loader agree about what a configuration may hold (I7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from agentgate.config import KEYS, MECHANISMS, load, rows, schema
from agentgate.config.loader import MECHANISM_PREFIX
from agentgate.errors import ConfigError
from tests.properties.test_config import REFERENCE

VALIDATOR = jsonschema_rs.validator_for(schema())


def test_the_reference_configuration_is_valid_for_both(tmp_path: Path) -> None:
    """What EXPERIENCE shows loads as written, and an editor has nothing against it."""
    file = tmp_path / "agentgate.yaml"
    file.write_text(REFERENCE, encoding="utf-8")
    loaded = load(file)
    assert loaded.settings.mechanisms["circuit_breaker"] == "observe"
    assert VALIDATOR.is_valid(yaml.safe_load(REFERENCE))


def test_every_default_is_valid_and_loads(tmp_path: Path) -> None:
    """The whole table written out with its defaults is a configuration, and means the same as an empty one."""
    written: dict[str, Any] = {}
    for row in rows(load()):
        *sections, last = row.name.split(".")
        place = written
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = row.default
    assert VALIDATOR.is_valid(written), [error.message for error in VALIDATOR.iter_errors(written)]
    file = tmp_path / "agentgate.yaml"
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    assert load(file).settings == load().settings


@pytest.mark.parametrize(
    "text", ["retries: {}", "retry: {attempts: 3}", "retry: {max_attempts: many}", "mechanisms: {tracing: observe}"]
)
def test_what_the_loader_refuses_an_editor_marks(text: str, tmp_path: Path) -> None:
    """Unknown names, wrong types and modes that a mechanism does not know."""
    file = tmp_path / "agentgate.yaml"
    file.write_text(text, encoding="utf-8")
    assert not VALIDATOR.is_valid(yaml.safe_load(text))
    if text != "retries: {}":
        with pytest.raises(ConfigError):
            load(file)


def test_rows_say_where_a_value_comes_from(tmp_path: Path) -> None:
    """The file, the environment over it, the default; in the file's unit."""
    file = tmp_path / "agentgate.yaml"
    file.write_text("retry: {backoff_base_ms: 250, max_attempts: 2}\n", encoding="utf-8")
    found = {row.name: row for row in rows(load(file, {"AGENTGATE__RETRY__MAX_ATTEMPTS": "4"}))}
    assert len(found) == len(KEYS) + len(MECHANISMS)
    base, attempts = found["retry.backoff_base_ms"], found["retry.max_attempts"]
    assert (base.value, base.default, str(file) in base.origin) == (250, 500, True)
    assert (attempts.value, attempts.origin) == (4, "AGENTGATE__RETRY__MAX_ATTEMPTS")
    assert found["retry.jitter_ms"].origin == "default"
    assert found[MECHANISM_PREFIX + "retry"].value == "enforce"
