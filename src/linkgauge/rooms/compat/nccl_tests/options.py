"""Reads options and environment variables of nccl-tests 2.19.6 (`main` in src/common.cu)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from linkgauge.cli.tool_options import Parser, ToolOption, UsageError, decimal, one_of, whole
from linkgauge.model.errors import InputError
from linkgauge.model.operations.collective import NUMBERS, REDUCTIONS, NumberName, Reduction

NOT_IMPLEMENTED, REJECTED = 5, 255
"""The tool's exit codes: its result testNotImplemented, and that of a wrong command line."""
ALL = "all"
_MI = 1 << 20
_LARGEST = 1 << 60
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30}
_SIZE = re.compile(r"(.*?)\s*([KMG])(?:i?B)?", re.IGNORECASE)
_T = TypeVar("_T")


class Unable(InputError):
    """Raised for options that nccl-tests supports and linkgauge does not."""

    exit_code = NOT_IMPLEMENTED


def _size(written: str) -> int:
    number, unit = match.groups() if (match := _SIZE.fullmatch(written)) else (written, None)
    size = decimal(number) * (1 << _POWERS[(unit or "").upper()])
    if not 0 <= size <= _LARGEST:
        raise ValueError("give a size that memory can have")
    return int(size)


def _truth(written: str) -> bool:
    return whole(written) != 0


def variable(name: str, default: str, read: Callable[[str], _T]) -> _T:
    written = os.environ.get(name, default)
    try:
        return read(written)
    except ValueError as error:
        raise Unable(f"{name}={written[:40]!r}: {error}") from error


_reduction, _number = one_of(*REDUCTIONS, ALL), one_of(*NUMBERS, ALL)
OPTIONS = (
    ToolOption("-t,--nthreads <num threads>", "", whole, "threads", 1),
    ToolOption("-g,--ngpus <gpus per thread>", "", whole, "gpus", 1),
    ToolOption("-b,--minbytes <min size in bytes>", "", _size, "least", 1),
    ToolOption("-e,--maxbytes <max size in bytes>", "", _size, "most", 1),
    ToolOption("-i,--stepbytes <increment size>", "", _size, "step"),
    ToolOption("-f,--stepfactor <increment factor>", "", whole, "factor", 0),
    ToolOption("-n,--iters <iteration count>", "", whole, "iterations", 1),
    ToolOption("-m,--agg_iters <aggregated iteration count>", "", whole, "aggregated", 1),
    ToolOption(
        "-w,--warmup_iters <warmup iteration count>", "accepted: linkgauge warms up by itself",
        whole, "warm_ups",
    ),
    ToolOption(
        "-N,--run_cycles <cycle count>", "measure this many times (default: 1; 0: endlessly)",
        whole, "cycles",
    ),
    ToolOption("-p,--parallel_init <0/1>", "accepted, without effect", _truth),
    ToolOption("-c,--check <check iteration count>", "0: no check", whole, "checks"),
    ToolOption("-o,--op <sum/prod/min/max/avg/mulsum/all>", "", _reduction, "reduction"),
    ToolOption("-d,--datatype <nccltype/all>", "", _number, "number"),
    ToolOption("-r,--root <root>", "-1: each rank", whole),
    ToolOption("-z,--blocking <0/1/2/3>", "wait after each iteration", whole, "", 0, 3),
    ToolOption("-y,--stream_null <0/1>", "accepted, without effect", str),
    ToolOption("-T,--timeout <time in seconds>", "", whole),
    ToolOption("-G,--cudagraph <num graph launches>", "", whole, "graphs"),
    ToolOption("-C,--report_cputime <0/1>", "not supported", whole),
    ToolOption("-S,--report_timestamps <0/1>", "", _truth, "timestamps"),
    ToolOption(
        "-J,--output_file <file>", "write a copy as JSON to a file whose name ends in .json",
        str, "output",
    ),
    ToolOption(
        "-a,--average <0/1/2/3>", "report time of <0=RANK0/1=AVG/2=MIN/3=MAX>", whole, "", 0, 3
    ),
    ToolOption(
        "-R,--local_register <0/1/2>", "register buffers: local (1) or symmetric (2)", whole,
        "registered", 0, 2,
    ),
    ToolOption("-x,--cta_policy <0/1/2>", "not supported; with -Z a file, as in rccl-tests",
               str, "policy"),
    ToolOption("-Z,--rccl_output_format <csv/json>", "of rccl-tests: all lines in "
               "the file of -x, --output_file or -X", one_of("csv", "json"), "format"),
    ToolOption("-X,--rccl_output_file <file>", "the file of -Z", str, "report"),
    ToolOption("-D,--device_implementation <implementation number>", "not supported", whole),
    ToolOption("-V,--device_cta_count <number>", "of device implementations", whole, "", 1, 128),
    ToolOption("-M,--memory <0/1>", "not supported", whole),
    ToolOption("-u,--unalign <index of first element>", "not supported", whole),
    ToolOption("-I,--per_iter_timing <0/1>", "times of single iterations", whole, "timing", 0, 1),
    ToolOption(
        "-K,--per_iter_skip <count>", "leave the first iterations out of what -I reports",
        whole, "skipped", 0,
    ),
    ToolOption("-h,--help"),
)  # fmt: skip


