"""Emulates bandwidthTest of the CUDA samples (up to 12.8, Samples/1_Utilities). As in the sample, a
copy within a device counts bytes read and written, and `--device=all` adds up devices' rates. The
device's clock times copies if it has one, even with `--cputiming`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from linkgauge.cli.tool import Where, helpful, show
from linkgauge.cli.tool_options import (
    ToolOption,
    ToolOptions,
    UsageError,
    help_lines,
    one_of,
    option,
    whole,
)
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import Settings

from .copy_cells import PARITY, CopyPath, Meter, metered, shown

_O = TypeVar("_O", bound=ToolOptions)
TOOL = "bandwidthTest"
_LOOPS = 100
_QUICK = 32_000_000
_LARGEST = 64_000_000
_SHMOO = (
    (20_000, 1_000), (50_000, 2_000), (100_000, 10_000), (1_000_000, 100_000),
    (16_000_000, 1_000_000), (32_000_000, 2_000_000), (_LARGEST + 1, 4_000_000),
)  # fmt: skip
"""Pairs of a size and the step to the next size; each step applies below its size."""

NOTE = (
    "\nNOTE: The CUDA Samples are not meant for performance measurements. "
    "Results may vary when GPU Boost is enabled."
)
_KINDS = {
    "htod": ("Host to Device", "H2D"),
    "dtoh": ("Device to Host", "D2H"),
    "dtod": ("Device to Device", "D2D"),
}
"""The kinds of copies in the order of measurement, with their names in text and CSV."""


def _device(written: str) -> int | None:
    return None if written == "all" else whole(written)


HELP_OPTION = ToolOption("--help", "Show this help")
_SIZE: dict[str, Any] = {"read": whole, "least": 1, "most": 1 << 40}


class SampleOptions(ToolOptions):
    """Options of bandwidthTest. `device` is None for all."""

    csv: bool = option("--csv", "Print a line for each figure")
    device: int | None = option(
        "--device=[deviceno]", "The device to use (default: 0)\n"
        "  all - the sum of all devices\n  0,1,2,...,n - this device", _device, 0,
    )  # fmt: skip
    memory: str = option(
        "--memory=[MEMMODE]", "The host's memory\n  pageable - pageable memory\n"
        "  pinned   - non-pageable system memory (default)", one_of("pageable", "pinned"), "pinned",
    )  # fmt: skip
    mode: str = option(
        "--mode=[MODE]", "The sizes to measure\n  quick - one size (default)\n"
        "  range - the sizes that are given\n  shmoo - many sizes",
        one_of("quick", "range", "shmoo"), "quick",
    )  # fmt: skip
    htod: bool = option("--htod", "Host to device")
    dtoh: bool = option("--dtoh", "Device to host")
    dtod: bool = option("--dtod", "Within a device")
    wc: bool = option("--wc", "Write-combined pinned memory")
    cputiming: bool = option("--cputiming", "Accepted, without effect")
    noverify: bool = option("--noverify", "Do not compare the bytes")
    start: int = option("--start=[SIZE]", "First size in bytes, with --mode=range", **_SIZE)
    end: int = option("--end=[SIZE]", "Last size in bytes, with --mode=range", **_SIZE)
    increment: int = option("--increment=[SIZE]", "Step in bytes, with --mode=range", **_SIZE)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in _KINDS if getattr(self, kind)) or tuple(_KINDS)

    @property
    def sizes(self) -> Sequence[int]:
        if self.mode == "range":
            return range(self.start, self.end + 1, self.increment)
        return tuple(_shmoo()) if self.mode == "shmoo" else (_QUICK,)

    @property
    def host_memory(self) -> str:
        """Returns the kind of host memory."""
        return "pageable" if self.memory == "pageable" else "wc" if self.wc else ""


HELP = f"""\
Usage:  bandwidthTest [OPTION]...
Measures the bandwidth of copies from host to device, device to host and within a device

Example:  pinned memory, device to host, 1024 to 102400 bytes in steps of 1024
./bandwidthTest --memory=pinned --mode=range --start=1024 --end=102400 --increment=1024 --dtoh

