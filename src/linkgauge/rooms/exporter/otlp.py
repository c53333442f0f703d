"""Sends the exporter's metrics by OTLP, with units (`By/s`). Names follow OpenTelemetry's
conventions for hardware (`hw.temperature`); others look like `linkgauge.cell_bandwidth`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from threading import Event
from typing import Any, NamedTuple, NoReturn

import linkgauge
from linkgauge.machine.extras import needed
from linkgauge.model.errors import InputError

from .families import PREFIX, Families
from .machine import Say
from .server import MetricsPage

EXTRA = "otlp"
PATH = "/v1/metrics"
_SDK = "opentelemetry.sdk"
_Labels = dict[str, str]
_Values = Iterable[tuple[_Labels, float]]


class Convention(NamedTuple):
    """A metric's name and unit in OpenTelemetry. `more` makes attributes from a sample's labels.
    `instead` names the labels that they replace."""

    name: str
    unit: str
    more: Callable[[_Labels], _Labels] = lambda labels: {}
    instead: tuple[str, ...] = ()


def _error(kind: str, *labels: str) -> Convention:
    def more(own: _Labels) -> _Labels:
        return {"error.type": " ".join([kind, *(own[label] for label in labels)])}

    return Convention("hw.errors", "{error}", more, labels)


_WAYS = {"sent": "transmit", "received": "receive"}
CONVENTIONS = {
    "gpu_temperature_celsius": Convention("hw.temperature", "Cel"),
    "gpu_power_watts": Convention("hw.power", "W"),
    "gpu_ecc_errors": _error("ecc", "kind"),
    "gpu_pcie_replays": _error("pcie replay"),
    "pcie_errors": _error("pcie", "severity"),
    "fabric_link_errors": _error("link"),
    "fabric_link_bytes": Convention(
        "hw.gpu.io", "By",
        lambda labels: {"network.io.direction": _WAYS[labels["direction"]]}, ("direction",),
    ),
}  # fmt: skip
"""By the names for Prometheus. `gpu_up` is `hw.status`, which has a value for each state."""
_TYPES = {"accelerator": "gpu", "network": "network"}
"""`hw.type` by the kind of a PCI function; anything else with a device is a GPU."""
_UNITS = {
    "seconds": "s", "hertz": "Hz", "watts": "W", "celsius": "Cel", "bytes": "By", "ratio": "1",
    "lanes": "{lane}", "transfers": "{transfer}", "flops": "{flop}", "events": "{event}",
    "tokens": "{token}", "requests": "{request}",
}  # fmt: skip
_UNIT = re.compile(rf"_({'|'.join(_UNITS)})(_per_second)?")


class Collector:
    def __init__(self, exporter: Any, host: str) -> None:
        resources = needed(f"{_SDK}.resources", EXTRA)
        self._metrics = needed(f"{_SDK}.metrics.export", EXTRA)
        scope = needed(f"{_SDK}.util.instrumentation", EXTRA).InstrumentationScope
        own = {"service.name": "linkgauge", "service.version": linkgauge.__version__}
        self._resource = resources.Resource.create(own | {"host.name": host})
        self._scope = scope("linkgauge", linkgauge.__version__)
        self._exporter, self._since = exporter, time.time_ns()

    def send(self, parts: Iterable[Families]) -> bool:
        sdk, found = self._metrics, dict[str, Any]()
        for family in (one for part in parts for one in part.collect()):
            is_counter, now = family.type == "counter", time.time_ns()
            name, unit, values = _converted(family)
            if name not in found:
                data = (
                    sdk.Sum([], sdk.AggregationTemporality.CUMULATIVE, is_monotonic=True)
                    if is_counter
                    else sdk.Gauge([])
                )
                found[name] = sdk.Metric(name, family.documentation, unit, data)
            since = self._since if is_counter else None
            found[name].data.data_points.extend(
                sdk.NumberDataPoint(dict(labels), since, now, value) for labels, value in values
            )
        scope = sdk.ScopeMetrics(self._scope, [*found.values()], "")
        own = sdk.ResourceMetrics(self._resource, [scope], "")
        done = self._exporter.export(sdk.MetricsData([own]))
        return bool(done is sdk.MetricExportResult.SUCCESS)


def _converted(family: Any) -> tuple[str, str, _Values]:
    short = family.name.removeprefix(PREFIX)
    samples: _Values = [(one.labels, one.value) for one in family.samples]
    if short == "gpu_up":
        return "hw.status", "1", _states(samples)
    if short in CONVENTIONS:
        name, unit, more, instead = CONVENTIONS[short]
        return name, unit, [
            (_hardware(labels, instead) | more(labels), value) for labels, value in samples
        ]  # fmt: skip
    found = [*_UNIT.finditer(short)]
    if not found or found[-1].end() != len(short):
        return f"linkgauge.{short}", "1", samples
    unit = _UNITS[found[-1][1]] + ("/s" if found[-1][2] else "")
    return f"linkgauge.{short[: found[-1].start()]}", unit, samples


def _states(samples: _Values) -> Iterable[tuple[_Labels, float]]:
    for labels, up in samples:
        for state, value in (("ok", up), ("failed", 1 - up)):
            yield _hardware(labels, ()) | {"hw.state": state}, value


def _hardware(labels: _Labels, instead: tuple[str, ...]) -> dict[str, str]:
    device = labels.get("device")
    kind = "gpu" if device else _TYPES.get(labels["kind"], labels["kind"])
    known = {
        "hw.id": labels["pci"] or f"gpu {device}",
        "hw.type": kind,
        "host.name": labels["host"],
    }
    gone = {"pci", "host", *instead} | (set() if device else {"kind"})
    return known | {name: value for name, value in labels.items() if name not in gone}


def exporter_to(url: str) -> Any:
    """Returns an OTLP exporter to `url`. Raises InputError if `url` is not an HTTP address."""
    if re.fullmatch(r"https?://[^/]+/?", url):
        url = url.rstrip("/") + PATH
    if not re.fullmatch(r"https?://[^/\s]+/\S+", url):
        raise InputError(f"--otlp {url}: give an address such as http://127.0.0.1:4318")
    library = needed("opentelemetry.exporter.otlp.proto.http.metric_exporter", EXTRA)
    return library.OTLPMetricExporter(url)


def send_all(
    page: MetricsPage, collector: Collector, every: float, deadlines: float, say: Say
) -> NoReturn:
    was_taken = True
    while True:
        taken = collector.send(page.families(deadlines))
        if taken != was_taken:
            say("the collector takes metrics" if taken else "the collector takes no metrics")
        was_taken = taken
        Event().wait(every)
