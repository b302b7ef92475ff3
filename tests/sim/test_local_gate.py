"""A gate for tests of one's own agents: the real pipeline, on whatever loop the test runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from agentgate.errors import CallFailed, Rejected, TryLater
from agentgate.model.outcome import Outcome
from agentgate.sdk.agent import Agent
from agentgate.sdk.context import Context
from agentgate.testing.local_gate import AgentFault, local_gate
from agentgate.testing.loop import run_virtual

Run = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


def run_really(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On an ordinary event loop, in real time."""
    asyncio.run(main())


ON_BOTH_LOOPS = pytest.mark.parametrize("run", [run_virtual, run_really])


@dataclass
class Order:
    sku: str
    n: int


@dataclass
class Receipt:
    order: str
    shelf: str


def team() -> tuple[Agent, Agent, list[str]]:
    """An order agent that asks a stock agent; and what the stock agent has done."""
    order, stock = Agent("order_agent", tier="core"), Agent("stock_agent")
    reserved: list[str] = []

    @order.handles("confirm")
    async def confirm(wanted: Order, ctx: Context) -> Receipt:
        shelf = await ctx.call("stock_agent", "reserve", ctx.business_key, {"sku": wanted.sku}, returns=str)
        return Receipt(ctx.business_key, shelf)

    @stock.handles("reserve")
    async def reserve(item: dict[str, str], ctx: Context) -> str:
        if item["sku"] == "gold":
            raise Rejected("we sell no gold")
        reserved.append(ctx.key)
        return "shelf 7"

    @stock.handles("count", effect="read")
    def count(item: dict[str, str]) -> int:
        if item["sku"] == "sand":
            raise TryLater("not counted yet", after=1)
        return len(reserved)

    return order, stock, reserved


@ON_BOTH_LOOPS
def test_agents_call_one_another_through_the_gate(run: Run) -> None:
    """A call reaches its agent, which calls another; a repeat is answered and not run again."""

    async def main() -> None:
        order, stock, reserved = team()
        async with local_gate(order, stock) as gate:
            first = await gate.call("order_agent", "confirm", "o1", Order("tea", 2), returns=Receipt)
            again = await gate.call("order_agent", "confirm", "o1", Order("tea", 2), returns=Receipt)
            assert first == again == Receipt("o1", "shelf 7")
            assert reserved == ["order_agent:reserve:o1:run"]
            assert await gate.call("stock_agent", "count", payload={"sku": "tea"}, effect="read") == 1

    run(main)


@ON_BOTH_LOOPS
def test_failures_are_the_real_ones(run: Run) -> None:
    """What a handler says travels through the real policies to the caller."""

    async def main() -> None:
        order, stock, _ = team()
        async with local_gate(order, stock, name="shop") as gate:
            with pytest.raises(CallFailed) as refused:
                await gate.call("stock_agent", "reserve", "o1", {"sku": "gold"})
            assert (refused.value.code, refused.value.sent) == ("rejected", True)
            with pytest.raises(CallFailed) as nobody:
                await gate.call("nobody", "confirm", "o1", {})
            assert nobody.value.code == "no_route"

    run(main)


def test_back_off_costs_no_time_when_time_is_virtual() -> None:
    """Three attempts, a second or more apart, end at once."""

    async def main() -> None:
        _, stock, _ = team()
        async with local_gate(stock) as gate:
            with pytest.raises(CallFailed) as later:
                await gate.call("stock_agent", "count", payload={"sku": "sand"}, effect="read")
            assert later.value.code == "overloaded"
            assert asyncio.get_running_loop().time() > 2

    run_virtual(main)


def test_a_failing_agent_opens_its_breaker() -> None:
    """`faults` makes an agent fail for real: in the end its breaker refuses."""

    async def main() -> None:
        order, stock, reserved = team()
        async with local_gate(order, stock, faults={"stock_agent": AgentFault(fail_share=1.0)}) as gate:
            codes: list[str] = []
            for number in range(8):
                with pytest.raises(CallFailed) as failed:
                    await gate.call("stock_agent", "reserve", f"o{number}", {"sku": "tea"})
                codes.append(failed.value.code)
            assert codes == ["handler_error"] * 5 + ["breaker_open"] * 3
            assert reserved == []

    run_virtual(main)


