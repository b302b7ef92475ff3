"""Settings that are allowed and odd: each is named, with why and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentgate.config import MECHANISMS, Loaded, contradictions, load
from agentgate.config.contradictions import RULES


def loaded(tmp_path: Path, text: str) -> Loaded:
    path = tmp_path / "gate.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


ODD = {
    "store: memory": ["store"],
    "mechanisms: {idempotency: off}": ["mechanisms.idempotency"],
    "idempotency: {ttl_hours: 0.005}": ["idempotency.ttl_hours", "calls.root_deadline_seconds"],
    "tracing: {keep_days: 1}\nidempotency: {ttl_hours: 48}": ["tracing.keep_days", "idempotency.ttl_hours"],
    "calls: {recovery_seconds: 5}": ["calls.recovery_seconds", "presence.expected_seconds"],
    "calls: {silent_seconds: 3}": ["calls.silent_seconds", "presence.beat_seconds"],
    "server: {idle_seconds: 5}": ["server.idle_seconds", "presence.silent_seconds"],
    "server: {frame_bytes_max: 400000}": ["server.frame_bytes_max", "payload.bytes_max"],
    "dynamic_timeout: {safety_factor: 1.3}": ["dynamic_timeout.safety_factor"],
    "dynamic_timeout: {default_ms: 31000}": ["calls.root_deadline_seconds", "dynamic_timeout.default_ms"],
    "dynamic_timeout: {max_ms: 31000}\ncircuit_breaker: {trial_timeout_seconds: 31}": [
        "dynamic_timeout.max_ms", "calls.root_deadline_seconds"
    ],
    "circuit_breaker: {trial_timeout_seconds: 20}": ["circuit_breaker.trial_timeout_seconds", "dynamic_timeout.max_ms"],
    "dynamic_timeout: {heavy_max_ms: 200000}": [
        "circuit_breaker.heavy_trial_timeout_seconds", "dynamic_timeout.heavy_max_ms"
    ],
    "circuit_breaker: {outcomes_min: 13000}": ["circuit_breaker.outcomes_min", "rate_limit.per_second"],
    "concurrency: {ejection_faults: 5}": ["concurrency.ejection_faults", "circuit_breaker.faults_in_a_row"],
    "concurrency: {queue_max: 3000}": ["concurrency.queue_max", "calls.root_deadline_seconds"],
    "retry: {max_attempts: 10}": ["retry.max_attempts", "calls.root_deadline_seconds"],
    "retry: {backoff_base_ms: 2000, backoff_max_ms: 1000}": ["retry.backoff_base_ms", "retry.backoff_max_ms"],
    "chain_guard: {fan_out_max: 150, calls_max: 100}": ["chain_guard.calls_max", "chain_guard.fan_out_max"],
    "rate_limit: {burst: 10}": ["rate_limit.burst", "chain_guard.fan_out_max"],
    "mechanisms: {retry: observe}": ["mechanisms.retry"],
    "concurrency: {lease_ttl_seconds: 3}": ["concurrency.lease_ttl_seconds", "presence.beat_seconds"],
    "agents: {probe_seconds: 4}": ["presence.silent_seconds", "agents.probe_seconds"],
    "server: {host: '10.0.0.1', tokens: tokens.json}": ["server.host"],
}  # fmt: skip


@pytest.mark.parametrize("text", sorted(ODD))
def test_contradictions_are_named_and_allowed(tmp_path: Path, text: str) -> None:
    """I7: settings that make no sense together load, and `config check` names them, their values, where those come
    from, why they do not go together, and what to do.
    """
    read = loaded(tmp_path, text)
    [odd] = contradictions(read)
    assert [row.name for row in odd.keys] == ODD[text]
    assert any("gate.yaml:" in row.origin for row in odd.keys)
    for row in odd.keys:
        assert f"{row.name} = {row.value} ({row.origin})" in odd.text
    assert odd.text.endswith(f": {odd.why}; {odd.remedy}")


def test_every_mechanism_that_is_left_observing_is_named(tmp_path: Path) -> None:
    """I2: observe is a step on the way, and `config check` says which mechanisms are still on it."""
    observed = [name for name, known in MECHANISMS.items() if "observe" in known.modes]
    text = f"mechanisms: {{{', '.join(f'{name}: observe' for name in observed)}}}"
    named = [row.name for odd in contradictions(loaded(tmp_path, text)) for row in odd.keys]
    assert named == [f"mechanisms.{name}" for name in observed]


def test_no_contradiction_is_without_its_test(tmp_path: Path) -> None:
    """I7: every line of the table has an example above."""
    shown = {tuple(keys) for keys in ODD.values()}
    rest = {rule.keys for rule in RULES} - shown
    assert all(keys[0].startswith("mechanisms.") for keys in rest)


def test_the_defaults_do_not_contradict_each_other() -> None:
    """A default configuration has nothing to warn of."""
    assert contradictions(load()) == []
