"""Settings are read as written, refused with a sentence and a place, and described by one table."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.config import KEYS, MECHANISMS, Given, Key, Loaded, Settings, examine, load, rows
from agentgate.config.keys import NOT_BUILT
from agentgate.config.settings import PARTS
from agentgate.config.source import read_scalar
from agentgate.core.quota import QuotaLimit, TaskCost
from agentgate.errors import ConfigError

Golden = Callable[[str, str], None]

# The reference keys as the documentation shows them, except for what a switch does not know yet.
REFERENCE = """
dynamic_timeout: {safety_factor: 1.6, min_ms: 2000, max_ms: 30000}
circuit_breaker: {error_ratio: 0.3, window_seconds: 60, half_open_max: 5}
retry:           {max_attempts: 3, backoff_base_ms: 500}
idempotency:     {ttl_hours: 24}
wait_graph:      {detect_interval_seconds: 3}
concurrency:     {lease_ttl_seconds: 30}
degradation:
  triggers: {error_rate_threshold: 0.30, p99_latency_ms_threshold: 2000, queue_depth_threshold: 5000}
  levels: [{name: NORMAL, desc: all}, {name: SHED_NON_CORE, desc: less}, {name: CORE_ONLY, desc: least}]
  recovery: {cooldown_ms: 120000}
mechanisms:      {idempotency: enforce, circuit_breaker: observe, wait_graph: off}
"""


def loaded(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None) -> Loaded:
    path = tmp_path / "gate.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, environ or {})


def refusal(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None) -> str:
    """The sentence, with the folder left out."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text, environ)
    assert "\n" not in str(raised.value)
    return str(raised.value).replace(str(tmp_path) + "/", "")


# --- what loads


def test_the_reference_configuration_loads_as_written(tmp_path: Path) -> None:
    """I3: the reference keys load; what they set is what they say, and the parts not built yet are named."""
    settings, origins, notes = loaded(tmp_path, REFERENCE)
    assert (settings.timeout.safety_factor, settings.timeout.min_s, settings.timeout.max_s) == (1.6, 2.0, 30.0)
    assert (settings.breaker.error_ratio, settings.breaker.window_s, settings.breaker.half_open_max) == (0.3, 60, 5)
    assert (settings.retry.attempts_max, settings.retry.base_s, settings.ledger.ttl_s) == (3, 0.5, 86_400)
    assert settings.mechanisms["circuit_breaker"] == "observe"
    assert settings.mechanisms["wait_graph"] == "off"
    assert len(notes) == len(NOT_BUILT)
    assert all("is accepted and has no effect" in note for note in notes)
    assert origins["retry.max_attempts"].endswith("gate.yaml:4")


def test_the_reference_numbers_are_the_defaults(tmp_path: Path) -> None:
    """I3: the reference file sets nothing but what holds anyway, apart from its switches."""
    reference = loaded(tmp_path, REFERENCE.partition("mechanisms")[0]).settings
    assert reference == Settings()


def test_nothing_given_is_all_defaults(tmp_path: Path) -> None:
    """No file, an empty file and a file of comments are the defaults."""
    assert load().settings == loaded(tmp_path, "").settings == loaded(tmp_path, "# nothing\n").settings == Settings()


def test_later_sources_win(tmp_path: Path) -> None:
    """The environment is over the file, a flag over both, and the origin says which it was."""
    path = tmp_path / "gate.yaml"
    path.write_text("server: {port: 1000, name: a}\nretry: {max_attempts: 2}\n", encoding="utf-8")
    environ = {"AGENTGATE_CONFIG": str(path), "AGENTGATE__SERVER__PORT": "2000", "AGENTGATE__SERVER__NAME": "b"}
    settings, origins, _ = load(None, environ, [Given("server.port", 3000, "--port")])
    assert (settings.server.port, settings.gateway_name, settings.retry.attempts_max) == (3000, "b", 2)
    assert (origins["server.port"], origins["server.name"]) == ("--port", "AGENTGATE__SERVER__NAME")


def test_the_store_is_a_key_without_a_section(tmp_path: Path) -> None:
    """`store: sqlite:FILE` and AGENTGATE__STORE name where records live."""
    assert str(loaded(tmp_path, "store: sqlite:var/gate.db").settings.store.path) == "var/gate.db"
    memory = load(None, {"AGENTGATE__STORE": "memory"}).settings.store
    assert (memory.url, memory.path) == ("memory", None)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_on_off_yes_no_are_words(tmp_path: Path, name: str) -> None:
    """A switch takes the word `off`, which plain YAML would have turned into false."""
    if "off" in MECHANISMS[name].modes:
        assert loaded(tmp_path, f"mechanisms: {{{name}: off}}").settings.mechanisms[name] == "off"


