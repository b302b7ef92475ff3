"""The public names are typed as people use them."""

from __future__ import annotations

from pathlib import Path

from mypy import api

SAMPLE = Path(__file__).with_name("api_uses.py")
ROOT = Path(__file__).parents[2]


def test_types_are_as_the_sample_says() -> None:
    """I4: calls, contexts, decorators and errors have the types a reader expects, and wrong options are errors."""
    out, err, code = api.run(["--config-file", str(ROOT / "pyproject.toml"), str(SAMPLE)])
    assert (code, err) == (0, ""), out
