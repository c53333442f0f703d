"""How facts about devices are read from NVML by nvidia-ml-py. If a call fails (in a virtual
machine, without root, with an older driver), the fact is null, and `unknown` has the reason."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.by_name import by_name
from linkgauge.model.errors import DeviceLost, LinkgaugeError, Unsupported, pip_install
from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Accelerator, PciLink, Telemetry
from linkgauge.model.hardware.pcie import SPEEDS

from .nvlink import board, domain, fabric, read_links
from .questions import GPU_IS_LOST, Questions

# Which processes on a device do not belong to this program.

_PROGRAM_ARGUMENTS = 4
"""Two processes run the same program if this many arguments are equal: `python -P -c PROGRAM`."""


def others(pids: Iterable[int], root: Root = ROOT) -> tuple[int, ...] | None:
    """Returns those of `pids` that are not linkgauge's processes, or None if /proc hides one."""
    found = sorted(set(pids))
    if any(root.text(f"proc/{pid}/stat") is None for pid in found):
        return None
    return tuple(pid for pid in found if not _is_ours(pid, root))


def _is_ours(pid: int, root: Root) -> bool:
    fields = (root.text(f"proc/{pid}/stat") or "").rpartition(")")[2].split()
    is_sibling = fields[1:2] == [str(os.getppid())]
    own = _program(os.getpid(), root)
    return pid == os.getpid() or (is_sibling and bool(own) and _program(pid, root) == own)


def _program(pid: int, root: Root) -> list[str]:
    arguments = (root.text(f"proc/{pid}/cmdline") or "").split("\0")
    return arguments[:_PROGRAM_ARGUMENTS]


TRANSFERS_A_CLOCK = 2
"""Memory transfers per cycle of the clock that NVML reports. On an H200, 2 × 3201 MHz × 6144 bit is
4.92 TB/s."""
_REASONS = {
    0x002: "clocks set by the user",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clock setting",
}
"""Reasons for lower clocks, by the values of nvmlClocksEventReasons. The value 1 (idle) is left
out."""
_COMPUTE_MODES = ("default", "exclusive thread", "prohibited", "exclusive process")
NO_SAMPLES = 6
"""NVML_ERROR_NOT_FOUND: nvmlDeviceGetProcessUtilization has no sample of any process."""
_MHZ, _MILLI = 1e6, 1e-3


def open_library() -> Any:
    """Opens NVML. Raises Unsupported with a remedy if NVML is not available."""
    try:
        library = import_module("pynvml")
    except ImportError:
        raise Unsupported(
            "nvidia-ml-py, which reads links, clocks and errors, is not installed: "
            f"{pip_install('nvidia-ml-py')}"
        ) from None
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise Unsupported(f"nvmlInit: {error}: check that nvidia-smi works here") from error
    return library


def is_lost(asked: Questions) -> bool:
    library = asked.library
    try:
        library.nvmlDeviceGetTemperature(asked.handle, library.NVML_TEMPERATURE_GPU)
    except Exception as error:  # noqa: BLE001  # the binding's errors share no base class
        return getattr(error, "value", None) == GPU_IS_LOST
    return False


class Card(Protocol):
    """A GPU that NVML can find. `index` is the GPU's number in CUDA. `near` is the nearest NUMA
    node. The methods may raise LinkgaugeError."""

    @property
    def index(self) -> int: ...
    @property
    def model(self) -> str: ...
    @property
    def near(self) -> int: ...
    @property
    def is_instance(self) -> bool: ...
    def pci_address(self) -> str: ...
    def uuid(self) -> str: ...


