"""Where an object lives makes no difference to its answers and errors."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from agentgate.errors import StoreBadInput, StoreBroke
from agentgate.model import KeyId
from agentgate.runtime.hosted import Host, Request
from agentgate.runtime.runner import InlineRunner
from agentgate.runtime.signature import ENCODER, answer_decoder


class Thing:
    """What is hosted: it counts, and fails as it is told."""

    def __init__(self, start: int, key: KeyId) -> None:
        self.count = start
        self.key = key

    def add(self, more: int, keys: list[KeyId]) -> tuple[int, list[KeyId]]:
        self.count += more
        return self.count, [self.key, *keys]

    def refuse(self, text: str) -> None:
        raise StoreBadInput(text)

    def break_down(self) -> None:
        raise LookupError("a defect")

    def total(self) -> int:
        return self.count


KEY = KeyId("default", "stock", "order", "reserve", "A-1", "run")


def test_an_object_lives_from_start_to_close() -> None:
    """Before `start` and after `close` there is nobody to ask; in between answers and errors come as they are."""
    runner = InlineRunner()

    async def main() -> None:
        for _ in range(2):
            seen = [runner.alive]
            with pytest.raises(StoreBroke, match="closed"):
                await runner.run(Thing.total)
            await runner.start(Thing, 40, KEY)
            seen.append(runner.alive)
            assert await runner.run(Thing.add, 2, [KEY]) == (42, [KEY, KEY])
            with pytest.raises(StoreBadInput, match="no"):
                await runner.run(Thing.refuse, "no")
            with pytest.raises(LookupError):
                await runner.run(Thing.break_down)
            await runner.close()
            await runner.close()
            assert [*seen, runner.alive] == [False, True, False]

    asyncio.run(main())


def asked(host: Host, name: str, *arguments: Any) -> tuple[str, str]:
    """The error of a request and its text; empty when there is none."""
    reply = host.answer(Request(name, msgspec.Raw(ENCODER.encode(arguments))))
    return reply.error, reply.text


def test_a_host_answers_whatever_happens() -> None:
    """In its own process the object's errors, its defects and requests that make no sense are answers; it serves on."""
    host = Host()
    assert asked(host, "total") == ("defect", "AttributeError: type object 'NoneType' has no attribute 'total'")
    assert asked(host, f"{__name__}:Nothing")[0] == "defect"
    assert asked(host, f"{__name__}:Thing", 40, KEY) == ("", "")
    assert asked(host, "refuse", "no") == ("StoreBadInput", "no")
    assert asked(host, "break_down") == ("defect", "LookupError: a defect")
    assert asked(host, "add", "not a number", [])[0] == "defect"
    reply = host.answer(Request("add", msgspec.Raw(ENCODER.encode((2, [KEY])))))
    assert answer_decoder(Thing.add).decode(reply.answer) == (42, [KEY, KEY])
