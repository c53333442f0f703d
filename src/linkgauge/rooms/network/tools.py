"""Calls iperf3 and perftest, and parses their answers. Some versions of perftest write JSON without
quotes, so perftest's answers are parsed as YAML, which includes JSON."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

import msgspec
import yaml

from linkgauge.backends.protocol import SamplingPolicy
from linkgauge.machine.given import MOST_YAML, read_given
from linkgauge.model.errors import BackendError, InputError
from linkgauge.model.operations.operation import OutsideOperation

from .outside import Tool, ToolCall

IPERF_SECONDS = 1
"""The seconds of a run of iperf3. A run of a few bytes would end before the server counts any."""
_BY_TIME = SamplingPolicy(seconds=0.0, loops=1, most=4)
_MIB = 1 << 20


class _ToolSum(msgspec.Struct, frozen=True):
    bytes: float
    seconds: float


class _End(msgspec.Struct, frozen=True):
    sum_received: _ToolSum | None = None


class IperfReport(msgspec.Struct, frozen=True):
    end: _End = _End()
    error: str | None = None


class _Results(msgspec.Struct, frozen=True):
    size: int | None = msgspec.field(name="MsgSize", default=None)
    average: float | str | None = msgspec.field(name="BW_average", default=None)
    """The average rate in MiB/s. Texts are inf, nan and the like."""
    t_avg: float | str | None = None
    """The average latency in microseconds. For writes and sends, it is half of a round trip."""


class PerftestReport(msgspec.Struct, frozen=True):
    results: _Results


def tool_of(operation: OutsideOperation) -> Tool:
    program, _, memory = operation.partition(" ")
    if program == "iperf3":
        return Tool(program, "iperf3", iperf_command, iperf_seconds, policy=_BY_TIME)

    command = partial(perftest_command, program, memory)
    return Tool(program, "perftest", command, partial(perftest_seconds, program), memory or None)


def iperf_command(call: ToolCall) -> Sequence[str]:
    port = ("--port", str(call.port))
    if call.host is None:
        return "--server", "--one-off", *port
    streams = ("--parallel", str(call.streams))
    return "--client", call.host, *port, "--time", str(IPERF_SECONDS), *streams, "--json"


def iperf_seconds(call: ToolCall, said: bytes) -> float:
    """Returns the time of all loops at the received rate. Raises BackendError if iperf3 failed."""
    try:
        report = msgspec.json.decode(said, type=IperfReport)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BackendError("iperf3", f"its answer is not understood: {error}") from error
    received = report.end.sum_received
    if report.error is not None or received is None or min(received.bytes, received.seconds) <= 0:
        raise BackendError("iperf3", report.error or "it received nothing")
    return call.size * call.loops * received.seconds / received.bytes


def perftest_command(program: str, memory: str, call: ToolCall) -> Sequence[str]:
    words = ["--port", str(call.port), "--size", str(call.size), "--CPU-freq"]
    words += ["--iters", str(max(call.loops, 5))]  # fewer are refused
    if call.device is not None:
        words += ["--ib-dev", call.device]
    if program.endswith("_bw"):
        words += ["--noPeak", "--qp", str(call.streams)]
    if memory:
        words.append("--use_cuda=0")
    if memory == "--use_cuda_dmabuf":
        words.append(memory)
    words += ["--out_json", f"--out_json_file={call.file}"]
    return [*words, call.host] if call.host is not None else words


def perftest_seconds(program: str, call: ToolCall, _: bytes = b"") -> float:
    """Reads the time of all loops from the client's file. Raises BackendError without a figure."""
    try:
        text = read_given(call.file, MOST_YAML)
        report = msgspec.convert(yaml.safe_load(text), PerftestReport)
    except (OSError, ValueError, RecursionError, yaml.YAMLError, InputError) as error:
        raise BackendError(program, f"its answer is not understood: {error}") from error
    if program.endswith("_lat"):
        return _figure(program, "t_avg", report.results.t_avg) * 1e-6 * call.loops
    average = _figure(program, "BW_average", report.results.average)
    return call.size * call.loops / (average * _MIB)


def _figure(program: str, name: str, value: float | str | None) -> float:
    """Returns a figure. Raises BackendError for 0: perftest could not measure the CPU's clock."""
    if isinstance(value, float) and 0 < value < inf:
        return value
    why = "" if value is None else ": it did not find out the rate of the clock, as on a busy CPU"
    raise BackendError(program, f"its answer has no {name} ({value}){why}")
