"""The file of tokens: read by the gate whenever it changes, written by `agentgate token`.

Only hashes are in it, and still nobody but its owner may read it: names, tenants and scopes are a map of who may do
what. It is replaced as a whole, under a lock of the operating system, so that a reader finds the old list or the new
one, and of two commands at the same time neither loses what the other has written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from agentgate.core.tokens import Token, Tokens
from agentgate.errors import ConfigError

FILE_BYTES_MAX: Final = 16_777_216  # the largest list is a third of it
MODE: Final = 0o600
OTHERS: Final = 0o077  # the permissions of everybody but the owner


class _Listed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds."""

    version: Literal[1] = 1
    tokens: tuple[Token, ...] = ()


class Mark(NamedTuple):
    """By what one sees that a file is another one than before."""

    inode: int
    modified_ns: int
    size: int
    mode: int


_decode: Final = msgspec.json.Decoder(_Listed).decode


class TokenFile:
    """The file as the gate follows it; `mark` is of what was read last, None of a file that could not be."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: Mark | None = None

    def read(self) -> Tokens:
        """The tokens; raises `ConfigError` with what to type for a file that cannot be used."""
        self._mark = self._look()
        return Tokens(read(self._path))

    def read_if_changed(self) -> Tokens | None:
        """The tokens if the file has changed since it was looked at last; raises as `read`, once a change."""
        return None if self._look() == self._mark else self.read()

    def _look(self) -> Mark | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return Mark(found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)


def read(path: Path) -> tuple[Token, ...]:
    """Every token of the file; raises `ConfigError` when it cannot be used, and says what to type."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file of tokens; {_how_to_begin(path)}") from None
    except OSError as error:
        raise ConfigError(f"{path}: the tokens cannot be read: {os.strerror(error.errno or 0)}") from None
    try:
        _check(path, os.fstat(file))
        with os.fdopen(file, "rb", closefd=False) as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
    finally:
        os.close(file)
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: is larger than {FILE_BYTES_MAX} bytes; this cannot be a file of tokens")
    try:
        tokens = _decode(data).tokens
        Tokens(tokens)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: is no file of tokens: {error}; {_how_to_begin(path)}") from None
    return tokens


def change(path: Path, how: Callable[[tuple[Token, ...]], tuple[Token, ...]]) -> None:
    """Replace the list of tokens; a file that is not there is made. Raises `ConfigError`, or what `how` raises."""
    path = Path(os.path.realpath(path))  # a link stays a link
    try:
        with _locked(path):
            tokens = how(read(path) if path.exists() else ())
            Tokens(tokens)
            _replace(path, msgspec.json.format(msgspec.json.encode(_Listed(tokens=tokens))) + b"\n")
    except OSError as error:
        raise ConfigError(f"{path}: the tokens cannot be written: {os.strerror(error.errno or 0)}") from None


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path}: is no file")
    if found.st_mode & OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigError(f"{path}: others than its owner may open it (mode {mode:04o}); type: chmod 600 {path}")


def _how_to_begin(path: Path) -> str:
    return f"`agentgate token create NAME --scope submit --file {path}` makes one"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time. The file of the lock stays: removing it would let two processes lock two files."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever holds it is writing a small file, or dead
        yield
    finally:
        os.close(lock)


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # of a command that was killed
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
