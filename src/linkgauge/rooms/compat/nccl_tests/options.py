"""Reads the options of nccl-tests 2.19.6 as nccl-tests does, with the same error messages.

Source: src/common.cu of that version (`main`). Numbers are read as C's strtol reads them: text
after a number is ignored, and text without a number is 0."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from linkgauge.cli.tool_options import ToolOption, UsageError, getopt_long
from linkgauge.model.operations.collective import NUMBERS, REDUCTIONS, NumberName, Reduction

NOT_IMPLEMENTED = 5
"""The tool's result code testNotImplemented."""
ALL = "all"
_MI = 1 << 20
_LARGEST = 1 << 60


class Rejected(UsageError):
    """Raised for arguments that nccl-tests rejects."""

    exit_code = 255


class Unable(UsageError):
    """Raised for arguments that nccl-tests supports and linkgauge does not."""

    exit_code = NOT_IMPLEMENTED


def long_of(written: str) -> int:
    """Returns the number that C's strtol reads with base 0."""
    found = re.match(r"[ \t-\r]*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", written)
    if not found:
        return 0
    sign, digits = found.groups()
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
    number = int(digits[:24], base)
    return max(-(1 << 63), min((1 << 63) - 1, -number if sign == "-" else number))


def int_of(written: str) -> int:
    """Returns the number that `long_of` reads, cut to 32 bits."""
    return (long_of(written) + (1 << 31)) % (1 << 32) - (1 << 31)


_FLOAT = re.compile(
    r"[ \t-\r]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[iI][nN][fF]|[nN][aA][nN]))[ \t-\r]*",
)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def float_of(written: str) -> tuple[float | None, str]:
    """Returns the number that C's strtod reads, or None if there is none, and the text after it."""
    found = _FLOAT.match(written)
    if found is None:
        return None, written
    try:
        number = (float.fromhex if "x" in found[1].lower() else float)(found[1])
    except OverflowError:
        number = math.inf
    return number, written[found.end() :]


def bytes_of(name: str, written: str) -> int:
    """Reads a size as nccl-tests does: a decimal number, then K, M or G. Raises Rejected for other
    text."""
    number, rest = float_of(written)
    unit = _UNITS.get(rest[:1].upper())
    if number is None or unit is None or number < 0:
        raise Rejected(f"invalid size specified for '{name}'")
    if not number * unit <= _LARGEST:
        raise Unable(f"{name} {written[:40]!r}: larger than any memory")
    return int(number * unit)


def _truth(written: str) -> bool:
    return int_of(written) != 0


def _one_of(known: Iterable[str]) -> Callable[[str], str | None]:
    """Returns a function that reads one of these names. For `all`, the function returns None. For
    other text, it raises ValueError."""

    def read(written: str) -> str | None:
        if written not in known and written != ALL:
            raise ValueError
        return None if written == ALL else written

    return read


