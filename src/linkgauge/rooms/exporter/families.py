"""Families of metrics, and their text as Prometheus reads it, which prometheus-client writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from linkgauge.machine.extras import needed
from linkgauge.model.printable import printable

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PREFIX = "linkgauge_"


class Families:
    """Families by name, in the order in which they are first named. A sample whose value is null is
    left out: absent is not 0."""

    def __init__(self) -> None:
        self._core = needed("prometheus_client.core", "exporter")
        self._found: dict[str, tuple[Any, tuple[str, ...]]] = {}

    def gauge(self, name: str, help: str, labels: Sequence[str]) -> None:
        """Declares a family. Without samples it is not shown."""
        self._declare("GaugeMetricFamily", name, help, labels)

    def counter(self, name: str, help: str, labels: Sequence[str]) -> None:
        """The same of a counter, whose samples end in `_total`."""
        self._declare("CounterMetricFamily", name, help, labels)

    def _declare(self, kind: str, name: str, help: str, labels: Sequence[str]) -> None:
        make = getattr(self._core, kind)
        self._found[name] = make(PREFIX + name, help, labels=labels), tuple(labels)

    def add(self, name: str, value: float | None, *labels: str) -> None:
        """A sample of a declared family, with a text for each of its labels."""
        if value is not None:
            self._found[name][0].add_metric([printable(one) for one in labels], value)

    def add_state(self, name: str, state: str, states: Iterable[str], *labels: str) -> None:
        """A sample for each state, whose name is the last label: 1 of the one that holds."""
        for one in states:
            self.add(name, float(one == state), *labels, one)

    def text(self) -> bytes:
        """Text format 0.0.4."""
        client = needed("prometheus_client", "exporter")
        registry = client.CollectorRegistry(auto_describe=False)
        registry.register(_Fixed([family for family, _ in self._found.values() if family.samples]))
        return bytes(client.generate_latest(registry))


class _Fixed:
    """A collector of what is there."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