@pytest.mark.parametrize(
    "text",
    ["[127.0.0.0/8, agents.internal]", "'127.0.0.0/8, agents.internal'", "127.0.0.0/8 ,agents.internal,"],
)
def test_a_list_is_a_list_or_one_text(tmp_path: Path, text: str) -> None:
    """I3: a list is written as YAML's, or with commas, which is how an environment variable says it."""
    found = loaded(
        tmp_path, f"agents: {{endpoint_allow: {text}}}" if text[0] in "['" else f"agents:\n  endpoint_allow: {text}"
    )
    assert found.settings.agents.endpoint_allow == ("127.0.0.0/8", "agents.internal")
    variable = {"AGENTGATE__AGENTS__ENDPOINT_ALLOW": "127.0.0.0/8, agents.internal"}
    assert load(None, variable).settings == found.settings


def test_a_list_of_rows_is_read_and_shown_as_written(tmp_path: Path) -> None:
    """B12: quotas are rows, in the file or as JSON in the environment."""
    row = '{user: "*", task_type: render, units: 100, per_seconds: 60}'
    text = f"quota: {{limits: [{row}], costs: [{{task_type: render, units: 20}}]}}"
    settings = loaded(tmp_path, text).settings
    assert settings.quota.limits == (QuotaLimit(user="*", task_type="render", units=100, per_s=60),)
    assert settings.quota.costs == (TaskCost(task_type="render", units=20),)
    [shown] = [row.value for row in rows(loaded(tmp_path, text)) if row.name == "quota.limits"]
    assert shown == [{"user": "*", "task_type": "render", "units": 100.0, "per_seconds": 60.0}]
    environ = {"AGENTGATE__QUOTA__LIMITS": '[{"concurrent": 3}]'}
    assert loaded(tmp_path, text, environ).settings.quota.limits == (QuotaLimit(concurrent=3),)


# --- what is refused

REFUSED = [
    # unknown keys, with the nearest right one
    "circuit_breaker: {eror_ratio: 0.3}",
    "\n\ncircut_breaker:\n  error_ratio: 0.3",
    "retry: {window_seconds: 3}",
    "mechanisms: {retries: off}",
    "idempotency: {qqq: 1}",
    "stor: memory",
    "retry: {max_attempts: {a: 1}}",
    # values of the wrong kind
    "retry: {max_attempts: many}",
    "retry: {max_attempts: 2.5}",
    "retry: {max_attempts: true}",
    "retry: {max_attempts: '3'}",
    "retry: {max_attempts: [3]}",
    "retry:\n  max_attempts:\n",
    "retry: {max_attempts: null}",
    "dynamic_timeout: {min_ms: .nan}",
    "circuit_breaker: {backlog: no}",
    "server: {name: 7}",
    "agents: {endpoint_allow: 7}",
    "agents: {endpoint_allow: [127.0.0.1, 7]}",
    # values out of bounds, in the words of the options
    "retry: {max_attempts: 0}",
    "server: {port: 70000}",
    "store: mysql:x",
    "agents: {endpoint_allow: [127.0.0.1, 10.0.0.1/8]}",
    "agents: {endpoint_allow: [300.0.0.0/8, 127.0.0.1, foo bar]}",
    "server: {hosts: 'gate.example.com, a:1, b/c'}",
    "store: 'sqlite:'",
    "store: postgresql://user:secret@x/y",
    # good alone, wrong together
    "circuit_breaker: {open_seconds: 30,\n open_max_seconds: 20}",
    # switches
    "mechanisms: {tracing: observe}",
    "mechanisms: {concurrency: off}",
    "mechanisms: {circuit_breaker: maybe}",
    "mechanisms: {degradation: enforce}",
    "mechanisms: {retry: false}",
    "mechanisms: off",
    # lists of rows
    "quota: {limits: 5}",
    "quota: {limits: many}",
    "quota: {limits: [{user: bob}]}",
    "quota: {limits: [{usr: bob, concurrent: 3}]}",
    "quota: {limits: [{user: 7, concurrent: 3}]}",
    "quota: {limits: [{units: 3, per_seconds: 0}]}",
    "quota: {limits: [{user: bob, concurrent: 3}, {units: 5}, {user: 7, concurrent: 3}, {concurrent: -1}, 5]}",
    "quota: {limits: [{user: a, user: b}]}",
    "quota: {limits: [[[[3]]]]}",
    "quota: {costs: {render: 3}}",
    # files that are none
    "retry: {max_attempts: 1, max_attempts: 2}",
    "- 1",
    "? [a]\n: 1",
    "retry: {",
    "a: b: c",
    "a: \x07",
    "[" * 5_000,
]