_reduction, _number = _one_of(REDUCTIONS), _one_of(NUMBERS)
OPTIONS = (
    ToolOption("-t,--nthreads <num threads>", "", int_of, "threads", 1),
    ToolOption("-g,--ngpus <gpus per thread>", "", int_of, "gpus", 1),
    ToolOption("-b,--minbytes <min size in bytes>", "", partial(bytes_of, "minbytes"), "least", 1),
    ToolOption("-e,--maxbytes <max size in bytes>", "", partial(bytes_of, "maxbytes"), "most"),
    ToolOption("-i,--stepbytes <increment size>", "", partial(bytes_of, "stepBytes"), "step"),
    ToolOption("-f,--stepfactor <increment factor>", "", long_of, "factor"),
    ToolOption("-n,--iters <iteration count>", "", int_of, "iterations", 1),
    ToolOption("-m,--agg_iters <aggregated iteration count>", "", int_of, "aggregated", 1),
    ToolOption(
        "-w,--warmup_iters <warmup iteration count>", "accepted: linkgauge warms up by itself",
        int_of, "warm_ups",
    ),
    ToolOption(
        "-N,--run_cycles <cycle count>", "measure this many times (default: 1; 0: endlessly)",
        int_of, "cycles",
    ),
    ToolOption("-p,--parallel_init <0/1>", "accepted, without effect", _truth),
    ToolOption("-c,--check <check iteration count>", "0: no check", int_of, "checks"),
    ToolOption("-o,--op <sum/prod/min/max/avg/mulsum/all>", "", _reduction, "reduction"),
    ToolOption("-d,--datatype <nccltype/all>", "", _number, "number"),
    ToolOption("-r,--root <root>", "-1: each rank", int_of),
    ToolOption("-z,--blocking <0/1/2/3>", "wait after each iteration", int_of, "", 0, 3),
    ToolOption("-y,--stream_null <0/1>", "accepted, without effect", str),
    ToolOption("-T,--timeout <time in seconds>", "", int_of),
    ToolOption("-G,--cudagraph <num graph launches>", "", int_of, "graphs"),
    ToolOption("-C,--report_cputime <0/1>", "not supported", int_of),
    ToolOption("-S,--report_timestamps <0/1>", "", _truth, "timestamps"),
    ToolOption(
        "-J,--output_file <file>", "write a copy as JSON to a file whose name ends in .json",
        str, "output",
    ),
    ToolOption(
        "-a,--average <0/1/2/3>", "report time of <0=RANK0/1=AVG/2=MIN/3=MAX>", int_of, "", 0, 3
    ),
    ToolOption(
        "-R,--local_register <0/1/2>", "register buffers: local (1) or symmetric (2)", int_of,
        "registered", 0, 2,
    ),
    ToolOption("-x,--cta_policy <0/1/2>", "not supported; with -Z a file, as in rccl-tests", str),
    ToolOption("-Z,--rccl_output_format <csv/json>", "of rccl-tests: all lines in "
               "the file of -x, --output_file or -X", str, "format"),
    ToolOption("-X,--rccl_output_file <file>", "the file of -Z", str, "report"),
    ToolOption("-D,--device_implementation <implementation number>", "not supported", int_of),
    ToolOption("-V,--device_cta_count <number>", "of device implementations", int_of),
    ToolOption("-M,--memory <0/1>", "not supported", int_of),
    ToolOption("-u,--unalign <index of first element>", "not supported", int_of),
    ToolOption("-I,--per_iter_timing <0/1>", "times of single iterations", int_of, "timing"),
    ToolOption(
        "-K,--per_iter_skip <count>", "leave the first iterations out of what -I reports",
        int_of, "skipped",
    ),
    ToolOption("-h,--help"),
)  # fmt: skip


def usage(program: str) -> str:
    """Returns the text that -h prints."""
    lines = (f"[{one.written}{' ' if one.about else ''}{one.about}]" for one in OPTIONS)
    return " \n\t".join([f"USAGE: {program}", *lines])


class NcclOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a command line, after checks. If `number` or `reduction` is None, all are
    measured. Sizes are in bytes. `said` is printed on stderr, and `printed` on stdout. With `help`,
    nothing is measured."""

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
    printed: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """The number of devices that this process uses."""
        return self.threads * self.gpus


def nccl_options(program: str, arguments: Sequence[str]) -> NcclOptions:
    """Reads a command line. Raises Rejected where nccl-tests would reject it. Raises Unable for
    options that nccl-tests supports and linkgauge does not."""
    reader = _Reader(program)
    for option, value, problem in getopt_long(arguments, OPTIONS):
        if problem or (option is not None and option.read is None):
            return reader.helping(problem)
        if option is None:
            reader.say(f"{value!r} is not an option: ignored")
        else:
            reader.take(option, value)
    return reader.checked()


_UNABLE = {
    "C": "linkgauge does not time the CPU side of launches",
    "u": "linkgauge does not misalign buffers",
}
"""The options that linkgauge supports only with the value 0, with the reasons."""


class _Reader:
    """Reads the options of a command line, one after another."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._values: dict[str, Any] = {}
        self._said: list[str] = []
        self._printed: list[str] = []

    def say(self, line: str) -> None:
        self._said.append(f"{self._program}: {line}")

    def helping(self, problem: str) -> NcclOptions:
        """Returns the options for a command line that only shows the usage. As in nccl-tests, an
        unknown argument also shows the usage and is no error."""
        if problem:
            self.say(problem)
            self._printed.append("invalid option '?'")
        self._values["help"] = True
        return self._options()

    def _options(self) -> NcclOptions:
        own = {"said": self._said, "printed": self._printed}
        return msgspec.convert(self._values | own, NcclOptions)

    def take(self, option: ToolOption, written: str) -> None:
        """Reads an option. If an option is repeated, the last one counts. Reports options that have
        no effect in linkgauge, and raises Unable for options that linkgauge lacks."""
        letter = option.names[0]
        try:
            value = self._values[option.dest] = option.value_of(written)
        except ValueError:
            what, default = ("op", "sum") if letter == "o" else ("type", "float")
            self._printed.append(f"invalid {what} {written}, defaulting to {default} .. ")
            self._values[option.dest] = default
            return
        if letter in _UNABLE and value:
            raise Unable(f"-{letter}: {_UNABLE[letter]}")
        if letter == "M" and value:
            self.say("-M: linkgauge does not report the memory used")
        if letter == "V" and not 0 < int_of(written) <= 128:
            self._said.append(
                "device_cta_count (-V) must be positive and less than 128, got "
                f"{value}. Using default value 16."
            )

    def checked(self) -> NcclOptions:
        """Checks the options in the order in which nccl-tests checks them, and returns them."""
        options = self._options()
        if options.least > options.most:
            raise Rejected(
                f"invalid sizes for 'minbytes' and 'maxbytes': {options.least} > {options.most}"
            )
        self._check_report(options)
        device = self._values.get("device_implementation", 0)
        if device > 0 and options.registered != 2:
            raise Rejected(
                "device implementation (-D > 0) requires enabling symmetric memory registration "
                "(-R 2)"
            )
        if device:
            raise Unable("-D: linkgauge has no device implementations of collectives")
        self._check_single_iterations(options)
        options = self._options()
        _check_counts(options)
        self._tell_differences(options)
        return self._options()

    def _check_report(self, options: NcclOptions) -> None:
        """Takes the file of -Z from the option that rccl-tests has for it. nccl-tests has another
        meaning for most of them."""
        policy = self._values.pop("cta_policy", None)
        if options.format is None:
            if policy is not None and int_of(policy) >= 0:
                self.say("-x: the library chooses its CTA policy itself")
        elif options.format not in ("csv", "json"):
            raise Rejected(f"Invalid --rccl_output_format: {options.format}")
        elif options.report is None:
            self._values["report"] = policy or self._values.pop("output", None)

    def _check_single_iterations(self, options: NcclOptions) -> None:
        def disable(field: str, why: str) -> int:
            self._said.append(f"{why}. Disabling.")
            self._values[field] = 0
            return 0

        incompatible = "is incompatible with CUDA graph mode (-G)"
        timing, skipped = options.timing, options.skipped
        if timing not in (0, 1):
            timing = disable("timing", "per-iteration timing (-I) only supports 0=off or 1=on")
        if timing and options.graphs >= 1:
            timing = disable("timing", f"per-iteration timing (-I) {incompatible}")
        if options.blocking == 3 and options.graphs >= 1:
            disable("blocking", f"blocking mode (-z 3) {incompatible}")
        if not 0 <= skipped < options.iterations:
            most = options.iterations - 1
            skipped = disable("skipped", f"per-iteration skip (-K) must be between 0 and {most}")
        if skipped and not timing:
            disable("skipped", "per-iteration skip (-K) requires per-iteration timing (-I 1)")

    def _tell_differences(self, options: NcclOptions) -> None:
        if options.warm_ups != 1:
            self.say(f"-w {options.warm_ups}: linkgauge warms each size up by itself")
        if options.graphs > 1:
            self.say(f"-G {options.graphs}: the iterations are one graph, launched once")
        if options.checks > 1:
            self.say(f"-c {options.checks}: each result is checked once")
        if options.blocking in (1, 3):
            self.say(f"-z {options.blocking}: the host waits as with -z 2, without a barrier")


def _check_counts(options: NcclOptions) -> None:
    """Raises Unable for numbers with which nccl-tests would never end, divide by 0, or crash."""
    for option in OPTIONS:
        value = getattr(options, option.dest, None)
        if value is not None and not option.allows(value):
            known = "at least 1" if option.most is None else _either(int(option.most))
            raise Unable(f"-{option.names[0]} {value}: give {known}")
    if options.factor < 0 or (options.factor < 2 and options.step < 1):
        raise Unable("-i, -f: sizes would have no end: give a step or a factor")


def _either(most: int) -> str:
    """Returns the allowed numbers up to `most` in words: `0, 1 or 2`."""
    return f"{', '.join(map(str, range(most)))} or {most}"
