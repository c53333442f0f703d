"""bandwidthTest of the CUDA samples (up to 12.8, Samples/1_Utilities), in quick mode. As there, a
copy within a device counts the bytes read and written, and `--device=all` adds up the rates of
single devices. The device's own clock times copies if it has one, even with `--cputiming`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkgauge.cli.tool import Where, helpful
from linkgauge.cli.tool_options import Parser, ToolOption, UsageError, help_lines, one_of, whole
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import Settings

from .copy_cells import PARITY, CopyPath, Meter, metered, shown

_LOOPS = 100
_SIZE = 32_000_000
NOTE = (
    "\nNOTE: The CUDA Samples are not meant for performance measurements. "
    "Results may vary when GPU Boost is enabled."
)
_KINDS = {"htod": "Host to Device", "dtoh": "Device to Host", "dtod": "Device to Device"}


def _device(written: str) -> int | None:
    return None if written == "all" else whole(written)


HELP_OPTION = ToolOption("--help", "Show this help")
OPTIONS = (
    ToolOption("--device=[deviceno]", "The device to use (default: 0)\n"
               "  all - the sum of all devices\n  0,1,2,...,n - this device", _device),
    ToolOption("--memory=[MEMMODE]", "The host's memory\n  pageable - pageable memory\n"
               "  pinned   - non-pageable system memory (default)", one_of("pageable", "pinned")),
    ToolOption("--mode=[MODE]", "quick - one size: linkgauge run sweeps others", one_of("quick")),
    ToolOption("--htod", "Host to device"),
    ToolOption("--dtoh", "Device to host"),
    ToolOption("--dtod", "Within a device"),
    ToolOption("--wc", "Write-combined pinned memory"),
    ToolOption("--cputiming", "Accepted, without effect"),
    ToolOption("--noverify", "Do not compare the bytes"),
)  # fmt: skip
HELP = f"""\
Usage:  bandwidthTest [OPTION]...
Measures the bandwidth of copies from host to device, device to host and within a device

Options:
{help_lines((HELP_OPTION, *OPTIONS), 22)}"""


@helpful(HELP)
def run(arguments: Sequence[str], where: Where) -> int:
    given = sample_arguments(arguments, OPTIONS)
    if given.get("memory") == "pageable" and "wc" in given:
        raise UsageError("--wc needs --memory=pinned")
    print("[CUDA Bandwidth Test] - Starting...")
    try:
        code = _measure(given, where)
    except LinkgaugeError:
        print("Result = FAIL", flush=True)
        raise
    print(f"Result = {'FAIL' if code else 'PASS'}")
    print(NOTE)
    return code


def sample_arguments(arguments: Sequence[str], options: Sequence[ToolOption]) -> dict[str, Any]:
    """As the sample does: `name`, `-name`, `--NAME` and `--name=value`, with any number of dashes.
    Raises UsageError."""
    known = {flag.lower(): flag for option in options for flag in option.flags}
    words = []
    for argument in arguments:
        name, equals, value = argument.lstrip("-").partition("=")
        flag = known.get(f"--{name.lower()}")
        words.append(argument if flag is None else flag + equals + value)
    return Parser(options).given(words)


def _measure(given: dict[str, Any], where: Where) -> int:
    settings = Settings(
        sizes=(_SIZE,), samples=1, loops=_LOOPS, verify="noverify" not in given, engines=PARITY
    )
    memory = "pageable" if given.get("memory") == "pageable" else "wc" if "wc" in given else ""
    with metered(where, settings) as gauge:
        devices = _chosen(gauge.context.devices, given.get("device", 0))
        print("Running on...\n")
        for device in devices:
            print(f" Device {device.index}: {device.model}")
        print(" Quick Mode\n", flush=True)
        for kind in tuple(kind for kind in _KINDS if kind in given) or _KINDS:
            print(f" {_KINDS[kind]} Bandwidth, {len(devices)} Device(s)")
            print(f" {'PAGEABLE' if memory == 'pageable' else 'PINNED'} Memory Transfers")
            combined = " Write-Combined Memory Writes are Enabled" if memory == "wc" else ""
            print(f"{combined}   Transfer Size (Bytes)\tBandwidth(GB/s)")
            rate = shown(_rate(gauge, devices, kind, memory), ".1f")
            print(f"   {_SIZE}\t\t\t{rate}\n", flush=True)
        return gauge.exit_code


def _chosen(devices: Sequence[Device], index: int | None) -> Sequence[Device]:
    """All if `index` is None. Raises UsageError if there is no such device."""
    if index is None:
        print("\n!!!!!Cumulative Bandwidth to be computed from all the devices !!!!!!\n")
        return devices
    found = [device for device in devices if device.index == index]
    if not found:
        there = ", ".join(str(device.index) for device in devices)
        raise UsageError(f"--device {index}: the devices are {there}")
    return found


def _rate(gauge: Meter, devices: Sequence[Device], kind: str, memory: str) -> float | None:
    """The sum over all devices in GB/s. None if any device has no rate."""
    ends = [(None if kind == "htod" else d, None if kind == "dtoh" else d) for d in devices]
    cells = gauge.measure([[CopyPath(*pair, kind=memory).transfer()] for pair in ends])
    rates = [cell.summary.median for cell in cells if cell.summary is not None]
    if len(rates) < len(devices):
        return None
    # Within a device every byte is read and written.
    return sum(rates) / 1e9 * (2 if kind == "dtod" else 1)
