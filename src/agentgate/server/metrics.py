"""`/metrics`: plain integers of the gate, read and written out when somebody scrapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agentgate.server.link import Links
from agentgate.server.metric_rows import PREFIX, ROWS, Row, Source
from agentgate.server.view import GateView


class GateCollector(Collector):
    """Reads everything at scrape time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        """All metrics, now, in the order of the table."""
        for row in ROWS:
            yield _family(row, self._source)


class Metrics:
    """The text of `/metrics`."""

    def __init__(self, view: GateView, links: Links) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(GateCollector(Source(view, links)))

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)


def _family(row: Row, source: Source) -> Metric:
    kind = CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily
    family = kind(PREFIX + row.name, row.meaning, labels=[row.label] if row.label else [])
    figure = row.read(source)
    if isinstance(figure, Mapping):
        for value, count in sorted(figure.items()):
            family.add_metric([value], count)
    else:
        family.add_metric([], figure)
    return family