class NvmlTelemetry:
    """Reads facts about the devices that this process uses. Without NVML, all facts are unknown."""

    def __init__(self, devices: Sequence[Card]) -> None:
        self._devices = devices
        self._handles: dict[int, Any] = {}
        self._library: Any = None
        self._why = "NVML is closed"
        try:
            self._library = open_library()
        except Unsupported as error:
            self._why = str(error)

    def inventory(self) -> tuple[Accelerator, ...]:
        peers: dict[str, str] = {}
        for device in self._devices:
            with suppress(LinkgaugeError):  # _describe reports it
                peers[device.pci_address()] = f"cuda:{device.index}"
        return tuple(self._describe(device, peers) for device in self._devices)

    def _describe(self, device: Card, peers: dict[str, str]) -> Accelerator:
        memory = f"cuda:{device.index}"
        try:
            pci, uuid = device.pci_address(), device.uuid()
            asked = self._questions(device)
        except LinkgaugeError as error:
            return Accelerator(memory=memory, model=device.model, unknown=(Gap(str(error)),))
        return describe(asked, Accelerator(memory=memory, model=device.model, pci=pci, uuid=uuid),
                        device.near, peers)  # fmt: skip

    def sense(self, indices: Sequence[int]) -> tuple[Telemetry, ...]:
        """Reads the sensors of these devices. Devices that NVML does not know are left out."""
        senses: list[Telemetry] = []
        for index in indices:
            with suppress(LinkgaugeError):
                senses.append(sense(self._questions(self._devices[index]), f"cuda:{index}"))
        return tuple(senses)

    def domain(self, index: int) -> str | None:
        with suppress(LinkgaugeError):
            return domain(fabric(self._questions(self._devices[index])))
        return None

    def lost_device(self) -> str | None:
        for device in self._devices:
            try:
                lost = is_lost(self._questions(device))
            except LinkgaugeError as error:
                lost = isinstance(error, DeviceLost)
            if lost:
                return f"cuda:{device.index}"
        return None

    def _questions(self, device: Card) -> Questions:
        library = self._library
        if library is None:
            raise Unsupported(f"NVML: {self._why}")
        if device.index not in self._handles:
            try:
                self._handles[device.index] = _handle(library, device)
            except library.NVMLError as error:
                if getattr(error, "value", None) == GPU_IS_LOST:
                    raise DeviceLost("NVML", f"cuda:{device.index}: {error}") from error
                raise Unsupported(
                    f"NVML does not know cuda:{device.index} ({device.pci_address()}): {error}: "
                    "check that nvidia-smi shows it here"
                ) from error
        return Questions(library, self._handles[device.index])

    def close(self) -> None:
        """Closes NVML. May be called again. Other threads that ask NVML meanwhile get no error."""
        library, self._library = self._library, None
        if library is not None:
            self._handles.clear()
            library.nvmlShutdown()


def _handle(library: Any, device: Card) -> Any:
    # A MIG instance has no handle of its own for links and clocks: its GPU's is used.
    if not device.is_instance:
        return library.nvmlDeviceGetHandleByPciBusId(device.pci_address())
    instance = library.nvmlDeviceGetHandleByUUID(device.uuid())
    return library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance)


def sense(asked: Questions, memory: str) -> Telemetry:
    library = asked.library
    generation = asked.ask("link speed", "nvmlDeviceGetCurrPcieLinkGeneration")
    gpu = library.NVML_TEMPERATURE_GPU
    return Telemetry(
        memory=memory,
        link_speed=_speed(generation),
        link_width=asked.ask("link width", "nvmlDeviceGetCurrPcieLinkWidth") or None,
        clock=asked.scaled(_MHZ, "clock", "nvmlDeviceGetClockInfo", library.NVML_CLOCK_SM),
        temperature=asked.scaled(1.0, "temperature", "nvmlDeviceGetTemperature", gpu),
        power=asked.scaled(_MILLI, "power", "nvmlDeviceGetPowerUsage"),
        throttled=_throttled(asked),
        pcie_replays=asked.ask("PCIe replays", "nvmlDeviceGetPcieReplayCounter"),
    )


