"""Collects families of metrics. prometheus-client turns them into text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

from linkgauge.history.records import microseconds
from linkgauge.machine.extras import needed
from linkgauge.model.documents.history import PastRun
from linkgauge.model.documents.result import RunVerdict, Status
from linkgauge.model.hardware.inventory import FabricLink, InventoryReading, LiveDevice, PciFunction
from linkgauge.model.printable import printable

from .results import SECOND, Results

if TYPE_CHECKING:
    from prometheus_client.core import Metric


PREFIX = "linkgauge_"
END = b"# EOF\n"
"""The last line of OpenMetrics."""


class Families:
    """Families of metrics by name, in the order of their declaration. A sample without a value
    (None) is left out, because a missing value is not 0."""

    def __init__(self) -> None:
        self._core = needed("prometheus_client.core", "exporter")
        self._found: dict[str, tuple[Any, tuple[str, ...]]] = {}

    def gauge(self, name: str, help: str, labels: Sequence[str]) -> None:
        """Declares a family of gauges. If no sample is added, the family is not shown."""
        self._declare("GaugeMetricFamily", name, help, labels)

    def counter(self, name: str, help: str, labels: Sequence[str]) -> None:
        """Declares a family of counters, whose samples end in `_total`."""
        self._declare("CounterMetricFamily", name, help, labels)

    def _declare(self, kind: str, name: str, help: str, labels: Sequence[str]) -> None:
        make = getattr(self._core, kind)
        self._found[name] = make(PREFIX + name, help, labels=labels), tuple(labels)

    def add(self, name: str, value: float | None, *labels: str) -> None:
        """Adds a sample to a declared family, with a text for each of its labels."""
        if value is not None:
            self._found[name][0].add_metric([printable(one) for one in labels], value)

    def add_state(self, name: str, state: str, states: Iterable[str], *labels: str) -> None:
        """Adds a sample for each possible state. The value is 1 for the current `state` and 0 for
        the others. The name of the state is the last label."""
        for one in states:
            self.add(name, float(one == state), *labels, one)

    def text(self, *, is_open: bool = False) -> bytes:
        """Returns all families in text format 0.0.4 or, if `is_open`, as OpenMetrics without its
        last line, END."""
        client = needed("prometheus_client", "exporter")
        registry = client.CollectorRegistry(auto_describe=False)
        registry.register(_Fixed([family for family, _ in self._found.values() if family.samples]))
        if not is_open:
            return bytes(client.generate_latest(registry))
        openmetrics = needed("prometheus_client.openmetrics.exposition", "exporter")
        return bytes(openmetrics.generate_latest(registry)).removesuffix(END)


class _Fixed:
    """A collector for prometheus-client that always returns the same families."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


# What devices report now, as metrics.


HOST = ("host", "simulated")
PCI = (*HOST, "pci", "kind")
DEVICE = (*HOST, "device", "pci")
LINK = (*DEVICE, "kind", "link")
GT = 1e9
REASONS = (
    "clocks set by the user", "power cap", "hardware slowdown", "sync boost",
    "software thermal slowdown", "hardware thermal slowdown", "power brake",
    "display clock setting",
)  # fmt: skip
"""The reasons for low clocks. All reasons are always shown, so that an alert sees 0 before 1."""
_LIVE_KINDS = {0x02: "network", 0x03: "accelerator", 0x06: "bridge", 0x0B: "accelerator",
          0x12: "accelerator"}  # fmt: skip


def of_machine(host: str, simulated: bool, seen: Iterable[InventoryReading]) -> Families:
    """Returns the metrics of a machine's current readings."""
    families = Families()
    _declare_pci(families)
    _declare_devices(families)
    _declare_links(families)
    own = host, str(simulated).lower()
    for one in seen:
        above = {function.address: function for function in one.functions}
        for function in one.functions:
            _add_function(families, own, function, above.get(function.parent or ""))
        for device in one.devices:
            _add_device(families, own, device)
    return families


