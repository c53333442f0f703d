"""Collects metrics in families, which prometheus-client turns into text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from linkgauge.history.records import microseconds
from linkgauge.judge.network_counters import meaning_of
from linkgauge.machine.extras import needed
from linkgauge.model.documents.history import Figure, PastRun
from linkgauge.model.documents.result import RunVerdict, Status
from linkgauge.model.hardware.inventory import PciFunction
from linkgauge.model.hardware.live import InventoryReading, LiveDevice
from linkgauge.model.hardware.network import NetworkCounters
from linkgauge.model.printable import printable

from .results import SECOND, Results

if TYPE_CHECKING:
    from prometheus_client.core import Metric


PREFIX = "linkgauge_"
END = b"# EOF\n"
"""The last line of OpenMetrics."""


Labels = Mapping[str, str]


class Families:
    """Collects metrics in families. Leaves out a sample whose value is None."""

    def __init__(self) -> None:
        self._core = needed("prometheus_client.core", "exporter")
        self._found: dict[str, Any] = {}

    def add(
        self, name: str, help: str, value: float | None, labels: Labels, kind: str = "Gauge"
    ) -> None:
        if value is None:
            return
        if name not in self._found:
            make = getattr(self._core, f"{kind}MetricFamily")
            self._found[name] = make(PREFIX + name, help, labels=tuple(labels))
        self._found[name].add_metric([*map(printable, labels.values())], float(value))

    def count(self, name: str, help: str, value: float | None, labels: Labels) -> None:
        self.add(name, help, value, labels, "Counter")

    def add_state(
        self, name: str, help: str, state: str, states: Iterable[str], labels: Labels, key: str
    ) -> None:
        """Adds a sample for each state, with label `key`: 1 for the current state, else 0."""
        for one in states:
            self.add(name, help, one == state, {**labels, key: one})

    def collect(self) -> list[Metric]:
        return [*self._found.values()]

    def text(self, *, is_open: bool = False) -> bytes:
        """Returns text format 0.0.4 or, if `is_open`, OpenMetrics without its last line."""
        client = needed("prometheus_client", "exporter")
        registry = client.CollectorRegistry(auto_describe=False)
        registry.register(self)
        if not is_open:
            return bytes(client.generate_latest(registry))
        openmetrics = needed("prometheus_client.openmetrics.exposition", "exporter")
        return bytes(openmetrics.generate_latest(registry)).removesuffix(END)


# What devices report now, as metrics.


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
    families = Families()
    own = {"host": host, "simulated": str(simulated).lower()}
    for one in seen:
        above = {function.address: function for function in one.functions}
        for function in one.functions:
            _add_function(families, own, function, above.get(function.parent or ""))
        for device in one.devices:
            _add_device(families, own, device)
        for counted in one.counters:
            _add_counters(families, own, counted)
    return families


def _add_counters(families: Families, own: Labels, counted: NetworkCounters) -> None:
    what = "What the kernel and adapters counted of a network, by what such a counter counts."
    for name, value in counted.values.items():
        meaning = meaning_of(counted.source, name)
        if meaning is not None and meaning.kind != "traffic":
            named = {"source": counted.source, "of": counted.of, "counter": name}
            families.count("network_events", what, value, {**own, **named, "kind": meaning.kind})


def _add_function(
    families: Families, own: Labels, function: PciFunction, above: PciFunction | None
) -> None:
    kind = _LIVE_KINDS.get((function.class_code or 0) >> 16, "other")
    labels = {**own, "pci": function.address, "kind": kind}
    if function.port not in ("root port", "downstream port"):
        # The link below a port is that of the function there.
        link, upper = function.link, function.link if above is None else above.link
        speed = _both(link.max_speed, upper.max_speed)
        for name, what, value in (
            ("speed_transfers_per_second", "Transfers a second of each lane, now.",
             _scaled(link.speed)),
            ("speed_max_transfers_per_second", "The most that both ends of the link can.",
             _scaled(speed)),
            ("width_lanes", "Lanes in use.", link.width),
            ("width_max_lanes", "Lanes that both ends of the link have.",
             _both(link.max_width, upper.max_width)),
        ):  # fmt: skip
            families.add(f"pcie_link_{name}", what, value, labels)
    for severity, count in (function.errors or {}).items():
        what = "Errors that the kernel counted (AER)."
        families.count("pcie_errors", what, count, {**labels, "severity": severity})


def _both(one: float | None, other: float | None) -> float | None:
    """Returns what both ends of a link support: the lower value, or the only known one."""
    return min((value for value in (one, other) if value is not None), default=None)


def _scaled(speed: float | None) -> float | None:
    return None if speed is None else speed * GT


def _add_device(families: Families, own: Labels, device: LiveDevice) -> None:
    of = device.accelerator
    labels = {**own, "device": str(device.number), "pci": of.pci or ""}
    up = "Whether the device answers (0: it has fallen off the bus)."
    families.add("gpu_up", up, device.up, labels)
    if not device.up:
        return
    names = {"model": of.model, "uuid": of.uuid or "", "driver": of.driver or ""}
    families.add("gpu_info", "Always 1.", 1, labels | names)
    if of.clock is not None:
        for reason in dict.fromkeys((*REASONS, *of.throttled)):
            what = "Whether this holds the clock down."
            families.add("gpu_throttled", what, reason in of.throttled, labels | {"reason": reason})
    moved = ("pcie_throughput_bytes_per_second", "What the device moves over PCIe now.")
    for name, what, value, more in (
        ("clock_hertz", "The clock now.", of.clock, {"clock": "sm"}),
        ("clock_hertz", "The clock now.", device.clock_memory, {"clock": "memory"}),
        ("clock_max_hertz", "The highest clock.", of.max_clock, {"clock": "sm"}),
        ("clock_max_hertz", "The highest clock.", of.memory_clock, {"clock": "memory"}),
        (*moved, device.pcie_sent, {"direction": "sent"}),
        (*moved, device.pcie_received, {"direction": "received"}),
        ("temperature_celsius", "Temperature of the processor.", of.temperature, {}),
        ("power_watts", "Power drawn now.", of.power, {}),
        ("power_limit_watts", "The limit of power in force.", of.power_limit, {}),
        ("ecc_enabled", "Whether ECC is on.", of.ecc, {}),
        ("row_remap_pending", "Whether rows of memory wait for a reset to be replaced.",
         of.remap_pending, {}),
    ):  # fmt: skip
        families.add(f"gpu_{name}", what, value, labels | more)
    errors = ("gpu_ecc_errors", "ECC errors since the driver was loaded.")
    families.count(*errors, device.ecc_corrected, labels | {"kind": "corrected"})
    families.count(*errors, of.ecc_errors, labels | {"kind": "uncorrected"})
    replays = "Packets that PCIe sent again."
    families.count("gpu_pcie_replays", replays, of.pcie_replays, labels)
    _add_links(families, labels, device)


def _add_links(families: Families, device: Labels, of: LiveDevice) -> None:
    for link in of.accelerator.links:
        own = {**device, "kind": link.kind, "link": str(link.index)}
        ends = {"remote": link.remote or "", "version": link.version or ""}
        families.add("fabric_link_info", "Where a link leads, always 1.", 1, own | ends)
        families.add("fabric_link_up", "Whether a link is active.", link.active, own)
        rate = "Signalling rate of one direction of a link."
        bytes_ = link.rate if link.active else None
        families.add("fabric_link_rate_bytes_per_second", rate, bytes_, own)
        families.count("fabric_link_errors", "Errors that a link counted.", link.errors, own)
    for traffic in of.traffic:
        own = {**device, "kind": traffic.kind, "link": str(traffic.index)}
        for way, moved in (("sent", traffic.sent), ("received", traffic.received)):
            what = "Payload that a link carried."
            families.count("fabric_link_bytes", what, moved, own | {"direction": way})


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
VERDICTS = {
    "degraded": -2.0, "low": -1.0, "perhaps low": -0.5, "waived": -0.25, "ok": 0.0, "high": 1.0,
}  # fmt: skip
_KINDS = {
    "figure": ("", "The last figure of a cell"),
    "expected": ("expected_", "What the hardware should achieve in a cell"),
    "nominal": (
        "nominal_", "What a cell would achieve if every link of its path ran at its best"
    ),
}  # fmt: skip
"""The prefix of a metric's name and its meaning, by the field of a figure."""


