"""The small parts of the SDK: outgoing messages, frames, reconnecting, threads, bridges, fakes."""

from __future__ import annotations

import asyncio
import itertools
import queue
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate import CallFailed, Context, Rejected, SyncContext, skill
from agentgate.core.backoff import BackoffOptions
from agentgate.errors import LinkDown, WireError
from agentgate.model import Outcome
from agentgate.model.link import AckParams, Answer, Frame
from agentgate.sdk import wire
from agentgate.sdk.bridge import Bridge, BridgedPort
from agentgate.sdk.greeting import Identity, not_connected
from agentgate.sdk.link import Link
from agentgate.sdk.outbox import Outbox
from agentgate.sdk.reconnect import Reconnect, ReconnectOptions
from agentgate.sdk.threads import HandlerThreads

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    messages=st.lists(st.tuples(st.sampled_from(["frame", "note"]), st.sampled_from("ab"), st.integers(1, 40))),
    bytes_max=st.integers(1, 100),
)
def test_messages_leave_in_order_once_and_bounded(messages: list[tuple[str, str, int]], bytes_max: int) -> None:
    """Every message leaves exactly once and in order; a unit has one note waiting, the latest, in the first's place."""
    outbox = Outbox(bytes_max)
    expected: list[str] = []
    for number, (kind, unit, size) in enumerate(messages):
        message = f"{kind}{unit}{number}{'x' * size}"
        data = msgspec.json.encode(message)
        if kind == "frame":
            outbox.put(data)
            expected.append(message)
        else:
            outbox.put_note(unit, data)
            places = [place for place, other in enumerate(expected) if other.startswith(f"note{unit}")]
            if places:
                expected[places[0]] = message
            else:
                expected.append(message)
    left: list[str] = []
    while outbox:
        data = outbox.take()
        batch = msgspec.json.decode(data)
        assert len(data) <= bytes_max + 2 or not isinstance(batch, list)
        left.extend(batch if isinstance(batch, list) else [batch])
    assert left == expected


def test_a_cleared_outbox_is_empty() -> None:
    """With the connection goes what was meant for it."""
    outbox = Outbox(100)
    outbox.put(b"1")
    outbox.clear()
    assert not outbox


@given(request_id=st.text(), value=JSON)
def test_what_is_written_can_be_read(request_id: str, value: Any) -> None:
    """Requests, notifications, responses and errors are JSON-RPC 2.0, alone and as a batch."""
    messages = [
        wire.request(request_id, "m", Answer(value=value)),
        wire.notification("m", AckParams(seq=3)),
        wire.response(request_id, Answer(value=value)),
        wire.breach(request_id, -32600, "no"),
    ]
    for message in messages:
        assert msgspec.json.decode(message)["jsonrpc"] == "2.0"
    request, notification, response, breach = wire.read(wire.batch(messages))
    assert (request.id, request.method) == (request_id, "m")
    assert wire.body(request.params, Answer).value == value
    assert wire.body(notification.params, AckParams).seq == 3
    assert (response.id, response.method) == (request_id, None)
    assert wire.body(response.result, Answer).value == value
    assert breach.error is not None
    assert breach.error.code == -32600
    assert wire.read(messages[0]) == [request]


@given(data=st.binary() | st.text())
def test_noise_is_a_wire_error(data: bytes | str) -> None:
    """Bytes that are no message raise `WireError` and nothing else."""
    try:
        frames = wire.read(data)
    except WireError:
        return
    assert all(isinstance(frame, Frame) for frame in frames)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"params":' * 100_000])
def test_deep_noise_is_a_wire_error(data: bytes) -> None:
    """Nesting that would exhaust the stack is an error like any other."""
    with pytest.raises(WireError):
        wire.read(data)
    with pytest.raises(WireError):
        wire.body(msgspec.Raw(data), Answer)


@given(draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=10, max_size=10))
def test_rounds_of_five_tries_with_peace_between(draws: list[float]) -> None:
    """A5: 200 ms x 2^n + 0-200 ms four times, then the breaker is open for 2-4 s before each further try."""
    chance = itertools.cycle(draws)
    reconnect = Reconnect(ReconnectOptions(), lambda: next(chance))
    now, waits = 5.0, []
    for _ in range(10):
        waits.append(reconnect.after_failure_s(now))
        now += waits[-1]
    for base_s, wait_s in zip([0.2, 0.4, 0.8, 1.6], waits[:4], strict=True):
        assert base_s <= wait_s <= base_s + 0.2
    assert all(2 <= wait_s <= 4.01 for wait_s in waits[4:])