Options:
{help_lines((HELP_OPTION, *SampleOptions.table()), 22)}"""


@helpful(HELP)
def run(arguments: Sequence[str], where: Where) -> int:
    options = sample_options(SampleOptions, arguments)
    _check(options)
    print("[CUDA Bandwidth Test] - Starting...")
    try:
        code = _measure(options, where)
    except LinkgaugeError:
        print("Result = FAIL", flush=True)
        raise
    print(f"Result = {'FAIL' if code else 'PASS'}")
    print(NOTE)
    return code


def sample_options(kind: type[_O], arguments: Sequence[str]) -> _O:
    """Reads options with 0 to 2 dashes, in any case. Raises UsageError for unknown options."""
    known = {flag.lower(): flag for option in kind.table() for flag in option.flags}
    words = []
    for argument in arguments:
        name, equals, value = argument.lstrip("-").partition("=")
        flag = known.get(f"--{name.lower()}")
        words.append(argument if flag is None else flag + equals + value)
    return kind.of(words)


def _check(options: SampleOptions) -> None:
    if options.memory == "pageable" and options.wc:
        raise UsageError("--wc needs --memory=pinned")
    given = [bound is not None for bound in (options.start, options.end, options.increment)]
    if given != [options.mode == "range"] * 3:
        raise UsageError("--mode=range needs --start, --end and --increment; no other mode does")
    if options.mode == "range" and options.start > options.end:
        raise UsageError("--start is greater than --end")


def _shmoo() -> Iterator[int]:
    """Yields the sizes of mode shmoo in bytes. As in the sample, the last is above 64 MB."""
    size = 0
    while size <= _LARGEST:
        size += next(step for below, step in _SHMOO if size < below)
        yield size


def _measure(options: SampleOptions, where: Where) -> int:
    settings = Settings(
        sizes=tuple(options.sizes[:1]),
        samples=1,
        loops=_LOOPS,
        verify=not options.noverify,
        engines=PARITY,
    )
    with metered(where, settings) as meter:
        devices = _chosen(meter.context.devices, options.device)
        print("Running on...\n")
        for device in devices:
            print(f" Device {device.index}: {device.model}")
        print(f" {options.mode.capitalize()} Mode\n", flush=True)
        for kind in options.kinds:
            rates = []
            for size in options.sizes:
                rates.append(_rate(meter, devices, kind, options.host_memory, size))
                if options.mode == "shmoo":
                    print(".", end="", flush=True)
            if options.mode == "shmoo":
                print()
            lines = _csv if options.csv else _readable
            show(lines(options, kind, len(devices), rates))
        return meter.exit_code


def _chosen(devices: Sequence[Device], index: int | None) -> Sequence[Device]:
    if index is None:
        print("\n!!!!!Cumulative Bandwidth to be computed from all the devices !!!!!!\n")
        return devices
    found = [device for device in devices if device.index == index]
    if not found:
        there = ", ".join(str(device.index) for device in devices)
        raise UsageError(f"--device {index}: the devices are {there}")
    return found


def _rate(
    meter: Meter, devices: Sequence[Device], kind: str, memory: str, size: int
) -> float | None:
    """Returns the sum of the devices' rates in GB/s, or None if a device has no rate."""
    ends = [(None if kind == "htod" else d, None if kind == "dtoh" else d) for d in devices]
    cells = meter.measure([[CopyPath(*pair, kind=memory).transfer()] for pair in ends], size=size)
    rates = [cell.summary.median for cell in cells if cell.summary is not None]
    if len(rates) < len(devices):
        return None
    # Within a device every byte is read and written.
    return sum(rates) / 1e9 * (2 if kind == "dtod" else 1)


def _readable(
    options: SampleOptions, kind: str, devices: int, rates: Sequence[float | None]
) -> Iterator[str]:
    yield f" {_KINDS[kind][0]} Bandwidth, {devices} Device(s)"
    yield f" {'PAGEABLE' if options.memory == 'pageable' else 'PINNED'} Memory Transfers"
    combined = " Write-Combined Memory Writes are Enabled" if options.wc else ""
    yield f"{combined}   Transfer Size (Bytes)\tBandwidth(GB/s)"
    for size, rate in zip(options.sizes, rates, strict=True):
        tab = "\t" if size < 10_000 else ""
        yield f"   {size}\t\t\t{tab}{shown(rate, '.1f')}"
    yield ""


def _csv(
    options: SampleOptions, kind: str, devices: int, rates: Sequence[float | None]
) -> Iterator[str]:
    name = _KINDS[kind][1]
    if kind != "dtod":
        paged = options.memory == "pageable"
        name += "-Paged" if paged else "-Pinned-WriteCombined" if options.wc else "-Pinned"
    for size, rate in zip(options.sizes, rates, strict=True):
        seconds = shown(None if rate is None else size / rate / 1e9, ".5f")
        yield (
            f"{TOOL}-{name}, Bandwidth = {shown(rate, '.1f')} GB/s, Time = {seconds} s, "
            f"Size = {size} bytes, NumDevsUsed = {devices}"
        )