_HELP = {
    "status": f"Status of a cell: {', '.join(f'{n} {one}' for n, one in enumerate(STATUSES))}.",
    "verdict": "-2 what links below their best allow, -1 lower than the hardware allows, -0.5 "
    "perhaps lower, -0.25 lower and accepted by a waiver, 0 as it should be, 1 higher than is "
    "possible; absent where that is not known.",
    "share_ratio": "The figure as a share of what the hardware should reach when nothing is "
    "degraded; absent where that is not known.",
    "measured_timestamp_seconds": "When the run that measured the cell ended.",
}


def of_results(results: Results) -> Families:
    families = Families()
    for run in results.runs:
        _add_run(families, run)
    for run, figure in results.figures:
        _add_figure(families, run, figure)
    return families


def _add_figure(families: Families, run: PastRun, figure: Figure) -> None:
    of = (*figure.table, *figure.place, figure.repeat or "")
    names = ("benchmark", "backend", "size", "row", "column", "repeat")
    own = {**_labels(run), **dict(zip(names, map(str, of), strict=True))}
    values = {
        "status": STATUSES.index(figure.status),
        "verdict": VERDICTS.get(figure.verdict),
        "share_ratio": figure.share,
        "measured_timestamp_seconds": _ended(run),
    }
    for name, value in values.items():
        families.add(f"cell_{name}", _HELP[name], value, own)
    if figure.unit in FIGURES:
        end, counted = FIGURES[figure.unit]
        for name, (kind, what) in _KINDS.items():
            value = getattr(figure, name)
            families.add(f"cell_{kind}{end}", f"{what}: {counted}.", value, own)