def test_a_slow_agent_misses_deadlines() -> None:
    """A delay beyond the deadline ends the call; the work is not begun after that."""

    async def main() -> None:
        _, stock, reserved = team()
        async with local_gate(stock, faults={"stock_agent": AgentFault(delay_s=5.0)}) as gate:
            with pytest.raises(CallFailed) as late:
                await gate.call("stock_agent", "reserve", "o1", {"sku": "tea"}, timeout=2.0)
            assert late.value.code == "deadline_exceeded"
            await asyncio.sleep(10)
            assert reserved == []

    run_virtual(main)


def test_what_a_test_raises_arrives_as_it_is() -> None:
    """A failing assertion inside the gate is a failing assertion outside, not a group of groups."""

    async def main() -> None:
        with pytest.raises(AssertionError, match="as expected"):
            async with local_gate(*team()[:2]):
                raise AssertionError("as expected")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1), local_gate(*team()[:2]):
                await asyncio.sleep(2)

    run_virtual(main)


def test_what_happened_can_be_read() -> None:
    """Every call of the chain has left its span, and every span but the root's has its parent."""

    async def main() -> None:
        order, stock, _ = team()
        async with local_gate(order, stock) as gate:
            await gate.call("order_agent", "confirm", "o1", Order("tea", 2))
            spans = await gate.spans("o1")
            assert sorted((span.kind, span.target) for span in spans) == [
                ("attempt", "order_agent"),
                ("attempt", "stock_agent"),
                ("call", "order_agent"),
                ("call", "stock_agent"),
            ]
            ids = {span.span_id for span in spans}
            assert [span.target for span in spans if span.parent_id not in ids] == ["order_agent"]

    run_virtual(main)


def test_a_fault_needs_its_agent() -> None:
    """A fault for an agent that is not there would prove nothing, and is refused."""

    async def main() -> None:
        async with local_gate(faults={"stock": AgentFault()}):
            pytest.fail("not reached")

    with pytest.raises(ValueError, match="stock"):
        run_virtual(main)
    with pytest.raises(ValueError, match="fail_share"):
        AgentFault(fail_share=1.5)


def test_misspelt_names_are_told_apart_from_absent_ones() -> None:
    """I1: an option, an agent or a skill that does not exist comes with the nearest one that does."""
    agent = Agent("order_agent")

    @agent.handles("confirm", effect="read")
    async def confirm(order: dict[str, Any], ctx: Context) -> str:
        return "yes"

    async def main() -> None:
        async with local_gate(agent) as gate:
            with pytest.raises(TypeError, match="no option 'tiemout'; did you mean 'timeout'"):
                await gate.call("order_agent", "confirm", tiemout=3)  # type: ignore[call-overload] # it is misspelt
            meant_by = {("order_agnet", "confirm"): "order_agent", ("order_agent", "confrim"): "confirm"}
            for (target, task_type), meant in meant_by.items():
                with pytest.raises(CallFailed, match=f"did you mean {meant!r}"):
                    await gate.call(target, task_type, payload={}, effect="read")
            with pytest.raises(CallFailed, match=r"no agent answers to 'bank'$"):
                await gate.call("bank", "confirm", payload={}, effect="read")

    run_virtual(main)


def test_a_degraded_answer_can_be_told_from_one(caplog: pytest.LogCaptureFixture) -> None:
    """F6: it comes as any other value, with a line in the log; who asks for the `Outcome` sees that it is degraded."""
    printer, desk = Agent("printer"), Agent("desk")

    @printer.handles("label", timeout_s=2.0)
    async def label(_: Any, ctx: Context) -> str:
        await asyncio.sleep(25)
        return "label"

    @printer.degraded("label")
    async def later(_: Any) -> str:
        return "comes later"

    @desk.handles("pack")
    async def pack(_: Any, ctx: Context) -> list[Any]:
        whole = await ctx.call("printer", "label", ctx.business_key, returns=Outcome)
        return [whole.value, whole.degraded]

    async def story() -> None:
        async with local_gate(printer, desk) as gate:
            assert await gate.call("desk", "pack", "o1") == ["comes later", True]
            assert (
                caplog.messages.count(
                    "printer.label(o1): answered by its degraded handler; its effect may still happen"
                )
                == 1
            )
            assert await gate.call("printer", "label", "o2") == "comes later"

    run_virtual(story)


def test_a_script_may_degrade() -> None:
    """F6: a handler's branch for a degraded answer can be tested without a gate."""

    async def story() -> None:
        ctx = Context.fake({"label": Outcome(value="later", degraded=True), "weigh": 2})
        label = await ctx.call("printer", "label", "o1", returns=Outcome)
        assert (label.value, label.degraded) == ("later", True)
        assert not (await ctx.call("scales", "weigh", "o1", returns=Outcome)).degraded

    run_virtual(story)