def _declare_pci(families: Families) -> None:
    for name, what in (
        ("pcie_link_speed_transfers_per_second", "Transfers a second of each lane, now."),
        ("pcie_link_speed_max_transfers_per_second", "The most that both ends of the link can."),
        ("pcie_link_width_lanes", "Lanes in use."),
        ("pcie_link_width_max_lanes", "Lanes that both ends of the link have."),
    ):
        families.gauge(name, what, PCI)
    families.counter("pcie_errors", "Errors that the kernel counted (AER).", (*PCI, "severity"))


def _add_function(
    families: Families, own: tuple[str, str], function: PciFunction, above: PciFunction | None
) -> None:
    kind = _LIVE_KINDS.get((function.class_code or 0) >> 16, "other")
    labels = *own, function.address, kind
    for severity, count in (function.errors or {}).items():
        families.add("pcie_errors", float(count), *labels, severity)
    link = function.link
    if function.port in ("root port", "downstream port"):
        return  # the link below a port is that of the function there
    families.add("pcie_link_speed_transfers_per_second", _scaled(link.speed), *labels)
    families.add("pcie_link_width_lanes", link.width, *labels)
    upper = above.link if above is not None else link
    speed, width = _both(link.max_speed, upper.max_speed), _both(link.max_width, upper.max_width)
    families.add("pcie_link_speed_max_transfers_per_second", _scaled(speed), *labels)
    families.add("pcie_link_width_max_lanes", width, *labels)


def _both(one: float | None, other: float | None) -> float | None:
    """Returns the lower value, which both ends of a link support. If only one value is known,
    returns it."""
    return min((value for value in (one, other) if value is not None), default=None)


def _scaled(speed: float | None) -> float | None:
    return None if speed is None else speed * GT


def _declare_devices(families: Families) -> None:
    families.gauge("gpu_info", "Always 1.", (*DEVICE, "model", "uuid", "driver"))
    families.gauge("gpu_throttled", "Whether this holds the clock down.", (*DEVICE, "reason"))
    families.gauge("gpu_clock_hertz", "The clock now.", (*DEVICE, "clock"))
    families.gauge("gpu_clock_max_hertz", "The highest clock.", (*DEVICE, "clock"))
    families.gauge(
        "gpu_pcie_throughput_bytes_per_second", "What the device moves over PCIe now.",
        (*DEVICE, "direction"),
    )  # fmt: skip
    families.counter("gpu_ecc_errors", "ECC errors since the driver was loaded.", (*DEVICE, "kind"))
    families.counter("gpu_pcie_replays", "Packets that PCIe sent again.", DEVICE)
    for name, what in (
        ("gpu_up", "Whether the device answers (0: it has fallen off the bus)."),
        ("gpu_temperature_celsius", "Temperature of the processor."),
        ("gpu_power_watts", "Power drawn now."),
        ("gpu_power_limit_watts", "The limit of power in force."),
        ("gpu_ecc_enabled", "Whether ECC is on."),
        ("gpu_row_remap_pending", "Whether rows of memory wait for a reset to be replaced."),
    ):
        families.gauge(name, what, DEVICE)