def _ended(run: PastRun) -> float:
    """Returns a run's end, or its start if it was interrupted, in seconds since 1970."""
    return _seconds(run.finished or run.started) or 0.0


def _seconds(moment: str | None) -> float | None:
    return None if (found := microseconds(moment)) is None else found * SECOND


def _labels(run: PastRun) -> dict[str, str]:
    return {"host": run.host, "simulated": str(run.simulated).lower(), "label": run.label}


def _add_run(families: Families, run: PastRun) -> None:
    own = _labels(run)
    names = {"run": run.id, "profile": run.profile, "accelerators": run.accelerators}
    families.add("last_run_info", "The last run of a label on a host, always 1.", 1, own | names)
    what = "1 for the status of the last run."
    families.add_state("last_run_status", what, run.status, STATUSES, own, "status")
    if run.verdict is not None:
        what, states = "1 for the verdict on the last run.", get_args(RunVerdict)
        families.add_state("last_run_verdict", what, run.verdict, states, own, "verdict")
    for name, what, value in (
        ("started_timestamp_seconds", "When the last run began.", _seconds(run.started)),
        ("finished_timestamp_seconds", "When it ended; absent if it was interrupted.",
         _seconds(run.finished)),
        ("finished", "Whether the last run came to its end (1) or was interrupted (0).",
         run.finished is not None),
        ("cells", "Cells of the last run.", run.cells),
        ("cells_passed", "Cells of the last run that passed.", run.passed),
        ("cells_low", "Cells of the last run that are lower than the hardware allows.", run.low),
    ):  # fmt: skip
        families.add(f"last_run_{name}", what, value, own)


def add_ages(families: Families, results: Results, now: float) -> None:
    """Adds the seconds since each run ended or, if it was interrupted, since it began."""
    for run in results.runs:
        age, what = max(0.0, now - _ended(run)), "Time since the last run ended."
        families.add("last_run_age_seconds", what, age, _labels(run))
