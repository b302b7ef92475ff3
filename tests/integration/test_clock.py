"""The real clock and real chance."""

from __future__ import annotations

import asyncio
import time

import pytest

from agentgate.adapters.clock import SystemChance, SystemClock


def test_now_is_the_time_of_the_loop() -> None:
    """A timer of the loop and a deadline of the gate mean the same instant."""

    async def main() -> None:
        assert SystemClock().now() == pytest.approx(asyncio.get_running_loop().time(), abs=0.05)

    asyncio.run(main())


def test_wall_follows_no_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    """R: the wall clock is read once; setting it while the gate runs moves no record."""
    clock = SystemClock()
    assert clock.wall() == pytest.approx(time.time(), abs=0.05)
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real + 86_400)
    assert clock.wall() == pytest.approx(real, abs=0.5)
    assert clock.wall() <= clock.wall()


def test_chance_is_chance() -> None:
    """Draws are in [0, 1), tokens are hexadecimal and of the length asked for, and neither repeats."""
    chance = SystemChance()
    draws = [chance.draw() for _ in range(100)]
    assert all(0.0 <= draw < 1.0 for draw in draws)
    assert len(set(draws)) == 100
    tokens = {chance.token_hex(16) for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(bytes.fromhex(token)) == 16 for token in tokens)
