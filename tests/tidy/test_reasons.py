"""A rule may be set aside, for a reason that is written there."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

from tests.tidy.checkout import ROOT, python_files, shown

REASON_WORDS_MIN = 2

# One code or several, then the reason in words.
SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore)(?P<codes>:\s*[A-Z0-9, ]+\b|\[[\w, -]+\])?(?P<rest>.*)")

# One entry of an ignore list in pyproject.toml, and the list's own brackets.
LISTED_CODE = re.compile(r'^\s+"[A-Z]+[0-9]*",')


def reason_is_missing(comment: str) -> bool:
    found = SUPPRESSION.search(comment)
    return found is not None and (not found["codes"] or len(re.findall(r"\w+", found["rest"])) < REASON_WORDS_MIN)


def comments_of(path: Path) -> list[tokenize.TokenInfo]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return [token for token in tokens if token.type == tokenize.COMMENT]


def test_every_suppression_in_code_has_its_reason() -> None:
    """A `noqa` or `type: ignore` names its code and says why, on the same line."""
    silent = [
        shown(path, comment.start[0])
        for path in python_files()
        for comment in comments_of(path)
        if reason_is_missing(comment.string)
    ]
    assert not silent, "\n".join(silent)


def test_every_rule_that_is_off_has_its_reason() -> None:
    """Each code in an ignore list of pyproject.toml is followed by a comment."""
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    silent = [line.strip() for line in lines if LISTED_CODE.match(line) and "  # " not in line and ", # " not in line]
    assert not silent, "\n".join(silent)