def test_reconnecting_starts_afresh_after_success() -> None:
    """What failed before a link that worked is forgotten; 0 is a value, not a missing one (F48)."""
    for failures in (3, 7):
        reconnect, now = Reconnect(ReconnectOptions(), lambda: 0.0), 0.0
        for _ in range(failures):
            now += reconnect.after_failure_s(now)
        reconnect.worked(now)
        assert [reconnect.after_failure_s(now) for _ in range(4)] == [0.2, 0.4, 0.8, 1.6]
        assert reconnect.after_loss_s() == 0.0
    at_once = ReconnectOptions(round=BackoffOptions(base_s=0, jitter_s=0), spread_s=0)
    eager = Reconnect(at_once, random.Random(1).random)
    assert [eager.after_loss_s(), eager.after_failure_s(0.0), eager.after_failure_s(0.0)] == [0, 0, 0]


def test_a_gate_that_names_a_time_is_there() -> None:
    """A5: the named time wins, however often, and opens no breaker; a random part keeps many from coming in step."""
    reconnect = Reconnect(ReconnectOptions(), random.Random(1).random)
    waits = [reconnect.after_failure_s(0.0, 7) for _ in range(20)]
    assert all(7 <= wait_s <= 8 for wait_s in waits)
    assert len(set(waits)) == 20
    assert reconnect.after_failure_s(0.0) < 0.5


def test_waits_of_many_clients_differ() -> None:
    """F27: twenty clients with chance of their own wait twenty different times."""
    waits = {Reconnect(ReconnectOptions(), random.Random(seed).random).after_failure_s(0.0) for seed in range(20)}
    assert len(waits) == 20


def test_threads_are_bounded_and_reused() -> None:
    """B11: at most `size` jobs run at once, in order of submission; a job that raises harms nobody."""
    threads = HandlerThreads(2, waiting_max=10)
    gate = threading.Barrier(3)
    names: set[str] = set()

    def meet() -> None:
        names.add(threading.current_thread().name)
        gate.wait(5)

    first = [threads.submit(meet) for _ in range(2)]
    third = threads.submit(len, "abc")
    assert not third.done()
    gate.wait(5)
    assert [future.result(5) for future in first] == [None, None]
    assert third.result(5) == 3
    failed = threads.submit(int, "x")
    assert isinstance(failed.exception(5), ValueError)
    assert threads.submit(lambda: threading.current_thread().name).result(5) in names
    assert len(names) == 2
    threads.stop()


def test_waiting_jobs_are_bounded() -> None:
    """B14: a queue of jobs has an end."""
    threads = HandlerThreads(1, waiting_max=1)
    release = threading.Event()
    started = threading.Event()

    def begin() -> bool:
        started.set()
        return release.wait(5)

    running = threads.submit(begin)
    assert started.wait(5)
    threads.submit(len, "")
    threads.submit(len, "")
    with pytest.raises(queue.Full):
        threads.submit(len, "")
    release.set()
    assert running.result(5)


def test_a_bridge_keeps_the_order_of_many_threads() -> None:
    """4.5: what one thread posts is run in its order, all of it, and a call that fails stops nothing."""
    seen: list[tuple[int, int]] = []

    async def main() -> None:
        bridge = Bridge(asyncio.get_running_loop())
        done = asyncio.Event()

        def post(thread: int) -> None:
            for number in range(200):
                bridge.post(partial(seen.append, (thread, number)))
                if number == 100:
                    bridge.post(lambda: 1 / 0)

        workers = [threading.Thread(target=post, args=(thread,)) for thread in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            await asyncio.get_running_loop().run_in_executor(None, worker.join)
        bridge.post(done.set)
        await done.wait()

    asyncio.run(main())
    for thread in range(4):
        assert [number for owner, number in seen if owner == thread] == list(range(200))


def test_a_bridge_to_a_closed_loop_says_so() -> None:
    """A link that has ended raises a sentence in those who still use it."""
    loop = asyncio.new_event_loop()
    bridge = Bridge(loop)
    loop.close()
    with pytest.raises(LinkDown, match="has ended"):
        bridge.post(lambda: None)


def test_notes_that_cross_are_bounded_by_units() -> None:
    """B14: a handler that notes in a tight loop leaves one note, the latest, and its answer comes after it."""
    told: list[Any] = []

    class Recorder(Link):
        def progress(self, unit: str, note: str) -> None:
            told.append((unit, note))

        def answer(self, unit: str, answer: Answer) -> None:
            told.append((unit, answer.value))

    async def nowhere() -> Any:
        raise NotImplementedError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        port = BridgedPort(
            Recorder(nowhere, Identity(agent="a", instance="i"), draw=lambda: 0.5), Bridge(loop), loop.time
        )
        for number in range(1000):
            port.progress("u", str(number))
        port.answer("u", Answer(value="end"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert told == [("u", "999"), ("u", "end")]


def test_targets_by_skill() -> None:
    """EXPERIENCE: `skill("reserve")` is a target."""
    assert skill("reserve") == "skill:reserve"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "no gate answers at URL; start one"),
        (TimeoutError(), "no gate answers at URL; start one"),
        (OSError("refused"), "no gate answers at URL (refused); start one"),
    ],
)
def test_no_gate_is_one_sentence(error: Exception | None, text: str) -> None:
    """The sentence for newcomers names what is known."""
    assert not_connected("URL", error).startswith(text)


