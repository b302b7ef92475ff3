"""An agent as a process, over a real socket: connecting, threads, blocked loops, signals, exit codes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agentgate.model import Outcome
from tests.integration.realtime import realtime
from tests.integration.sdk_gate import ScriptedGate
from tests.integration.sdk_sockets import listening, running

AGENT = """
import asyncio, os, sys, threading, time
from agentgate import Agent, CallFailed, Context, SyncContext

agent = Agent("worker", concurrency=2)

@agent.handles("echo")
async def echo(payload, ctx: Context):
    ctx.progress("begun")
    return payload

@agent.handles("block")
async def block(seconds: float) -> str:
    time.sleep(seconds)
    return "blocked"

@agent.handles("slow")
async def slow(seconds: float, ctx: Context) -> str:
    ctx.progress("begun")
    await asyncio.sleep(seconds)
    return "slept"

@agent.handles("threads", effect="read")
def threads(seconds: float, ctx: SyncContext) -> str:
    ctx.progress("begun")
    time.sleep(seconds)
    return threading.current_thread().name

@agent.handles("hang")
def hang(payload, ctx: SyncContext) -> None:
    ctx.progress("begun")
    threading.Event().wait()

@agent.handles("ask")
def ask(payload, ctx: SyncContext):
    ctx.progress("asking")
    try:
        answer = ctx.call("other", "t", "k", payload)
    except CallFailed as error:
        return error.code
    ctx.progress("answered")
    return answer

@agent.handles("quit")
def quit(payload):
    raise {"system": SystemExit(3), "keyboard": KeyboardInterrupt()}[payload]

@agent.handles("fork")
async def fork(payload, ctx: Context) -> str:
    return await ask_in_child(ctx)

@agent.handles("fork_sync")
def fork_sync(payload, ctx: SyncContext) -> str:
    return asyncio.run(ask_in_child(ctx))

async def ask_in_child(ctx):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            called = ctx.call("other", "t", "k")
            await called if asyncio.iscoroutine(called) else called
            os.write(writer, b"no error")
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.wait()
    return os.read(reader, 1000).decode()

if __name__ == "__main__":
    agent.run(grace_s=float(os.environ.get("GRACE", "30")))
"""


@realtime
async def test_an_agent_connects_works_and_stops(tmp_path: Path) -> None:
    """EXPERIENCE: `agent.run()` says that it is connected; SIGTERM says good-bye and exits 0."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url, HTTP_PROXY="http://127.0.0.1:9") as agent:
        hello = await gate.hello()
        assert hello["pid"] > 0
        line = await agent.says("connected")
        assert f"worker: connected to {url}, handles echo, block" in line
        gate.invoke("u1", "echo", {"a": "ü"})
        await gate.expect("progress")
        assert (await gate.answer("u1")).value == {"a": "ü"}
        gate.ack(1)
        agent.signal(signal.SIGTERM)
        await gate.expect("drain")
        assert await agent.ends() == 0
        assert "worker: stopping (SIGTERM)" in agent.text


@realtime
async def test_no_gate_is_said_in_one_line_with_what_to_type(tmp_path: Path) -> None:
    """Newcomers never meet a hang without a word: one line, said once; Ctrl-C ends at once."""
    async with running(tmp_path, AGENT, "http://127.0.0.1:9") as agent:
        line = await agent.says("worker: no gate answers at http://127.0.0.1:9")
        assert "`agentgate serve`" in line
        assert "AGENTGATE_URL" in line
        agent.signal(signal.SIGINT)
        assert await agent.ends() == 0
        assert agent.text.count("no gate answers") == 1


@realtime
async def test_something_else_than_a_gate_is_said_too(tmp_path: Path) -> None:
    """A port that answers, but not as a gate, is named as such."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, f"{url}/elsewhere") as agent:
        await agent.says("is no gate, or refuses")


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1:1"])
def test_a_wrong_address_is_a_sentence_and_exit_78(tmp_path: Path, url: str) -> None:
    """A user's mistake is no traceback."""

    @realtime
    async def play() -> None:
        async with running(tmp_path, AGENT, url) as agent:
            assert await agent.ends() == 78
            assert agent.text.startswith("the gate's address is like http://127.0.0.1:7070, not")
            assert "Traceback" not in agent.text

    play()