def usage(program: str) -> str:
    lines = (f"[{one.written}{' ' if one.about else ''}{one.about}]" for one in OPTIONS)
    return " \n\t".join([f"USAGE: {program}", *lines])


class NcclOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of nccl-tests. Sizes are in bytes. None stands for all reductions in `reduction` and
    for all types in `number`. `policy` and `memory` have no effect."""

    threads: int = 1
    gpus: int = 1
    least: int = 32 * _MI
    most: int = 32 * _MI
    step: int = _MI
    factor: int = 1
    iterations: int = 20
    aggregated: int = 1
    warm_ups: int = 1
    cycles: int = 1
    parallel_init: bool = False
    checks: int = 1
    reduction: Reduction | None = "sum"
    number: NumberName | None = "float"
    root: int = 0
    blocking: int = 0
    timeout: int = 0
    graphs: int = 0
    timestamps: bool = False
    output: str | None = None
    format: str | None = None
    report: str | None = None
    average: int = 1
    registered: int = 0
    timing: int = 0
    skipped: int = 0
    help: bool = False
    policy: str = "-1"
    memory: int = 0

    @property
    def devices(self) -> int:
        return self.threads * self.gpus

    @property
    def differences(self) -> Iterator[str]:
        if self.policy != "-1":
            yield "-x: the library chooses its CTA policy itself"
        if self.memory:
            yield "-M: linkgauge does not report the memory used"
        if self.warm_ups != 1:
            yield f"-w {self.warm_ups}: linkgauge warms each size up by itself"
        if self.graphs > 1:
            yield f"-G {self.graphs}: the iterations are one graph, launched once"
        if self.checks > 1:
            yield f"-c {self.checks}: each result is checked once"
        if self.blocking in (1, 3):
            yield f"-z {self.blocking}: the host waits as with -z 2, without a barrier"


_UNABLE = {
    "report_cputime": "-C: linkgauge does not time the CPU side of launches",
    "unalign": "-u: linkgauge does not misalign buffers",
    "device_implementation": "-D: linkgauge has no device implementations of collectives",
}


def nccl_options(arguments: Sequence[str]) -> NcclOptions:
    """Reads a command line. Raises UsageError, or Unable for an option that is not supported."""
    given = Parser(OPTIONS, REJECTED).given(arguments)
    for name, why in _UNABLE.items():
        if given.get(name):
            raise Unable(why)
    _find_report(given)
    every = {name: None for name in ("reduction", "number") if given.get(name) == ALL}
    options = msgspec.convert(given | every, NcclOptions)
    for problem, why in (
        (options.least > options.most, "-b, -e: the smallest size is above the largest"),
        (options.factor < 2 and options.step < 1, "-i, -f: sizes have no end: give a step"),
        (options.timing and options.graphs, "-I and -G exclude each other"),
        (options.blocking == 3 and options.graphs, "-z 3 and -G exclude each other"),
        (options.skipped and not options.timing, "-K needs -I 1"),
        (options.skipped >= options.iterations, "-K: give less than the iterations of -n"),
    ):
        if problem:
            raise UsageError(why, REJECTED)
    return options


def _find_report(given: dict[str, Any]) -> None:
    """Sets the file of -Z, which rccl-tests also names by -x or --output_file."""
    if "format" not in given:
        return
    policy = given.pop("policy", None)
    if "report" not in given:
        given["report"] = policy or given.pop("output", None)
