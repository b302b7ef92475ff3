"""A signal, and a wait for one, as they are sent; checked here is only what would not survive the way to the gate."""

from __future__ import annotations

from typing import Any

from agentgate.model.link import SignalParams, WaitForParams
from agentgate.model.outcome import problem
from agentgate.sdk.calling import call_failed
from agentgate.sdk.payload import BYTES_MAX, ValueDefect, checked_json


def wait_for_params(name: str, *, about: str, from_agent: str, timeout: float | None, token: str) -> WaitForParams:
    """The wait as it is sent; raises `CallFailed` when it cannot be."""
    _check_names(name=name, about=about, from_agent=from_agent)
    timeout_ms = None if timeout is None else max(0, round(timeout * 1000))  # 0: only if it is there already
    return WaitForParams(name=name, about=about, from_agent=from_agent, timeout_ms=timeout_ms, token=token)


def signal_params(name: str, *, about: str, value: Any, to: str, token: str, bytes_max: int) -> SignalParams:
    """The signal as it is sent; raises `CallFailed` when it cannot be."""
    _check_names(name=name, about=about, to=to)
    try:
        raw = checked_json(value, bytes_max)
    except ValueDefect as defect:
        code, setting = (
            ("too_large", " (`signals.value_bytes_max`)") if defect.code == "too_large" else ("bad_request", "")
        )
        raise call_failed(problem(code, detail=f"the value of signal `{name}`: {defect}{setting}")) from defect
    return SignalParams(name=name, about=about, value=raw, to=to, token=token)


def _check_names(**names: str) -> None:
    for what, name in names.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} must be a string, not {name!r}")
    try:
        checked_json(names, BYTES_MAX)
    except ValueDefect as defect:
        raise call_failed(problem("bad_request", detail=f"signal {names['name']!r}: {defect}")) from defect
