"""The file of tokens: who may read it, how it is replaced, and what the gate does when it changes or breaks."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from agentgate.core.tokens import Token, hashed
from agentgate.errors import ConfigError
from agentgate.model import NOBODY, SUBMIT, Identity, Problem
from agentgate.server import doorkeeper
from agentgate.server.doorkeeper import Doorkeeper
from agentgate.server.logs import configure_logs
from agentgate.server.options import ServerOptions
from agentgate.server.token_file import TokenFile, change, read
from tests.integration.real_gate import make_token
from tests.integration.realtime import realtime

HOST = ["localhost"]


def token_of(number: int) -> Token:
    return Token(id=f"{number:012x}", name="shop", scopes=(SUBMIT,), sha256=hashed(str(number)), created_at=0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def test_a_new_file_is_for_its_owner_alone(file: Path) -> None:
    """I6: the file and its lock are made with mode 0600, whatever the umask, and hold hashes only."""
    before = os.umask(0)
    try:
        token = make_token(file, "shop", SUBMIT)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (file, Path(f"{file}.lock"))] == [0o600, 0o600]
    assert token.rpartition("_")[2] not in file.read_text()
    assert [known.name for known in read(file)] == ["shop"]
    assert sorted(path.name for path in file.parent.iterdir()) == ["tokens.json", "tokens.json.lock"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o610])
def test_a_file_that_others_may_open_is_refused(file: Path, mode: int) -> None:
    """I6: readable or writable by a group or by anybody: nothing goes on, and it says what to type."""
    change(file, lambda _: (token_of(1),))
    file.chmod(mode)
    for use in (lambda: read(file), lambda: change(file, lambda tokens: tokens)):
        with pytest.raises(ConfigError, match=rf"\(mode {mode:04o}\); type: chmod 600 "):
            use()


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"", "is no file of tokens: "),
        (b"\xff", "is no file of tokens: "),
        (b"[]", "is no file of tokens: "),
        (b"[" * 100_000, "is no file of tokens: "),
        (b'{"version": 2}', "is no file of tokens: "),
        (b'{"tokens": [{"id": "x"}]}', "is no file of tokens: "),
        (b'{"tokens": [], "more": 1}', "is no file of tokens: "),
        (
            b'{"tokens": [{"id":"agt_0","name":"a","scopes":["submit"],"sha256":"b","created_at":1}]}',
            "of 'a' has an id",
        ),
        (b" " * 17_000_000, "is larger than"),
    ],
)
def test_a_file_that_is_none_is_refused(file: Path, content: bytes, finding: str) -> None:
    """I6, I7: whatever is in the file, the sentence says what is wrong and shows nothing of it."""
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError) as refused:
        read(file)
    assert finding in str(refused.value)
    assert len(str(refused.value)) < 400


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """I7: a missing file, a folder or a pipe ends with a sentence, and never waits for a writer."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, finding in (
        ("none", "`agentgate token create NAME --scope submit --file"),
        (".", "is no file"),
        ("pipe", "is no file"),
    ):
        with pytest.raises(ConfigError, match=finding):
            read(tmp_path / name)
    with pytest.raises(ConfigError, match="the tokens cannot be written: No such file or directory"):
        change(tmp_path / "nowhere" / "tokens.json", lambda tokens: tokens)


def test_a_change_that_fails_changes_nothing(file: Path) -> None:
    """A7 of files: a list that cannot be, or a command that dies before the end, leaves the old file as it was."""
    change(file, lambda _: (token_of(1),))
    kept = file.read_bytes()
    with pytest.raises(ValueError, match="is there twice"):
        change(file, lambda tokens: (*tokens, token_of(1)))
    file.with_name("tokens.json.new").write_text("half of a li")  # of a command that was killed
    assert file.read_bytes() == kept
    change(file, lambda tokens: (*tokens, token_of(2)))
    assert len(read(file)) == 2


def test_a_link_to_the_file_stays_one(file: Path, tmp_path: Path) -> None:
    """Where the file is a symbolic link, what it points to is replaced."""
    change(file, lambda _: (token_of(1),))
    link = tmp_path / "link.json"
    link.symlink_to(file)
    change(link, lambda tokens: (*tokens, token_of(2)))
    assert link.is_symlink()
    assert len(read(file)) == 2


WRITER = """
import sys
from pathlib import Path
from agentgate.core.tokens import Token, hashed
from agentgate.server.token_file import change
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 10):
    token = Token(id=f"{number:012x}", name="shop", scopes=("submit",), sha256=hashed(""), created_at=0.0)
    change(Path(sys.argv[1]), lambda tokens: (*tokens, token))
"""


def test_commands_at_the_same_time_lose_nothing(file: Path) -> None:
    """I6: four processes that add ten tokens each leave forty, and a reader meanwhile finds a whole list each time."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(file), str(number * 100)]) for number in range(4)]
    while any(writer.poll() is None for writer in writers):
        if file.exists():
            read(file)
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len(read(file)) == 40


def test_a_file_is_read_when_it_changes(file: Path) -> None:
    """I6: once a change, be it a good one or a bad one."""
    change(file, lambda _: (token_of(1),))
    followed = TokenFile(file)
    assert len(followed.read()) == 1
    assert followed.read_if_changed() is None
    change(file, lambda tokens: (*tokens, token_of(2)))
    found = followed.read_if_changed()
    assert found is not None
    assert len(found) == 2
    for breaking in (lambda: file.write_text("{"), lambda: file.chmod(0o644), file.unlink):
        breaking()
        with pytest.raises(ConfigError):
            followed.read_if_changed()
        assert followed.read_if_changed() is None


# --- the doorkeeper


def contents(file: Path, new: bytes | None = None) -> bytes:
    """What is in the file; in place, as an editor would write it."""
    if new is not None:
        file.write_bytes(new)
    return file.read_bytes()


class Door:
    """A doorkeeper on a clock of the test's, and what it was told to tell."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doorkeeper, "LOOK_S", 0.01)
        self.now = 0.0
        self.changes = 0
        self.keeper = Doorkeeper(ServerOptions(tokens=str(file)), lambda: self.now)
        self.keeper.on_change = self._changed

    def _changed(self) -> None:
        self.changes += 1

    def admit(self, token: str) -> Identity | Problem:
        return self.keeper.admit(HOST, [], [f"Bearer {token}"])

    async def until(self, happened: Callable[[], bool]) -> None:
        for _ in range(1_000):
            if happened():
                return
            await asyncio.sleep(0.01)
        pytest.fail("it did not happen within ten seconds")


