"""Every metric of the gate, in one table: its name, what it means, when to worry, and where its value is read.

`/metrics` and docs/reference/metrics.md are made from these rows, so that neither can name what the other does not.
Labels are bounded: codes, states and kinds are fixed sets, and nothing carries the name of an agent, of which there
may be thousands; `/v1/agents` and `/v1/breakers` have those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from agentgate.gateway.counters import Counters
from agentgate.server.link import Links
from agentgate.server.view import GateView

PREFIX: Final = "agentgate_"

Kind = Literal["counter", "gauge"]
Figure: TypeAlias = float | Mapping[Any, int]  # with a label: one number for each of its values


class Source(NamedTuple):
    """Where values are read."""

    view: GateView
    links: Links

    @property
    def counters(self) -> Counters:
        """What the gateway has counted since its start."""
        return self.view.gateway.counters


class Row(NamedTuple):
    """One metric. A counter only grows and starts at 0 with the gate; a gauge is what holds now."""

    name: str
    kind: Kind
    meaning: str
    worry: str
    read: Callable[[Source], Figure]
    label: str = ""

    @property
    def full_name(self) -> str:
        """As it is scraped."""
        return PREFIX + self.name + ("_total" if self.kind == "counter" else "")


def _ended(source: Source) -> dict[str, int]:
    deadlocks = source.view.gateway.waits.deadlocks
    return {"resolved": deadlocks.resolved, "late": deadlocks.late}


def _outcomes(source: Source) -> dict[str, int]:
    return {code or "ok": count for code, count in source.counters.outcomes.items()}


def _signal_waits(source: Source) -> dict[str, int]:
    return {code or "ok": count for code, count in source.counters.waits.items()}


def _breakers(source: Source) -> Counter[str]:
    now = source.view.clock.now()
    return Counter(breaker.state for breaker in source.view.gateway.policies.breakers.states(now))


def _locks(source: Source) -> Counter[str]:
    return Counter({"held": 0, "waiting": 0}) + Counter(ticket.state for ticket in source.view.gateway.policies.locks)


def _queued(source: Source) -> int:
    now = source.view.clock.now()
    return sum(agent.queued for agent in source.view.gateway.policies.slots.states(now))


def _resting(source: Source) -> int:
    now = source.view.clock.now()
    agents = source.view.gateway.policies.slots.states(now)
    return sum(instance.resting for agent in agents for instance in agent.instances)


# name, kind, meaning, when to worry, value, label; a row is easier to read when it keeps its shape
# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    Row("calls", "counter", "Calls that entered the gate",
        "It stops growing while callers are there: nobody gets in. It jumps: look for a caller in a loop.",
        lambda source: source.counters.calls),
    Row("outcomes", "counter", "Calls by what they came to; `ok` is an answer",
        "The share of `ok` falls: the code that grows says why. Any `outcome_unknown` needs a person or a check.",
        _outcomes, "code"),
    Row("attempts", "counter", "Dispatches to agents",
        "More than 1.2 for each call: retries amplify the load.",
        lambda source: source.counters.attempts),
    Row("retries", "counter", "Attempts after the first",
        "More than a tenth of the calls for minutes: something fails that time does not cure.",
        lambda source: source.counters.retries),
    Row("retries_saved", "counter", "Attempts left when a call met an open breaker",
        "Never by itself: this load did not reach a failing target.",
        lambda source: source.counters.retries_saved),
    Row("replays", "counter", "Calls answered from the ledger",
        "It grows as fast as the calls: somebody repeats what is long done.",
        lambda source: source.counters.replays),
    Row("joins", "counter", "Calls that shared the work of another with the same key",
        "It grows steadily: callers give up and ask again before the answer can be there.",
        lambda source: source.counters.joins),
    Row("messages", "counter", "Frames of calls and answers through the gate",
        "Never by itself; for each call it shows how much is said.",
        lambda source: source.counters.messages),
    Row("late_answers", "counter", "Answers that came after their attempt was given up",
        "Often: time-outs are shorter than honest work. Declare `timeout_s`, or `heavy`.",
        lambda source: source.counters.late_answers),
    Row("lost_units", "counter", "Units whose instance was lost",
        "Each is a process that died or lost its network while it worked.",
        lambda source: source.counters.lost_units),
    Row("zombies", "counter", "Units that did not stop when told to",
        "It grows: handlers neither await nor look at `ctx.expired`, and work on for nobody.",
        lambda source: source.counters.zombies),
    Row("rejoined_units", "counter", "Units taken up again after a lost link or a restart",
        "It grows without restarts: the network between agents and gate breaks.",
        lambda source: source.counters.rejoined_units),
    Row("checks", "counter", "Checks asked about an unknown outcome",
        "It grows while `outcome_unknown` does: the checks fail or do not know either.",
        lambda source: source.counters.checks),
    Row("signals", "counter", "Signals that were taken",
        "Never by itself; far more than waits: agents say what nobody needs.",
        lambda source: source.counters.signals),
    Row("signals_expired", "counter", "Signals that nobody came for",
        "It grows: a name or an object does not fit between two agents, or nobody listens any more.",
        lambda source: source.view.gateway.signals.book.expired),
    Row("signals_kept", "gauge", "Signals that wait for somebody",
        "It only grows: as `signals_expired`, before it shows there.",
        lambda source: source.view.gateway.signals.book.kept),
    Row("signal_waits", "counter", "Waits for signals by how they ended; `ok` is a signal",
        "`needs_human` grows: news do not come. `promise_broken` grows: a skill ends without what it promises.",
        _signal_waits, "code"),
    Row("signal_waits_open", "gauge", "Waits for signals now",
        "It stays high while `signals` stands still: agents wait for one another.",
        lambda source: source.view.gateway.signals.book.waiting),
    Row("protocol_errors", "counter", "Frames that broke the protocol",
        "Any: a home-made client is wrong, or something else speaks to the port.",
        lambda source: source.counters.protocol_errors),
    Row("registrations", "counter", "Hellos of agents that were taken",
        "It grows while `instances` does not: agents connect again and again.",
        lambda source: source.counters.registrations),
    Row("registrations_put_off", "counter", "Hellos of agents that were told to come again",
        "It grows beyond a start of many at once: `directory.hello_per_second` is too low for this team.",
        lambda source: source.counters.registrations_put_off),
    Row("http_answers", "counter", "What came back from HTTP agents",
        "5xx or `lost` rising: an agent fails, or hangs up on its requests; `not_sent`: it is not there.",
        lambda source: source.counters.http_answers, "result"),
    Row("would", "counter", "Decisions of observe mode",
        "Before you enforce: this is how many calls the mechanism would have touched.",
        lambda source: source.counters.would, "decision"),
    Row("findings", "counter", "What was noticed, every time it was seen",
        "It grows: `agentgate findings` says what, and what to do first.",
        lambda source: source.view.gateway.findings.totals, "kind"),
    Row("agents", "gauge", "Agents that are known",
        "It falls: agents have gone and did not come back.",
        lambda source: len(source.view.directory.snapshot().routes)),
    Row("instances", "gauge", "Instances by state",
        "`away`, `leaving` or `expected` above 0 for longer than the grace (3 s, 10 s after a restart of the gate).",
        lambda source: source.view.directory.states(), "state"),
    Row("card_differences", "counter", "Cards of one agent that disagree",
        "Any, unless a new version is being rolled out: two programs use one name.",
        lambda source: source.view.directory.findings, "kind"),
    Row("breakers", "gauge", "Breakers by state",
        "`open` above 0: `agentgate breakers` says whose.",
        _breakers, "state"),
    Row("breaker_openings", "counter", "Breakers that opened",
        "It keeps growing: a target fails again at every trial.",
        lambda source: source.view.gateway.policies.breakers.opened_total),
    Row("queued_calls", "gauge", "Calls that wait for a free slot",
        "Above 0 for minutes: an agent needs more instances, or more `concurrency`.",
        _queued),
    Row("running_units", "gauge", "Units at work, or waiting for calls of their own",
        "It only grows: handlers hang.",
        lambda source: len(source.view.gateway.units)),
    Row("resting_units", "gauge", "Units that wait, for calls of their own or for signals, and hold no slot meanwhile",
        "Close to `running_units` for minutes: chains wait for a target that is slow; `agentgate chains` shows whose.",
        _resting),
    Row("waiting_units", "gauge", "Units in the wait graph: those that wait for somebody",
        "It comes near `running_units`: everybody waits, and few work.",
        lambda source: len(source.view.gateway.policies.graph)),
    Row("open_waits", "gauge", "Waits of units that are open: the edges of the wait graph",
        "It only grows: chains of waits that nothing ends; `agentgate waits` shows them.",
        lambda source: source.view.gateway.policies.graph.edges),
    Row("deadlocks_found", "counter", "Circles of waits that were found; `observed_…` in observe mode",
        "Any: agents ask back each other's work; `agentgate findings` shows all, `agentgate waits` one that stands.",
        lambda source: source.view.gateway.waits.deadlocks.by_how, "how"),
    Row("deadlocks_ended", "counter", "Circles whose waits have all ended",
        "`late` grows: the unit that gave way did not take another way in time.",
        _ended, "how"),
    Row("longest_wait_seconds", "gauge", "The longest wait of a unit that has ended, so far",
        "It comes near the deadlines of calls: somebody waited for what never came; `agentgate waits` shows who does.",
        lambda source: source.view.gateway.waits.deadlocks.wait_s_max),
    Row("deadlock_signal_seconds", "gauge", "The longest time so far from the closing of a circle to its signal",
        "It comes near `wait_graph.detect_interval_seconds`: the gate is too busy to look in time.",
        lambda source: source.view.gateway.waits.deadlocks.signal_s_max),
    Row("deadlock_phantoms", "counter", "What looked like a circle to the timer, and was none when it looked again",
        "Never by itself: nobody was told. It grows with how fast waits change.",
        lambda source: source.view.gateway.waits.deadlocks.phantoms),
    Row("wait_checks_left", "counter", "Checks that reached too much and were left to the timer",
        "It grows: chains of waits have thousands of units.",
        lambda source: source.view.gateway.policies.graph.left),
    Row("late_units", "gauge", "Units beyond their time-out, which the watchdog has an eye on",
        "It comes near `running_units`: an agent hangs as a whole.",
        lambda source: len(source.view.gateway.watching or ())),
    Row("probes", "counter", "Questions to processes how their late units are",
        "It grows steadily: honest work is slower than its time-outs. Declare `timeout_s`, or call `ctx.progress`.",
        lambda source: source.counters.probes),
    Row("woken_units", "counter", "Late units that asked the same again and again, and were refused it",
        "It grows: agents poll for what does not come; `agentgate findings` shows those that did not stop.",
        lambda source: source.counters.woken_units),
    Row("released_units", "counter", "Stuck units whose callers were answered in their place",
        "Any: a handler hangs; `needs_human` wants a person to look at the key.",
        lambda source: source.counters.released_units, "how"),
    Row("locks", "gauge", "Requests for locks by state",
        "`waiting` above 0 for minutes: `/v1/locks` says who holds what they wait for.",
        _locks, "state"),
    Row("locks_lost", "counter", "Locks whose lease ended while they were held",
        "Each is a process that was cut off, or a handler that did not stop; others may have worked beside it.",
        lambda source: source.counters.locks_lost),
    Row("http_calls", "gauge", "Open calls over HTTP",
        "Near `calls.http_calls_max`: callers wait for agents that are slow or gone.",
        lambda source: len(source.view.gateway.front)),
    Row("spans_written", "counter", "Spans that were stored",
        "It stands still while calls are made: the disk is full or slow; the log says so.",
        lambda source: source.view.spans.written),
    Row("spans_dropped", "counter", "Spans given up at the bound",
        "Any: chains have gaps. Successes of reads go first, errors and keyed calls last.",
        lambda source: source.view.spans.dropped),
    Row("links", "gauge", "Open links",
        "It comes near `server.connections_max`.",
        lambda source: len(source.links.open)),
    Row("links_accepted", "counter", "Links that were opened",
        "It grows while `links` does not: processes connect again and again.",
        lambda source: source.links.accepted),
    Row("links_refused", "counter", "Upgrades that were refused",
        "It grows: a wrong address, a web page, or more processes than `server.connections_max`.",
        lambda source: source.links.refused),
    Row("refused", "counter", "Requests and links that were not let in",
        "`unauthorized` rises: a token has expired, was revoked, or somebody tries; `forbidden`: a foreign web page.",
        lambda source: source.links.doorkeeper.refused, "code"),
    Row("links_cut", "counter", "Links cut for silence or for not reading",
        "It grows: processes stall, or cannot keep up with what is sent to them.",
        lambda source: source.links.cut),
)
# fmt: on
