"""Runs other programs that measure between two ranks. The server runs at the destination."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from linkgauge.backends.protocol import Gated, SamplingPolicy, Timing
from linkgauge.machine.given import MOST_YAML, read_given
from linkgauge.machine.processes.command import end, start
from linkgauge.model.errors import BackendError, InputError, TookTooLong, Unsupported
from linkgauge.model.operations.operation import OutsideOperation
from linkgauge.model.ranks import nic_ends
from linkgauge.model.transfer import Transfer

LEAST_RATE = 100e6
"""A tool that moves fewer bytes/s than this may exceed its time limit."""
POLICY = SamplingPolicy(seconds=0.5, loops=2, most=4)
"""The sampling policy of measurements with tools. A run takes a few tenths of a second longer than
the measurement."""
_POLL = 0.01
_MOST_SAID = 300
_LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp (TCP_LISTEN)."""


class ToolCall(NamedTuple):
    """A tool's task: to move `size` bytes `loops` times. `device` is an RDMA device or None; `host`
    is None on the server."""

    size: int
    loops: int
    streams: int
    device: str | None
    host: str | None
    port: int
    file: Path


class Tool(NamedTuple):
    """A program that measures between ranks. `package` is a Debian package. `seconds` reads the
    time of all loops from the output or a file. `needs` must occur in the program's help."""

    program: str
    package: str
    command: Callable[[ToolCall], Sequence[str]]
    seconds: Callable[[ToolCall, bytes], float]
    needs: str | None = None
    policy: SamplingPolicy = POLICY


def find(tool: Tool) -> str:
    """Returns the program's path. Raises Unsupported without it, or without `needs` in its help."""
    path = shutil.which(tool.program)
    if path is None:
        raise Unsupported(f"{tool.program} is missing: apt install {tool.package}")
    if tool.needs is not None:
        said = subprocess.run(  # noqa: S603  # the program's help
            [path, "--help"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
        if tool.needs.encode() not in said.stdout + said.stderr:
            raise Unsupported(
                f"{tool.program} has no {tool.needs}: it was built without CUDA (perftest: "
                "./configure CUDA_H_PATH=.../cuda.h)"
            )
    return path


class Outside(Gated):
    def __init__(self, tool: Tool, transfer: Transfer, call: ToolCall, silent: float) -> None:
        self._tool, self._path = tool, find(tool)
        self.policy = tool.policy
        self._transfer, self._silent = transfer, silent
        self._folder = tempfile.TemporaryDirectory(prefix="linkgauge-")
        self._call = call._replace(file=Path(self._folder.name) / "said.json")
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def is_client(self) -> bool:
        return self._call.host is not None

    def arm(self, loops: int, batches: int = 1) -> None:
        """Starts a server, and returns when it listens. A client starts later, in `wait`."""
        super().arm(loops, batches)
        self._call = self._call._replace(loops=loops * batches)
        if self.is_client:
            return
        self._end()
        self._server = self._start()
        deadline = time.monotonic() + self._silent
        while not is_heard(self._call.port):
            if self._server.poll() is not None:
                raise self._failed(self._server, *self._server.communicate())
            if time.monotonic() > deadline:
                self._end()
                raise TookTooLong(self._tool.program, f"does not listen after {self._silent:g} s")
            time.sleep(_POLL)

    def wait(self) -> Timing:
        """Waits until the tool ends. Raises BackendError or TookTooLong, with the tool's name."""
        self.pass_gate()
        running = self._start() if self.is_client else self._server
        if running is None:
            raise BackendError(self._tool.program, "was not started")
        limit = self._silent + self._call.size * self._call.loops / LEAST_RATE
        try:
            said, problem = running.communicate(timeout=limit)
        except BaseException as error:
            end(running)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            ends = (f"nic:{end.nic} of rank {end.rank}" for end in nic_ends(self._transfer))
            which = "client" if self.is_client else "server"
            late = f"the {which} still runs after {limit:.0f} s, from {' to '.join(ends)}"
            raise TookTooLong(self._tool.program, late) from None
        if running.returncode:
            raise self._failed(running, said, problem)
        if not self.is_client:
            return Timing((), 0.0)
        seconds = self._tool.seconds(self._call, said)
        return Timing((seconds,), seconds)

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return start(
                [self._path, *self._tool.command(self._call)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self._folder.name,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
        except OSError as error:
            raise BackendError(self._tool.program, error.strerror or str(error)) from error

    def _failed(self, ended: subprocess.Popen[bytes], said: bytes, problem: bytes) -> BackendError:
        words = " ".join((problem.strip() or said.strip()).decode(errors="replace").split())
        code = f"exit code {ended.returncode}"
        return BackendError(
            self._tool.program, f"{words[-_MOST_SAID:]} ({code})" if words else code
        )

    def _end(self) -> None:
        if self._server is not None:
            end(self._server)
            self._server = None

    def close(self) -> None:
        super().close()
        self._end()
        self._folder.cleanup()


def is_heard(port: int) -> bool:
    """Whether /proc/net shows a listener at a port. The tool must not see a test connection."""
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, own, _, state, *_ = line.split()
            if state == _LISTENS and int(own.rpartition(":")[2], 16) == port:
                return True
    return False


# Calls iperf3 and perftest, and parses their answers. Some versions of perftest write JSON
# without quotes, so perftest's answers are parsed as YAML, which includes JSON.


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
    """Returns a positive figure. Raises BackendError for others, which a busy CPU may cause."""
    if isinstance(value, float) and 0 < value < inf:
        return value
    why = "" if value is None else ": it did not find out the rate of the clock, as on a busy CPU"
    raise BackendError(program, f"its answer has no {name} ({value}){why}")
