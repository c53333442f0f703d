"""bandwidthTest of the CUDA samples: copies of each size between host and device, a hundred times.

Source: cuda-samples up to 12.8, Samples/1_Utilities/bandwidthTest (options, sizes, output). As in
the sample, a copy within a device counts the bytes read and written, and `--device=all` adds up the
rates of single devices. Copies are timed by the device's own clock if it has one, even with
`--cputiming`. `--noverify` skips the comparison of the bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from linkgauge.cli import tool_options as base
from linkgauge.cli.tool import Where, show
from linkgauge.cli.tool_options import UsageError
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import Settings

from .copy_cells import PARITY, CopyPath, Meter, metered, shown

TOOL = "bandwidthTest"
_LOOPS = 100
_QUICK = 32_000_000
_LARGEST = 64_000_000
_SHMOO = (
    (20_000, 1_000), (50_000, 2_000), (100_000, 10_000), (1_000_000, 100_000),
    (16_000_000, 1_000_000), (32_000_000, 2_000_000), (_LARGEST + 1, 4_000_000),
)  # fmt: skip
"""Pairs of a size and the step to the next size; each step applies below its size."""

_RANGE = {
    "start": "a starting size in range", "end": "an end size in range",
    "increment": "an increment in user",
}  # fmt: skip
"""What each option of the range mode gives, and the mode, as the sample asks for it."""
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
HELP = """\
Usage:  bandwidthTest [OPTION]...
Measures the bandwidth of copies from host to device, device to host and within a device

Example:  pinned memory, device to host, 1024 to 102400 bytes in steps of 1024
./bandwidthTest --memory=pinned --mode=range --start=1024 --end=102400 --increment=1024 --dtoh

Options:
--help\tShow this help
--csv\tPrint a line for each figure
--device=[deviceno]\tThe device to use
  all - the sum of all devices
  0,1,2,...,n - this device
--memory=[MEMMODE]\tThe host's memory
  pageable - pageable memory
  pinned   - non-pageable system memory
--mode=[MODE]\tThe sizes to measure
  quick - one size
  range - the sizes that are given
  shmoo - many sizes
--htod\tHost to device
--dtoh\tDevice to host
--dtod\tWithin a device
--wc\tWrite-combined pinned memory
--cputiming\tAccepted, without effect
--noverify\tDo not compare the bytes
Range mode options
--start=[SIZE]\tFirst size in bytes
--end=[SIZE]\tLast size in bytes
--increment=[SIZE]\tStep in bytes"""


class SampleOptions(msgspec.Struct, frozen=True):
    """The options of a command line, after checks. `device` is an index, or None for all devices.
    `memory` is the kind of host memory in linkgauge's notation."""

    sizes: Sequence[int]
    mode: str
    kinds: tuple[str, ...]
    device: int | None
    memory: str
    csv: bool
    verify: bool


def run(arguments: Sequence[str], where: Where) -> int:
    """Carries out a command line of the sample: measures, and prints the sample's output."""
    print("[CUDA Bandwidth Test] - Starting...")
    try:
        given = sample_arguments(arguments, HELP)
        if "help" in given:
            print(HELP)
            code = 0
        else:
            code = _measure(_options(given), where)
    except UsageError as error:
        print(f"{error}\nSee --help for more information")
        code = error.exit_code
    except LinkgaugeError:
        print("Result = FAIL", flush=True)
        raise
    print(f"Result = {'FAIL' if code else 'PASS'}")
    print(NOTE)
    return code


def sample_arguments(arguments: Sequence[str], text: str) -> dict[str, str]:
    """Reads options as the sample does: `name`, `-name`, `--NAME` and `--name=value`, with any
    number of dashes. -h is --help. The help `text` lists the known options, one on each line.
    Raises UsageError for other options, and for a value that is missing or not allowed."""
    has_value = dict(re.findall(r"(?m)^--(\w+)(=?)", text))
    known = {name.lower(): name for name in has_value} | {"h": "help"}
    given: dict[str, str] = {}
    for argument in arguments:
        written, equals, value = argument.lstrip("-").partition("=")
        name = known.get(written.lower())
        if name is None:
            raise UsageError(f"Unknown option {argument}")
        if has_value[name] and not value:
            raise UsageError(f"Missing value - write --{name}=VALUE")
        if equals and not has_value[name]:
            raise UsageError(f"Illegal argument - --{name} takes no value")
        given[name] = value
    return given