@realtime
async def test_a_token_that_is_none_is_a_sentence_and_exit_78(tmp_path: Path) -> None:
    """I6: a token with a line break in it is not sent, and neither it nor a traceback is shown."""
    async with running(tmp_path, AGENT, "http://127.0.0.1:9", AGENTGATE_TOKEN="agt_secret\nX-More: 1") as agent:
        assert await agent.ends() == 78
        assert agent.text.startswith("AGENTGATE_TOKEN holds characters that no token has")
        assert "secret" not in agent.text
        assert "Traceback" not in agent.text


@realtime
async def test_a_final_refusal_is_a_sentence_and_exit_78(tmp_path: Path) -> None:
    """A gate that will never take this agent is not asked for ever."""
    gate = ScriptedGate()
    gate.refusal = {"code": -32602, "message": "tier core is not allowed here", "data": {"code": "forbidden"}}
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        assert await agent.ends() == 78
        assert "refuses this agent: tier core is not allowed here" in agent.text
        assert "Traceback" not in agent.text


@realtime
async def test_a_restart_asked_by_the_gate_is_exit_75(tmp_path: Path) -> None:
    """DESIGN 4.1: what is in hand is finished, then the process asks its supervisor to start it again."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        await gate.hello()
        gate.invoke("u1", "slow", 0.3)
        await gate.expect("progress")
        gate.drain(restart=True)
        await gate.expect("drain")
        assert (await gate.answer("u1")).value == "slept"
        gate.ack(1)
        assert await agent.ends() == 75


@realtime
async def test_what_is_in_hand_is_finished_before_leaving(tmp_path: Path) -> None:
    """F87: SIGTERM with work in hand: it finishes, is acknowledged, and only then the process ends."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        await gate.hello()
        gate.invoke("u1", "slow", 0.5)
        gate.invoke("u2", "threads", 0.5, key="", effect="read")
        for _ in range(2):
            await gate.expect("progress")
        agent.signal(signal.SIGTERM)
        await gate.expect("drain")
        ended = {(await gate._next())["id"] for _ in range(2)}  # noqa: SLF001 - in either order
        assert ended == {"u1", "u2"}
        gate.ack(1)
        assert await agent.ends() == 0
        assert "finishing 2 in hand" in agent.text


@realtime
async def test_what_does_not_finish_is_named_and_exit_1(tmp_path: Path) -> None:
    """The grace is bounded, even for a thread that nobody can stop, and nothing false is answered."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url, GRACE="0.3") as agent:
        await gate.hello()
        gate.invoke("u1", "hang")
        gate.invoke("u2", "slow", 60)
        for _ in range(2):
            await gate.expect("progress")
        agent.signal(signal.SIGTERM)
        await gate.expect("drain")
        assert await agent.ends() == 1
        assert "leaves unfinished: slow u2, hang u1" in agent.text
        assert gate.silent()


@realtime
async def test_a_second_interrupt_leaves_at_once(tmp_path: Path) -> None:
    """Ctrl-C twice: the process goes now, and says what it left."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        await gate.hello()
        gate.invoke("u1", "hang")
        await gate.expect("progress")
        agent.signal(signal.SIGINT)
        await agent.says("stopping (SIGINT)")
        agent.signal(signal.SIGINT)
        assert await agent.ends() == 130
        assert "leaves at once (SIGINT); unfinished: hang u1" in agent.text


@realtime
async def test_a_blocked_event_loop_does_not_look_dead(tmp_path: Path) -> None:
    """F82, 4.5: the handlers' loop is blocked for longer than the silence; beats go on and tell of the lag."""
    gate = ScriptedGate(beat_ms=100, silent_ms=600)
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        await gate.hello()
        await agent.says("connected")
        gate.invoke("u1", "block", 1.5)
        assert (await gate.answer("u1")).value == "blocked"
        assert len(gate.wires) == 1
        assert max(beat["lag_ms"] for beat in gate.beats) > 700
        assert max(beat["units"] for beat in gate.beats if "units" in beat) == 1


