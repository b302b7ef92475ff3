"""The chain guard against a list of everything that happened."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from agentgate.core.chain import ChainGuard, ChainOptions, ChainTicket
from agentgate.core.policy import Refuse
from agentgate.model import Call, Outcome

OPTIONS = ChainOptions(depth_max=3, fan_out_max=3, calls_max=5, unlinked_per_minute=2)
AGENTS = st.sampled_from(["a", "b", "c"])
KEYS = st.sampled_from(["", "k1", "k2"])


@dataclass
class Made:
    """A call that was admitted, and where it hangs."""

    call: Call
    root: str
    at: float
    ticket: ChainTicket
    given_back: bool = False


class ChainHistory(RuleBasedStateMachine):
    """Calls are made in units or by nobody knows whom; units open and close; calls end or are given up."""

    @initialize()
    def begin(self) -> None:
        self.guard = ChainGuard(OPTIONS)
        self.now = 0.0
        self.made: list[Made] = []
        self.live: list[Made] = []
        self.open: dict[str, Made] = {}
        self.closed: set[str] = set()
        self.names = 0

    def new_call(self, target: str, key: str, payload: int, parent: str, *, linked: bool) -> Call:
        self.names += 1
        depth = self.open[parent].call.depth + 1 if parent else 0
        return Call(
            id=f"c{self.names}",
            target=target,
            agent=target,
            task_type="t",
            business_key=key,
            payload=payload,
            caller="x",
            parent_unit=parent,
            depth=depth,
            linked=linked,
        )

    def expected(self, call: Call) -> str:
        counted = [made for made in self.made if not made.given_back]
        children = [made for made in counted if made.call.parent_unit == call.parent_unit]
        parent = self.open.get(call.parent_unit)
        chain = [made for made in counted if parent is not None and made.root == parent.root]
        recent = [made for made in counted if not made.call.linked and made.at > self.now - 60.0]
        if call.depth > OPTIONS.depth_max:
            return "chain_limit"
        if parent is not None and (len(children) >= OPTIONS.fan_out_max or len(chain) >= OPTIONS.calls_max):
            return "chain_limit"
        if not call.linked and len(recent) >= OPTIONS.unlinked_per_minute:
            return "chain_limit"
        return "loop" if self.loops(call, parent) else ""

    def loops(self, call: Call, above: Made | None) -> bool:
        while above is not None:
            same = (above.call.target, above.call.business_key) == (call.target, call.business_key)
            if same and (call.business_key or above.call.payload == call.payload):
                return True
            above = self.open.get(above.call.parent_unit)
        return False

    @rule(agent=AGENTS, key=KEYS, payload=st.integers(0, 1), linked=st.booleans(), data=st.data())
    def call(self, agent: str, key: str, payload: int, linked: bool, data: st.DataObject) -> None:
        parent = data.draw(st.sampled_from(["", *self.open, *self.open])) if linked else ""
        self.make(self.new_call(agent, key, payload, parent, linked=linked))

    def make(self, call: Call) -> None:
        decision = self.guard.admit(call, self.now)
        code = decision.error.code if isinstance(decision, Refuse) else ""
        assert code == self.expected(call)
        if not isinstance(decision, Refuse):
            assert isinstance(decision.ticket, ChainTicket)
            root = self.open[call.parent_unit].root if call.parent_unit else call.id
            made = Made(call, root, self.now, decision.ticket)
            self.made.append(made)
            self.live.append(made)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def open_unit(self, data: st.DataObject) -> None:
        made = data.draw(st.sampled_from(self.live))
        unit = f"u-{made.call.id}"
        if unit in self.closed:  # a unit's name is used once
            return
        self.guard.open_unit(unit, made.call)
        self.open[unit] = made

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def close_unit(self, data: st.DataObject) -> None:
        unit = data.draw(st.sampled_from(sorted(self.open)))
        self.guard.close_unit(unit)
        self.closed.add(unit)
        del self.open[unit]

    @precondition(lambda self: self.live)
    @rule(data=st.data(), made_after_all=st.booleans())
    def end(self, data: st.DataObject, made_after_all: bool) -> None:
        self.finish(self.live.pop(data.draw(st.integers(0, len(self.live) - 1))), made_after_all=made_after_all)

    def finish(self, made: Made, *, made_after_all: bool) -> None:
        if made_after_all:
            self.guard.settle(made.ticket, Outcome(), self.now)
        else:
            self.guard.abandon(made.ticket, self.now)
            made.given_back = True

    @precondition(lambda self: self.open)
    @rule(data=st.data(), made_after_all=st.lists(st.booleans(), min_size=2, max_size=6))
    def many_children(self, data: st.DataObject, made_after_all: list[bool]) -> None:
        parent = data.draw(st.sampled_from(sorted(self.open)))
        for number, made in enumerate(made_after_all):
            before = len(self.live)
            self.make(self.new_call("d", f"only {number}", 0, parent, linked=True))
            if len(self.live) > before:
                self.finish(self.live.pop(), made_after_all=made)

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.guard.tick(self.now)


TestChainHistory = ChainHistory.TestCase
TestChainHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