def _add_device(families: Families, own: tuple[str, str], device: LiveDevice) -> None:
    of = device.accelerator
    labels = *own, str(device.number), of.pci or ""
    families.add("gpu_up", float(device.up), *labels)
    if not device.up:
        return
    families.add("gpu_info", 1.0, *labels, of.model, of.uuid or "", of.driver or "")
    families.add("gpu_temperature_celsius", of.temperature, *labels)
    families.add("gpu_power_watts", of.power, *labels)
    families.add("gpu_power_limit_watts", of.power_limit, *labels)
    families.add("gpu_ecc_enabled", _number(of.ecc), *labels)
    families.add("gpu_row_remap_pending", _number(of.remap_pending), *labels)
    families.add("gpu_clock_hertz", of.clock, *labels, "sm")
    families.add("gpu_clock_hertz", device.clock_memory, *labels, "memory")
    families.add("gpu_clock_max_hertz", of.max_clock, *labels, "sm")
    families.add("gpu_clock_max_hertz", of.memory_clock, *labels, "memory")
    families.add("gpu_pcie_replays", of.pcie_replays, *labels)
    families.add("gpu_ecc_errors", device.ecc_corrected, *labels, "corrected")
    families.add("gpu_ecc_errors", of.ecc_errors, *labels, "uncorrected")
    families.add("gpu_pcie_throughput_bytes_per_second", device.pcie_sent, *labels, "sent")
    families.add("gpu_pcie_throughput_bytes_per_second", device.pcie_received, *labels, "received")
    if of.clock is not None:
        for reason in dict.fromkeys((*REASONS, *of.throttled)):
            families.add("gpu_throttled", float(reason in of.throttled), *labels, reason)
    _add_links(families, labels, device)


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _declare_links(families: Families) -> None:
    families.gauge("fabric_link_info", "Where a link leads, always 1.",
                   (*LINK, "remote", "version"))  # fmt: skip
    families.gauge("fabric_link_up", "Whether a link is active.", LINK)
    families.gauge(
        "fabric_link_rate_bytes_per_second", "Signalling rate of one direction of a link.", LINK
    )
    families.counter("fabric_link_errors", "Errors that a link counted.", LINK)
    families.counter("fabric_link_bytes", "Payload that a link carried.", (*LINK, "direction"))


def _add_links(families: Families, device: tuple[str, ...], of: LiveDevice) -> None:
    for link in of.accelerator.links:
        own = *device, link.kind, str(link.index)
        families.add("fabric_link_info", 1.0, *own, link.remote or "", link.version or "")
        families.add("fabric_link_up", _number(link.active), *own)
        families.add("fabric_link_rate_bytes_per_second", _rate(link), *own)
        families.add("fabric_link_errors", link.errors, *own)
    for traffic in of.traffic:
        own = *device, traffic.kind, str(traffic.index)
        families.add("fabric_link_bytes", traffic.sent, *own, "sent")
        families.add("fabric_link_bytes", traffic.received, *own, "received")


def _rate(link: FabricLink) -> float | None:
    return link.rate if link.active else None


# The last results as metrics.


FIGURES = {
    "B/s": ("bandwidth_bytes_per_second", "payload bytes a second"),
    "B/s (STREAM)": ("stream_bytes_per_second", "bytes a second as STREAM counts them"),
    "s": ("latency_seconds", "seconds of one access, exchange or copy"),
    "s (collective)": ("collective_seconds", "seconds of one collective"),
    "1/s": ("events_per_second", "events a second"),
    "FLOP/s": ("flops_per_second", "floating-point operations a second"),
    "1 (hidden)": ("hidden_ratio", "share of a time that is hidden, 0 to 1"),
    "tokens/s": ("tokens_per_second", "tokens a second of all sequences together"),
    "requests/s": ("requests_per_second", "requests a second that are answered"),
    "s (step)": ("step_seconds", "seconds of one training step of all devices"),
}
"""The end of a metric's name and the meaning of its values, by the unit of a result."""
STATUSES: tuple[Status, ...] = get_args(Status)
VERDICTS = {"degraded": -2.0, "low": -1.0, "perhaps low": -0.5, "ok": 0.0, "high": 1.0}
RUN = ("host", "simulated", "label")
CELL = (*RUN, "benchmark", "backend", "size", "row", "column", "repeat")
_KINDS = {
    "figure": ("", "The last figure of a cell"),
    "expected": ("expected_", "What the hardware should achieve in a cell"),
    "nominal": (
        "nominal_", "What a cell would achieve if every link of its path ran at its best"
    ),
}  # fmt: skip
"""The prefix of a metric's name and its meaning, by the field of a figure."""


