"""The directory's alarms on the event loop that the gate really runs on."""

from __future__ import annotations

import asyncio

import uvloop

from agentgate.directory.alarms import Alarms


def test_alarms_that_are_due_now_ring_on_uvloop() -> None:
    """Uvloop has another kind of handle for a time that is now; setting more alarms while it waits rings both."""

    async def ring_twice() -> list[str]:
        loop = asyncio.get_running_loop()
        rung: list[str] = []
        all_rung = asyncio.Event()

        def ring() -> None:
            rung.extend(alarms.due(loop.time()))
            if len(rung) == 2:
                all_rung.set()

        alarms = Alarms[str](ring)
        alarms.start(loop)
        alarms.set("now", loop.time())
        alarms.set("soon", loop.time() + 0.001)
        alarms.set("soon", loop.time())
        async with asyncio.timeout(5):
            await all_rung.wait()
        alarms.stop()
        return rung

    assert sorted(uvloop.run(ring_twice())) == ["now", "soon"]