@realtime
async def test_the_gate_follows_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: a new token is good, a revoked one is not, without a restart; those who came in with it are told of."""
    first = make_token(file, "shop", SUBMIT)
    door = Door(file, monkeypatch)
    door.keeper.open()
    identity = door.admit(first)
    assert isinstance(identity, Identity)
    second = make_token(file, "desk", SUBMIT, tenant="blue")
    await door.until(lambda: isinstance(door.admit(second), Identity))
    assert (door.changes, door.keeper.stands(identity)) == (1, True)
    change(file, lambda tokens: tuple(token for token in tokens if token.name == "desk"))
    await door.until(lambda: isinstance(door.admit(first), Problem))
    assert (door.changes, door.keeper.stands(identity)) == (2, False)
    door.keeper.close()


@realtime
async def test_a_broken_file_changes_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: while the file cannot be read the last good tokens stay, the log says so once, and a good file heals it."""
    token = make_token(file, "shop", SUBMIT)
    door = Door(file, monkeypatch)
    with capture_logs() as logs:
        door.keeper.open()
        kept = contents(file)
        contents(file, b'{"tokens": [')
        await door.until(lambda: len(logs) > 0)
        await asyncio.sleep(0.1)
        assert [(line["event"], line["log_level"]) for line in logs] == [("tokens_not_read", "error")]
        assert "is no file of tokens" in logs[0]["reason"]
        assert isinstance(door.admit(token), Identity)
        assert door.changes == 0
        contents(file, kept)
        await door.until(lambda: door.changes == 1)
        assert isinstance(door.admit(token), Identity)
    door.keeper.close()


@realtime
async def test_time_ends_tokens(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: at the moment a token expires it is none, and those who came in with it are told of, once."""
    token = make_token(file, "shop", SUBMIT, expires_at=100.0)
    door = Door(file, monkeypatch)
    door.keeper.open()
    identity = door.admit(token)
    assert isinstance(identity, Identity)
    await asyncio.sleep(0.1)
    assert door.changes == 0
    door.now = 100.0
    assert isinstance(door.admit(token), Problem)
    await door.until(lambda: door.changes == 1)
    await asyncio.sleep(0.1)
    assert (door.changes, door.keeper.stands(identity)) == (1, False)
    door.keeper.close()


@realtime
async def test_without_any_token_the_gate_starts_and_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: an empty list lets nobody in; a gate that cannot read its tokens does not start."""
    change(file, lambda _: ())
    door = Door(file, monkeypatch)
    with capture_logs() as logs:
        door.keeper.open()
    assert [line["event"] for line in logs] == ["no_tokens"]
    assert door.keeper.admit(HOST, [], []) == door.keeper.admit(HOST, [], [])
    assert door.keeper.admit(HOST, [], [], is_public=True) == NOBODY
    door.keeper.close()
    contents(file, b"{")
    with pytest.raises(ConfigError, match="is no file of tokens"):
        Door(file, monkeypatch).keeper.open()


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        ([], "there is no token: send `Authorization: Bearer TOKEN`"),
        (["Bearer a", "Bearer b"], "there is more than one token"),
        (["Basic c2VjcmV0"], "this is no token"),
        (["agt_secret"], "this is no token"),
        (["Bearer agt_secret"], "this token is unknown, revoked or expired"),
        (["Bearer "], "this token is unknown, revoked or expired"),
    ],
)
def test_a_refusal_says_what_to_do_and_shows_nothing(file: Path, shown: list[str], sentence: str) -> None:
    """I6: what is wrong with the header, never what was in it."""
    refused = Doorkeeper(ServerOptions(tokens=str(file)), lambda: 0.0).admit(HOST, [], shown)
    assert isinstance(refused, Problem)
    assert refused.code == "unauthorized"
    assert sentence in refused.detail
    assert "secret" not in refused.detail


def test_the_scheme_is_read_as_the_standard_says(file: Path) -> None:
    """RFC 9110: the scheme's case does not matter, and there may be several spaces."""
    token = make_token(file, "shop", SUBMIT)
    keeper = Doorkeeper(ServerOptions(tokens=str(file)), lambda: 0.0)
    keeper._take(TokenFile(file).read())  # noqa: SLF001 - without a loop that follows the file
    for shown in (f"bearer {token}", f"BEARER   {token}", f"Bearer {token} "):
        assert isinstance(keeper.admit(HOST, [], [shown]), Identity)


def test_a_log_in_colours_shows_no_variables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: a trace in the log has the places, not what was in the variables there."""
    for as_json in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        configure_logs("info", as_json=as_json)
        secret = "agt_" + "5" * 76
        try:
            json.loads(secret)
        except ValueError:
            structlog.get_logger().exception("failed")
            logging.getLogger("other").exception("failed")
        written = capsys.readouterr().err
        assert "JSONDecodeError" in written
        assert secret not in written