def of_results(results: Results) -> Families:
    """Returns the metrics of results. Ages are not included, because they change all the time."""
    families = Families()
    _add_runs(families, results)
    _declare_cells(families)
    labels = {
        id(run): _labels(run) for run in {id(run): run for run, _ in results.figures}.values()
    }
    for run, figure in results.figures:
        of = *figure.sheet, *figure.place, figure.repeat or ""
        own = *labels[id(run)], *map(str, of)
        families.add("cell_status", float(STATUSES.index(figure.status)), *own)
        families.add("cell_verdict", VERDICTS.get(figure.verdict), *own)
        families.add("cell_share_ratio", figure.share, *own)
        families.add("cell_measured_timestamp_seconds", _ended(run), *own)
        if figure.unit in FIGURES:
            for name, (kind, _) in _KINDS.items():
                value = getattr(figure, name)
                families.add(f"cell_{kind}{FIGURES[figure.unit][0]}", value, *own)
    return families


def _ended(run: PastRun) -> float:
    """Returns when a run ended, or began if it was interrupted, in seconds since 1970."""
    return _seconds(run.finished or run.started) or 0.0


def _seconds(moment: str | None) -> float | None:
    return None if (found := microseconds(moment)) is None else found * SECOND


def _labels(run: PastRun) -> tuple[str, str, str]:
    return run.host, str(run.simulated).lower(), run.label


def _add_runs(families: Families, results: Results) -> None:
    families.gauge(
        "last_run_info", "The last run of a label on a host, always 1.",
        (*RUN, "run", "profile", "accelerators"),
    )  # fmt: skip
    families.gauge("last_run_status", "1 for the status of the last run.", (*RUN, "status"))
    families.gauge("last_run_verdict", "1 for the verdict on the last run.", (*RUN, "verdict"))
    for name, what in (
        ("last_run_started_timestamp_seconds", "When the last run began."),
        ("last_run_finished_timestamp_seconds", "When it ended; absent if it was interrupted."),
        ("last_run_finished", "Whether the last run came to its end (1) or was interrupted (0)."),
        ("last_run_cells", "Cells of the last run."),
        ("last_run_cells_passed", "Cells of the last run that passed."),
        ("last_run_cells_low", "Cells of the last run that are lower than the hardware allows."),
    ):
        families.gauge(name, what, RUN)
    for run in results.runs:
        own = _labels(run)
        families.add("last_run_info", 1.0, *own, run.id, run.profile, run.accelerators)
        families.add_state("last_run_status", run.status, STATUSES, *own)
        if run.verdict is not None:
            families.add_state("last_run_verdict", run.verdict, get_args(RunVerdict), *own)
        families.add("last_run_started_timestamp_seconds", _seconds(run.started), *own)
        families.add("last_run_finished_timestamp_seconds", _seconds(run.finished), *own)
        families.add("last_run_finished", float(run.finished is not None), *own)
        families.add("last_run_cells", float(run.cells), *own)
        families.add("last_run_cells_passed", float(run.passed), *own)
        families.add("last_run_cells_low", float(run.low), *own)


def _declare_cells(families: Families) -> None:
    numbered = ", ".join(f"{number} {status}" for number, status in enumerate(STATUSES))
    families.gauge("cell_status", f"Status of a cell: {numbered}.", CELL)
    families.gauge(
        "cell_verdict", "-2 what links below their best allow, -1 lower than the hardware allows, "
        "-0.5 perhaps lower, 0 as it should be, 1 higher than is possible; absent where that is "
        "not known.", CELL,
    )  # fmt: skip
    families.gauge(
        "cell_share_ratio", "The figure as a share of what the hardware should reach when nothing "
        "is degraded; absent where that is not known.", CELL,
    )  # fmt: skip
    families.gauge(
        "cell_measured_timestamp_seconds", "When the run that measured the cell ended.", CELL
    )
    for name, counted in FIGURES.values():
        for kind, what in _KINDS.values():
            families.gauge(f"cell_{kind}{name}", f"{what}: {counted}.", CELL)


def add_ages(families: Families, results: Results, now: float) -> None:
    """Adds the ages of the last runs: the time since each run ended. For an interrupted run, this
    is the time since it began."""
    families.gauge("last_run_age_seconds", "Time since the last run ended.", RUN)
    for run in results.runs:
        age = max(0.0, now - _ended(run))
        families.add("last_run_age_seconds", age, *_labels(run))