def run(handler: Callable[[Context], Any], context: Context) -> Any:
    return asyncio.run(handler(context))


def test_a_fake_context_answers_as_scripted() -> None:
    """EXPERIENCE: calls are recorded and answered by (target, type), by type, by a function, or with an error."""

    async def handler(ctx: Context) -> list[Any]:
        ctx.progress("begun")
        answers = [
            await ctx.call("stock", "reserve", "o1", {"n": 1}),
            await ctx.call("other", "reserve", "o1", {"n": 2}),
            await ctx.call("stock", "count", "o2", {"n": 3}, effect="read", returns=int),
        ]
        for task_type in ("refuse", "unheard"):
            try:
                await ctx.call("stock", task_type, "o3")
            except CallFailed as error:
                answers.append(error.code)
        return answers

    ctx = Context.fake(
        {
            ("stock", "reserve"): {"shelf": "a"},
            "reserve": {"shelf": "b"},
            "count": lambda call: call.payload["n"],
            "refuse": CallFailed(code="breaker_open", fault="refused", sent=False),
        },
        key="k",
        caller="shop",
        unit="u9",
        chain="a" * 32,
    )
    assert run(handler, ctx) == [{"shelf": "a"}, {"shelf": "b"}, 3, "breaker_open", "no_route"]
    assert [(call.target, call.task_type, call.business_key) for call in ctx.calls][:2] == [
        ("stock", "reserve", "o1"),
        ("other", "reserve", "o1"),
    ]
    assert ctx.notes == ["begun"]
    assert (ctx.key, ctx.caller, ctx.unit, ctx.chain) == ("k", "shop", "u9", "a" * 32)


def test_a_fake_context_has_a_clock_of_its_own() -> None:
    """Deadlines can be tested without waiting."""

    async def late(ctx: Context) -> None:
        await ctx.call("b", "t", "k")

    ctx = Context.fake({"t": 1}, deadline=5)
    ctx.pass_time(4)
    assert (ctx.deadline, ctx.expired) == (1.0, False)
    ctx.pass_time(2)
    assert (ctx.deadline, ctx.expired) == (0.0, True)
    with pytest.raises(CallFailed) as error:
        run(late, ctx)
    assert error.value.code == "deadline_exceeded"


def test_a_fake_sync_context_is_alike() -> None:
    """EXPERIENCE: sync handlers get the same names."""
    ctx = SyncContext.fake({"t": 1, "bug": Rejected("a wrong script")})
    assert ctx.call("b", "t", "k", {"a": 1}) == 1
    ctx.progress("half")
    assert ([call.payload for call in ctx.calls], ctx.notes) == ([{"a": 1}], ["half"])
    with pytest.raises(Rejected):
        ctx.call("b", "bug", "k")


def test_an_interrupted_sync_context_lets_its_thread_go() -> None:
    """F57: a thread that waits for a call gets `cancelled` when its unit is told to stop."""
    started = threading.Event()

    class Deaf:
        payload_bytes_max = 1000

        def now(self) -> float:
            return 0.0

        def require_process(self) -> None: ...

        def start_call(self, params: Any, deadline: float | None, done: Callable[[Outcome], None]) -> str:
            started.set()
            return "c1"

        def cancel_call(self, call_id: str) -> None:
            cancelled.append(call_id)

    cancelled: list[str] = []
    ctx = SyncContext(SyncContext.fake()._unit, Deaf())  # type: ignore[arg-type]  # noqa: SLF001 - a port that never answers
    codes: list[str] = []

    def wait() -> None:
        try:
            ctx.call("b", "t", "k")
        except CallFailed as error:
            codes.append(error.code)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert started.wait(5)
    while not ctx._open:  # noqa: SLF001 - until the thread waits
        threading.Event().wait(0.001)
    ctx.interrupt()
    waiting.join(5)
    assert (codes, cancelled) == (["cancelled"], ["c1"])