def test_what_cannot_be_used_is_refused_with_place_and_remedy(tmp_path: Path, golden: Golden) -> None:
    """F26: a wrong key or value is refused at load, in one sentence that names the place and what would be right."""
    pages = [f"{text[:80]}\n    => {refusal(tmp_path, text)}\n" for text in REFUSED]
    golden("config_refusals.txt", "\n".join(pages))


SEVERAL = """
circuit_breaker: {eror_ratio: 0.3, backlog: many, open_seconds: 30, open_max_seconds: 20, half_open_max: 0}
retry: {max_attempts: 99, jitter_ms: -1, max_attempts: 3}
server: {host: '0.0.0.0', port: 70000}
mechanisms: {retry: maybe, tracing: observe, idempotency: off}
quota: {limits: [[[[3]]]]}
stor: memory
"""


def test_everything_that_is_wrong_is_named_at_once(tmp_path: Path) -> None:
    """F26: unknown keys, bad values and what cannot be together, each with its place; one look is enough."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, SEVERAL, {"AGENTGATE__CALLS__PEERS_MAX": "x"})
    sentences = [flaw.replace(f"{tmp_path}/", "") for flaw in raised.value.flaws]
    assert str(raised.value).splitlines() == list(raised.value.flaws)
    for start in (
        "gate.yaml:2: there is no key circuit_breaker.eror_ratio; did you mean circuit_breaker.error_ratio?",
        "gate.yaml:2: circuit_breaker.backlog must be a whole number or off",
        "gate.yaml:2: circuit_breaker.half_open_max cannot be 0",
        "open_max_s (20) must not be below open_s (30); given together",
        "gate.yaml:3: retry.max_attempts is given twice",
        "gate.yaml:3: retry.max_attempts cannot be 99",
        "gate.yaml:3: retry.jitter_ms cannot be -1",
        "gate.yaml:4: server.host cannot be '0.0.0.0'",
        "gate.yaml:4: server.port cannot be 70000",
        "gate.yaml:5: mechanisms.retry can be",
        "gate.yaml:5: mechanisms.tracing can be",
        "gate.yaml:6: is nested too deeply",
        "gate.yaml:7: there is no key stor; did you mean store?",
        "AGENTGATE__CALLS__PEERS_MAX: calls.peers_max must be a whole number",
    ):
        [found] = [sentence for sentence in sentences if sentence.startswith(start)]
        sentences.remove(found)
    assert sentences == []


def test_what_is_right_is_read_beside_what_is_wrong(tmp_path: Path) -> None:
    """I7: the good keys of a bad file are looked at too, and nothing is said of those that are left out."""
    (tmp_path / "gate.yaml").write_text(SEVERAL, encoding="utf-8")
    read, flaws, unusable = examine(tmp_path / "gate.yaml")
    assert read.settings.mechanisms["idempotency"] == "off"
    assert read.origins == {"mechanisms.idempotency": f"{tmp_path}/gate.yaml:5"}
    assert read.settings == replace(Settings(), mechanisms=read.settings.mechanisms)
    assert (len(flaws), len(unusable)) == (13, 12)  # two keys are refused together, two values have no key to name


def test_a_file_of_mistakes_is_no_flood(tmp_path: Path) -> None:
    """I7: however many there are, some are named and the others counted, in a moment."""
    (tmp_path / "gate.yaml").write_text("retry:\n" + "".join(f"  k{n}: 1\n" for n in range(5_000)), encoding="utf-8")
    flaws = examine(tmp_path / "gate.yaml").flaws
    assert (len(flaws), flaws[-1]) == (51, "and 4950 more")


def test_the_environment_is_refused_by_its_own_name(tmp_path: Path) -> None:
    """An error in a variable names the variable."""
    text = refusal(tmp_path, "", {"AGENTGATE__RETRY__MAX_ATTEMPTS": "x"})
    assert text == "AGENTGATE__RETRY__MAX_ATTEMPTS: retry.max_attempts must be a whole number, not 'x'"
    text = refusal(tmp_path, "", {"AGENTGATE__RETRY__MAX_ATTEMPT": "3"})
    assert text.startswith("AGENTGATE__RETRY__MAX_ATTEMPT: there is no key retry.max_attempt; did you mean")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "example.org", "::", ""])  # noqa: S104 - these are refused
def test_only_loopback_without_tokens(tmp_path: Path, host: str) -> None:
    """I6: without tokens a gate that other machines can reach does not start, and says what to type."""
    with pytest.raises(ConfigError, match=r"server\.host cannot be .* needs tokens\. Type: agentgate token create"):
        loaded(tmp_path, f"server: {{host: '{host}'}}")
    assert loaded(tmp_path, f"server: {{host: '{host}', tokens: tokens.json}}").settings.server.host == host


def test_the_sentence_is_about_the_key_that_is_wrong(tmp_path: Path) -> None:
    """I7: a value that is right only with another one beside it is not blamed for a third."""
    with pytest.raises(ConfigError, match=r"gate.yaml:1: server.port cannot be 99999"):
        loaded(tmp_path, "server: {host: '0.0.0.0', tokens: tokens.json, port: 99999}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file, a folder, a huge file and bytes that are no text are one sentence each."""
    missing, folder, huge, binary = (tmp_path / name for name in ("missing", "folder", "huge", "binary"))
    folder.mkdir()
    huge.write_bytes(b"#" * 1_048_577)
    binary.write_bytes(b"a: 1\nb: \xff\n")
    for path, reason in [
        (missing, "cannot be read: No such file or directory"),
        (folder, "cannot be read: Is a directory"),
        (huge, "is larger than 1048576 bytes; this cannot be a configuration"),
    ]:
        with pytest.raises(ConfigError, match=re.escape(f"{path}: {reason}")):
            load(path)
    with pytest.raises(ConfigError, match=re.escape(f"{binary}:2: is not UTF-8 text")):
        load(binary)


