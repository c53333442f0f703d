"""Reads options and environment variables of nccl-tests 2.19.6 (`main` in src/common.cu)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from linkgauge.cli.tool_options import (
    Parser,
    ToolOptions,
    UsageError,
    decimal,
    one_of,
    option,
    whole,
)
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


def _or_all(words: Iterable[str]) -> Callable[[str], str | None]:
    read = one_of(*words, ALL)
    return lambda written: None if read(written) == ALL else written


class NcclOptions(ToolOptions):
    """Options of nccl-tests, with sizes in bytes. `reduction` and `number` are None for all."""

    threads: int = option("-t,--nthreads <num threads>", "", whole, 1, least=1)
    gpus: int = option("-g,--ngpus <gpus per thread>", "", whole, 1, least=1)
    least: int = option("-b,--minbytes <min size in bytes>", "", _size, 32 * _MI, least=1)
    most: int = option("-e,--maxbytes <max size in bytes>", "", _size, 32 * _MI, least=1)
    step: int = option("-i,--stepbytes <increment size>", "", _size, _MI)
    factor: int = option("-f,--stepfactor <increment factor>", "", whole, 1, least=0)
    iterations: int = option("-n,--iters <iteration count>", "", whole, 20, least=1)
    aggregated: int = option("-m,--agg_iters <aggregated iteration count>", "", whole, 1, least=1)
    warm_ups: int = option(
        "-w,--warmup_iters <warmup iteration count>", "accepted: linkgauge warms up by itself",
        whole, 1,
    )  # fmt: skip
    cycles: int = option(
        "-N,--run_cycles <cycle count>", "measure this many times (default: 1; 0: endlessly)",
        whole, 1,
    )  # fmt: skip
    parallel_init: bool = option(
        "-p,--parallel_init <0/1>", "accepted, without effect", _truth, False
    )
    checks: int = option("-c,--check <check iteration count>", "0: no check", whole, 1)
    reduction: Reduction | None = option(
        "-o,--op <sum/prod/min/max/avg/mulsum/all>", "", _or_all(REDUCTIONS), "sum"
    )
    number: NumberName | None = option(
        "-d,--datatype <nccltype/all>", "", _or_all(NUMBERS), "float"
    )
    root: int = option("-r,--root <root>", "-1: each rank", whole, 0)
    blocking: int = option(
        "-z,--blocking <0/1/2/3>", "wait after each iteration", whole, 0, least=0, most=3
    )
    stream_null: str = option("-y,--stream_null <0/1>", "accepted, without effect", str)
    timeout: int = option("-T,--timeout <time in seconds>", "", whole, 0)
    graphs: int = option("-G,--cudagraph <num graph launches>", "", whole, 0)
    report_cputime: int = option("-C,--report_cputime <0/1>", "not supported", whole, 0)
    timestamps: bool = option("-S,--report_timestamps <0/1>", "", _truth, False)
    output: str | None = option(
        "-J,--output_file <file>", "write a copy as JSON to a file whose name ends in .json", str
    )
    average: int = option("-a,--average <0/1/2/3>", "report time of <0=RANK0/1=AVG/2=MIN/3=MAX>",
                          whole, 1, least=0, most=3)  # fmt: skip
    registered: int = option("-R,--local_register <0/1/2>",
                             "register buffers: local (1) or symmetric (2)", whole, 0,
                             least=0, most=2)  # fmt: skip
    policy: str | None = option(
        "-x,--cta_policy <0/1/2>", "not supported; with -Z a file, as in rccl-tests", str
    )
    format: str | None = option(
        "-Z,--rccl_output_format <csv/json>",
        "of rccl-tests: all lines in the file of -x, --output_file or -X",
        one_of("csv", "json"),
    )
    report: str | None = option("-X,--rccl_output_file <file>", "the file of -Z", str)
    device_implementation: int = option(
        "-D,--device_implementation <implementation number>", "not supported", whole, 0
    )
    device_cta_count: int = option(
        "-V,--device_cta_count <number>", "of device implementations", whole, least=1, most=128
    )
    memory: int = option("-M,--memory <0/1>", "not supported", whole, 0)
    unalign: int = option("-u,--unalign <index of first element>", "not supported", whole, 0)
    timing: int = option(
        "-I,--per_iter_timing <0/1>", "times of single iterations", whole, 0, least=0, most=1
    )
    skipped: int = option("-K,--per_iter_skip <count>",
                          "leave the first iterations out of what -I reports", whole, 0,
                          least=0)  # fmt: skip
    help: bool = option("-h,--help")

    @property
    def devices(self) -> int:
        return self.threads * self.gpus

    @property
    def differences(self) -> Iterator[str]:
        if self.policy not in (None, "-1"):
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


def usage(program: str) -> str:
    lines = (f"[{one.written}{' ' if one.about else ''}{one.about}]" for one in NcclOptions.table())
    return " \n\t".join([f"USAGE: {program}", *lines])


_UNABLE = {
    "report_cputime": "-C: linkgauge does not time the CPU side of launches",
    "unalign": "-u: linkgauge does not misalign buffers",
    "device_implementation": "-D: linkgauge has no device implementations of collectives",
}


def nccl_options(arguments: Sequence[str]) -> NcclOptions:
    """Reads a command line. Raises UsageError, or Unable for an option that is not supported."""
    given = Parser(NcclOptions.table(), REJECTED).given(arguments)
    for name, why in _UNABLE.items():
        if given.get(name):
            raise Unable(why)
    _find_report(given)
    options = NcclOptions(**given)
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
    """Sets the file of -Z to that of -X or, as in rccl-tests, of -x or --output_file."""
    if "format" not in given:
        return
    policy = given.pop("policy", None)
    if "report" not in given:
        given["report"] = policy or given.pop("output", None)