def describe(asked: Questions, known: Accelerator, near: int, peers: dict[str, str]) -> Accelerator:
    library, now = asked.library, sense(asked, known.memory)
    generation = asked.ask("highest link speed", "nvmlDeviceGetMaxPcieLinkGeneration")
    width = asked.ask("highest link width", "nvmlDeviceGetMaxPcieLinkWidth") or None
    clock = asked.scaled(_MHZ, "memory clock", "nvmlDeviceGetMaxClockInfo", library.NVML_CLOCK_MEM)
    bus = asked.ask("memory bus", "nvmlDeviceGetMemoryBusWidth") or None
    rate = clock * TRANSFERS_A_CLOCK * bus / 8 if clock and bus else None
    remapped = asked.ask("row remapping", "nvmlDeviceGetRemappedRows")
    mig = asked.ask("MIG", "nvmlDeviceGetMigMode")
    bar1 = asked.ask("BAR1", "nvmlDeviceGetBAR1MemoryInfo")
    used = asked.ask("utilization", "nvmlDeviceGetUtilizationRates")
    sm = library.NVML_CLOCK_SM
    uncorrected = library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC
    processes = _processes(asked)
    return by_name(
        Accelerator,
        now,
        known,
        driver=asked.system("driver version", "nvmlSystemGetDriverVersion"),
        library=asked.system("NVML version", "nvmlSystemGetNVMLVersion"),
        firmware=asked.ask("VBIOS version", "nvmlDeviceGetVbiosVersion"),
        link=PciLink(now.link_speed, now.link_width, _speed(generation), width),
        links=read_links(asked, near, peers),
        memory_clock=clock,
        memory_bus=bus,
        memory_rate=rate,
        max_clock=asked.scaled(_MHZ, "highest clock", "nvmlDeviceGetMaxClockInfo", sm),
        cores=asked.ask("cores", "nvmlDeviceGetNumGpuCores") or None,
        capability=_capability(asked),
        locked_clock=_application_clock(asked),
        power_limit=asked.scaled(_MILLI, "power limit", "nvmlDeviceGetEnforcedPowerLimit"),
        power_default=asked.scaled(
            _MILLI, "default power limit", "nvmlDeviceGetPowerManagementDefaultLimit"
        ),
        ecc=asked.switch("ECC", "nvmlDeviceGetCurrentEccMode"),
        ecc_errors=asked.ask("ECC errors", "nvmlDeviceGetTotalEccErrors", *uncorrected),
        remap_pending=None if remapped is None else bool(remapped[2]),
        mig=None if mig is None else bool(mig[0]),
        persistence=asked.switch("persistence mode", "nvmlDeviceGetPersistenceMode"),
        compute_mode=_named(_COMPUTE_MODES, asked.ask("compute mode", "nvmlDeviceGetComputeMode")),
        bar1_bytes=None if bar1 is None else int(bar1.bar1Total),
        processes=processes,
        process_use=_process_use(asked, processes) if processes else None,
        utilization=None if used is None else used.gpu / 100,
        **board(asked, known.model),
        **fabric(asked),
        unknown=tuple(asked.unknown),
    )


def _speed(generation: int | None) -> float | None:
    return None if not generation or generation > len(SPEEDS) else SPEEDS[generation - 1]


def _throttled(asked: Questions) -> tuple[str, ...]:
    reasons = asked.ask("throttling", "nvmlDeviceGetCurrentClocksThrottleReasons") or 0
    return tuple(word for bit, word in _REASONS.items() if reasons & bit)


def _named(names: Sequence[str], number: int | None) -> str | None:
    if number is None:
        return None
    return names[number] if 0 <= number < len(names) else str(number)


def _capability(asked: Questions) -> str | None:
    found = asked.ask("compute capability", "nvmlDeviceGetCudaComputeCapability")
    return None if found is None else ".".join(map(str, found))


def _application_clock(asked: Questions) -> float | None:
    """Returns the application clock in Hz, or None if it is the default or unknown."""
    library = asked.library
    ask = partial(asked.ask, "application clock", "nvmlDeviceGetClock", library.NVML_CLOCK_SM)
    target = ask(library.NVML_CLOCK_ID_APP_CLOCK_TARGET)
    usual = ask(library.NVML_CLOCK_ID_APP_CLOCK_DEFAULT)
    return None if target is None or target == usual else target * _MHZ


def _processes(asked: Questions) -> tuple[int, ...] | None:
    running = [
        asked.ask("processes", f"nvmlDeviceGet{kind}RunningProcesses")
        for kind in ("Compute", "Graphics")
    ]
    known = [one for one in running if one is not None]
    if not known:
        return None
    found = others({int(process.pid) for some in known for process in some})
    if found is None:
        asked.miss("processes", "they are in another PID namespace: look outside the container")
    return found


def _process_use(asked: Questions, processes: Sequence[int]) -> tuple[float, ...] | None:
    try:
        samples = asked.library.nvmlDeviceGetProcessUtilization(asked.handle, 0)
    except Exception as error:  # noqa: BLE001  # the binding's errors share no base class
        if getattr(error, "value", None) != NO_SAMPLES:
            return None
        samples = ()  # no process used the device
    used = {int(sample.pid): sample.smUtil / 100 for sample in samples}
    return tuple(used.get(pid, 0.0) for pid in processes)
