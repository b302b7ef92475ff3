"""`/metrics`: plain integers of the gate, read and written out when somebody scrapes.

Labels are bounded: codes, states and kinds are fixed sets, and nothing carries the name of an agent, of which there
may be thousands; `/v1/agents` and `/v1/breakers` have those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agentgate.server.link import Links
from agentgate.server.view import GateView

# Counters of the gateway: attribute -> what it counts.
TOTALS: Final = {
    "calls": "Calls that entered the gate",
    "attempts": "Dispatches to agents",
    "retries": "Attempts after the first",
    "retries_saved": "Attempts left when a call met an open breaker",
    "replays": "Calls answered from the ledger",
    "joins": "Calls that shared the work of another with the same key",
    "messages": "Frames of calls and answers through the gate",
    "late_answers": "Answers that came after their attempt was given up",
    "lost_units": "Units whose instance was lost",
    "zombies": "Units that did not stop when told to",
    "rejoined_units": "Units taken up again after a lost link or a restart",
    "checks": "Checks asked about an unknown outcome",
    "protocol_errors": "Frames that broke the protocol",
}


class GateCollector(Collector):
    """Reads everything at scrape time."""

    def __init__(self, view: GateView, links: Links) -> None:
        self._view = view
        self._links = links

    def collect(self) -> Iterator[Metric]:
        """All metrics, now."""
        counters = self._view.gateway.counters
        for name, meaning in TOTALS.items():
            yield CounterMetricFamily(f"agentgate_{name}", meaning, value=getattr(counters, name))
        yield _labelled("outcomes", "Calls by what they came to", "code", _named(counters.outcomes))
        yield _labelled("would", "Decisions of observe mode", "decision", counters.would)
        yield _labelled("findings", "What was noticed, every time", "kind", self._view.gateway.findings.totals)
        yield from self._directory()
        yield from self._queues()
        yield from self._spans()
        yield from self._socket()

    def _directory(self) -> Iterator[Metric]:
        directory = self._view.directory
        yield GaugeMetricFamily("agentgate_agents", "Agents that are known", value=len(directory.snapshot().routes))
        yield _gauges("instances", "Instances by state", "state", directory.states())
        yield _labelled("card_differences", "Cards of one agent that disagree", "kind", directory.findings)

    def _queues(self) -> Iterator[Metric]:
        now = self._view.clock.now()
        gateway = self._view.gateway
        breakers = gateway.breakers
        states = Counter(breaker.state for breaker in breakers.states(now))
        yield _gauges("breakers", "Breakers by state", "state", states)
        yield CounterMetricFamily("agentgate_breaker_openings", "Breakers that opened", value=breakers.opened_total)
        queued = sum(agent.queued for agent in gateway.slots.states(now))
        yield GaugeMetricFamily("agentgate_queued_calls", "Calls that wait for a free slot", value=queued)
        yield GaugeMetricFamily("agentgate_running_units", "Units at work", value=len(gateway.units))

    def _spans(self) -> Iterator[Metric]:
        spans = self._view.spans
        yield CounterMetricFamily("agentgate_spans_written", "Spans that were stored", value=spans.written)
        yield CounterMetricFamily("agentgate_spans_dropped", "Spans given up at the bound", value=spans.dropped)

    def _socket(self) -> Iterator[Metric]:
        links = self._links
        yield GaugeMetricFamily("agentgate_links", "Open links", value=len(links.open))
        yield CounterMetricFamily("agentgate_links_accepted", "Links that were opened", value=links.accepted)
        yield CounterMetricFamily("agentgate_links_refused", "Upgrades that were refused", value=links.refused)
        yield CounterMetricFamily("agentgate_links_cut", "Links cut for silence or for not reading", value=links.cut)


class Metrics:
    """The text of `/metrics`."""

    def __init__(self, view: GateView, links: Links) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(GateCollector(view, links))

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)


def _named(outcomes: Mapping[str, int]) -> dict[str, int]:
    return {code or "ok": count for code, count in outcomes.items()}


def _labelled(name: str, meaning: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"agentgate_{name}", meaning, labels=[label])
    return _fill(family, counts.items())


def _gauges(name: str, meaning: str, label: str, counts: Mapping[Any, int]) -> Metric:
    family = GaugeMetricFamily(f"agentgate_{name}", meaning, labels=[label])
    return _fill(family, counts.items())


def _fill(family: CounterMetricFamily | GaugeMetricFamily, counts: Iterable[tuple[str, int]]) -> Metric:
    for value, count in sorted(counts):
        family.add_metric([value], count)
    return family