def _options(given: Mapping[str, str]) -> SampleOptions:
    memory = given.get("memory", "pinned")
    if memory not in ("pinned", "pageable"):
        raise UsageError("Invalid memory mode - valid modes are pageable or pinned")
    if memory == "pageable" and "wc" in given:
        raise UsageError("Illegal argument - write-combined memory is pinned, not pageable")
    mode = given.get("mode", "quick")
    if mode not in ("quick", "range", "shmoo"):
        raise UsageError("Invalid mode - valid modes are quick, range, or shmoo")
    if mode != "range" and _RANGE.keys() & given.keys():
        raise UsageError("Illegal argument - start, end and increment need --mode=range")
    device = given.get("device", "0")
    return SampleOptions(
        sizes=_sizes(mode, given),
        mode=mode,
        kinds=tuple(kind for kind in _KINDS if kind in given) or tuple(_KINDS),
        device=None if device == "all" else whole("device", device, least=None),
        memory="pageable" if memory == "pageable" else "wc" if "wc" in given else "",
        csv="csv" in given,
        verify="noverify" not in given,
    )


def whole(name: str, written: str, least: int | None = 1) -> int:
    """Reads a whole number. Raises UsageError for any other text."""
    try:
        number = base.whole(written)
    except ValueError:
        raise UsageError(f"Illegal argument - {name} must be a number") from None
    if least is not None and number < least:
        raise UsageError(f"Illegal argument - {name} must be greater than zero")
    return number


def _sizes(mode: str, given: Mapping[str, str]) -> Sequence[int]:
    if mode == "quick":
        return (_QUICK,)
    if mode == "shmoo":
        return tuple(_shmoo())
    for name, what in _RANGE.items():
        if name not in given:
            raise UsageError(f"Must specify {what} mode")
    start, end = whole("start", given["start"]), whole("end", given["end"])
    if start > end:
        raise UsageError("Illegal argument - start is greater than end")
    return range(start, end + 1, whole("increment", given["increment"]))


def _shmoo() -> Iterator[int]:
    """Yields the sizes of the shmoo mode. As in the sample, the last size is above 64 MB."""
    size = 0
    while size <= _LARGEST:
        size += next(step for below, step in _SHMOO if size < below)
        yield size


def _measure(options: SampleOptions, where: Where) -> int:
    settings = Settings(
        sizes=tuple(options.sizes[:1]),
        samples=1,
        loops=_LOOPS,
        verify=options.verify,
        engines=PARITY,
    )
    with metered(where, settings) as gauge:
        devices = _chosen(gauge.context.devices, options.device)
        print("Running on...\n")
        for device in devices:
            print(f" Device {device.index}: {device.model}")
        print(f" {options.mode.capitalize()} Mode\n", flush=True)
        for kind in options.kinds:
            rates = []
            for size in options.sizes:
                rates.append(_rate(gauge, devices, kind, options.memory, size))
                if options.mode == "shmoo":
                    print(".", end="", flush=True)
            if options.mode == "shmoo":
                print()
            lines = _csv if options.csv else _readable
            show(lines(options, kind, len(devices), rates))
        return gauge.exit_code


def _chosen(devices: Sequence[Device], index: int | None) -> Sequence[Device]:
    """Returns the device with this index in a list, or the first device if it does not exist, as
    the sample does. If `index` is None, returns all devices."""
    if index is None:
        print("\n!!!!!Cumulative Bandwidth to be computed from all the devices !!!!!!\n")
        return devices
    for device in devices:
        if device.index == index:
            return (device,)
    first = devices[0].index
    print(f"\n!!!!!Invalid GPU number {index} given hence default gpu {first} will be used !!!!!")
    return devices[:1]


def _rate(
    gauge: Meter, devices: Sequence[Device], kind: str, memory: str, size: int
) -> float | None:
    """Returns the sum of the rates of all devices in GB/s. None if any device has no rate."""
    ends = [(None if kind == "htod" else d, None if kind == "dtoh" else d) for d in devices]
    cells = gauge.measure([[CopyPath(*pair, kind=memory).transfer()] for pair in ends], size=size)
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
    combined = " Write-Combined Memory Writes are Enabled" if options.memory == "wc" else ""
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
        name += {"pageable": "-Paged", "wc": "-Pinned-WriteCombined", "": "-Pinned"}[options.memory]
    for size, rate in zip(options.sizes, rates, strict=True):
        seconds = shown(None if rate is None else size / rate / 1e9, ".5f")
        yield (
            f"{TOOL}-{name}, Bandwidth = {shown(rate, '.1f')} GB/s, Time = {seconds} s, "
            f"Size = {size} bytes, NumDevsUsed = {devices}"
        )