@realtime
async def test_a_probe_is_answered_while_the_handlers_are_blocked(tmp_path: Path) -> None:
    """D7: by the link's thread: what runs, what has not begun, what is not here, and how far the loop is behind."""
    gate = ScriptedGate(beat_ms=100, silent_ms=5_000)
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        await gate.hello()
        await agent.says("connected")
        gate.invoke("u1", "hang")
        await gate.expect("progress")
        gate.invoke("u2", "block", 1.5)
        await gate.lag(300)
        gate.invoke("u3", "echo", 1)
        health = await gate.probe("u1", "u2", "u3", "u9")
        assert health.units == {"u1": "running", "u2": "running", "u3": "waiting", "u9": "unknown"}
        assert health.lag_ms > 300
        assert (await gate.answer("u2")).value == "blocked"
        await gate.expect("progress")
        assert (await gate.answer("u3")).value == 1
        assert (await gate.probe("u2", "u3")).units == {"u2": "unknown", "u3": "unknown"}


@realtime
async def test_handlers_in_threads_run_at_most_concurrency_at_once(tmp_path: Path) -> None:
    """B11: sync handlers share `concurrency` threads; the others wait for one."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url):
        await gate.hello()
        for number in range(5):
            gate.invoke(f"u{number}", "threads", 0.1, key="", effect="read")
        heard = [await gate._next() for _ in range(10)]  # noqa: SLF001 - notes and answers, in any order
        names = {frame["result"]["value"] for frame in heard if "result" in frame}
        assert sorted(names) == ["agentgate-handler-1", "agentgate-handler-2"]


@realtime
async def test_a_sync_handler_calls_and_notes_in_order(tmp_path: Path) -> None:
    """EXPERIENCE: SyncContext has the same names, blocking; its messages keep their order."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url):
        await gate.hello()
        gate.invoke("u1", "ask", {"n": 1}, token="tok")
        assert (await gate.expect("progress"))["params"]["note"] == "asking"
        call = await gate.call()
        assert call["params"]["token"] == "tok"
        gate.settle(call, Outcome(value=5))
        assert (await gate.expect("progress"))["params"]["note"] == "answered"
        assert (await gate.answer("u1")).value == 5


@realtime
async def test_a_stopped_sync_handler_is_interrupted_where_it_waits(tmp_path: Path) -> None:
    """F57: a thread cannot be cancelled, but the call it waits in can."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url):
        await gate.hello()
        gate.invoke("u1", "ask", {"n": 1})
        await gate.expect("progress")
        call = await gate.call()
        gate.stop("u1", "cancel")
        assert (await gate.expect("cancel"))["params"]["id"] == call["id"]
        assert (await gate.answer("u1")).value == "cancelled"


@realtime
async def test_exits_raised_by_handlers_end_no_silent_hang(tmp_path: Path) -> None:
    """SystemExit ends its unit, the agent lives on; KeyboardInterrupt ends its unit and lets the agent leave."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        await gate.hello()
        gate.invoke("u1", "quit", "system")
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert answer.error.detail == "SystemExit: 3"
        gate.invoke("u2", "quit", "keyboard")
        frames = [await gate._next() for _ in range(2)]  # noqa: SLF001 - the answer and the good-bye
        assert {frame.get("method", frame.get("id")) for frame in frames} == {"u2", "drain"}
        gate.ack(2)
        assert await agent.ends() == 0


@pytest.mark.parametrize("task_type", ["fork", "fork_sync"])
def test_a_forked_process_cannot_use_the_link(tmp_path: Path, task_type: str) -> None:
    """4.5: after a fork the child's link raises a sentence; nothing hangs and nothing is sent twice."""

    @realtime
    async def play() -> None:
        gate = ScriptedGate()
        async with listening(gate) as url, running(tmp_path, AGENT, url):
            await gate.hello()
            gate.invoke("u1", task_type)
            value = (await gate.answer("u1")).value
            assert value.startswith("LinkDown: this link belongs to process")
            assert "open a Gate" in value

    play()


@realtime
async def test_a_gate_that_restarts_finds_its_agent_again(tmp_path: Path) -> None:
    """4.5: the gate goes away and comes back on its port: the agent resumes with what it runs."""
    gate = ScriptedGate()
    async with listening(gate) as url, running(tmp_path, AGENT, url) as agent:
        await gate.hello()
        await agent.says("connected")
        gate.invoke("u1", "slow", 1.0)
        await gate.expect("progress")
        gate.wire.cut()
        await agent.says("lost the gate")
        hello = await gate.hello()
        assert [unit["unit"] for unit in hello["units"]] == ["u1"]
        await agent.says("connected again")
        assert (await gate.answer("u1")).value == "slept"