@given(st.text(max_size=200))
def test_no_text_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever stands in the file, reading it succeeds or raises ConfigError."""
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "replace"))
    with contextlib.suppress(ConfigError):
        load(path)


@given(st.dictionaries(st.sampled_from([key.name for key in KEYS]), st.integers(-5, 10**9) | st.text(max_size=8)))
def test_no_value_raises_anything_else(values: dict[str, int | str]) -> None:
    """Whatever a known key is given, it is used or refused, never anything else."""
    more = [Given(name, value, "here") for name, value in values.items()]
    with contextlib.suppress(ConfigError):
        load(None, {}, more)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"), ("on", "on"), ("yes", "yes"), ("No", "No"), ("true", True), ("false", False), ("", None),
        ("~", None), ("null", None), ("7", 7), ("-7", -7), ("60_000", 60_000), ("010", 10), ("1:30", "1:30"),
        ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("0x10", "0x10"), (".inf", ".inf"), ("2026-01-01", "2026-01-01"),
    ],
)  # fmt: skip
def test_scalars_are_decimal_numbers_or_words(text: str, value: object) -> None:
    """No octal, no base sixty, no dates, and on/off stay words."""
    read = read_scalar(text)
    assert (read, type(read)) == (value, type(value))


# --- the table


def test_every_option_has_exactly_one_key() -> None:
    """Every field of every options class can be set, by one key; and every key belongs to a part of the settings."""
    options = {(part, item.name) for part in PARTS.values() for item in fields(part)}
    keys = [(key.part, key.option) for key in KEYS]
    assert len(set(keys)) == len(keys) == len({key.name for key in KEYS})
    assert set(keys) == options


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_is_described_and_its_default_loads(key: Key) -> None:
    """I7: each key has a meaning, says what too high and too low do, and its shown default sets the default."""
    assert key.meaning
    assert bool(key.too_high) == bool(key.too_low) == (key.kind != "text" and key.name != "server.port")
    shown = "off" if key.default is None else read_scalar(str(key.default))
    assert load(None, {}, [Given(key.name, shown, "default")]).settings == Settings()


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_switch_knows_exactly_its_modes(name: str) -> None:
    """I2: each mechanism accepts its own modes and refuses the others; what is built is enforced by default."""
    for mode in ("off", "observe", "enforce"):
        item = Given(f"mechanisms.{name}", mode, "here")
        if mode in MECHANISMS[name].modes:
            assert load(None, {}, [item]).settings.mechanisms[name] == mode
        else:
            with pytest.raises(ConfigError):
                load(None, {}, [item])
    assert Settings().mechanisms[name] == ("enforce" if MECHANISMS[name].built else "off")


def test_what_can_never_be_right_is_refused(tmp_path: Path) -> None:
    """I7: a smallest above a largest is no oddity but an error, which names both and where they stand."""
    text = refusal(tmp_path, "dynamic_timeout:\n  min_ms: 5000\n  max_ms: 4000\n")
    assert "dynamic_timeout.min_ms (gate.yaml:2), dynamic_timeout.max_ms (gate.yaml:3)" in text
