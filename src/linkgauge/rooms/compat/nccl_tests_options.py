"""The options of nccl-tests 2.19.6, read as it reads them, with its own words for what is wrong.

Source: src/common.cu of that version (`main`). Numbers are read as C's strtol does: what follows
them is ignored, and what is none is 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.cli.tool import UsageError
from linkgauge.model.operations.collective import NUMBERS, REDUCTIONS, NumberName, Reduction

from .getopt import WRONG, getopt_long

NOT_IMPLEMENTED = 5
"""testNotImplemented."""
ALL = "all"
_MI = 1 << 20
_LARGEST = 1 << 60

# Letter, long name, value, what it means; an empty meaning is the name's.
_TABLE = (
    ("t", "nthreads", "<num threads>", ""),
    ("g", "ngpus", "<gpus per thread>", ""),
    ("b", "minbytes", "<min size in bytes>", ""),
    ("e", "maxbytes", "<max size in bytes>", ""),
    ("i", "stepbytes", "<increment size>", ""),
    ("f", "stepfactor", "<increment factor>", ""),
    ("n", "iters", "<iteration count>", ""),
    ("m", "agg_iters", "<aggregated iteration count>", ""),
    ("w", "warmup_iters", "<warmup iteration count>", "accepted: linkgauge warms up by itself"),
    ("N", "run_cycles", "<cycle count>", "measure this many times (default: 1; 0: endlessly)"),
    ("p", "parallel_init", "<0/1>", "accepted, without effect"),
    ("c", "check", "<check iteration count>", "0: no check"),
    ("o", "op", "<sum/prod/min/max/avg/mulsum/all>", ""),
    ("d", "datatype", "<nccltype/all>", ""),
    ("r", "root", "<root>", "-1: each rank"),
    ("z", "blocking", "<0/1/2/3>", "wait after each iteration"),
    ("y", "stream_null", "<0/1>", "accepted, without effect"),
    ("T", "timeout", "<time in seconds>", ""),
    ("G", "cudagraph", "<num graph launches>", ""),
    ("C", "report_cputime", "<0/1>", "not supported"),
    ("S", "report_timestamps", "<0/1>", ""),
    ("J", "output_file", "<file>", "write a copy as JSON to a file whose name ends in .json"),
    ("a", "average", "<0/1/2/3>", "report time of <0=RANK0/1=AVG/2=MIN/3=MAX>"),
    ("R", "local_register", "<0/1/2>", "register buffers: local (1) or symmetric (2)"),
    ("x", "cta_policy", "<0/1/2>", "not supported"),
    ("D", "device_implementation", "<implementation number>", "not supported"),
    ("V", "device_cta_count", "<number>", "of device implementations"),
    ("M", "memory", "<0/1>", "not supported"),
    ("u", "unalign", "<index of first element>", "not supported"),
    ("I", "per_iter_timing", "<0/1>", "times of single iterations"),
    ("K", "per_iter_skip", "<count>", "leave the first iterations out of what -I reports"),
)  # fmt: skip
NAMES: Mapping[str, str] = {letter: name for letter, name, _, _ in _TABLE} | {"h": "help"}


class NcclOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line, checked. `number` and `reduction` null are all; sizes are bytes. What is
    said on stderr is in `said`, on stdout in `printed`; with `help`, nothing is measured."""

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
    average: int = 1
    registered: int = 0
    each_iteration: bool = False
    skipped: int = 0
    help: bool = False
    printed: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """How many this process has."""
        return self.threads * self.gpus


class Rejected(UsageError):
    """Arguments that nccl-tests rejects."""

    exit_code = 255


class Unable(UsageError):
    """What nccl-tests can do, and this cannot."""

    exit_code = NOT_IMPLEMENTED


def usage(program: str) -> str:
    """What -h prints."""
    lines = [
        f"[-{letter},--{name} {value}{' ' if about else ''}{about}]"
        for letter, name, value, about in _TABLE
    ]
    return "\n\t".join([f"USAGE: {program} ", *(f"{line} " for line in lines), "[-h,--help]"])


def long_of(written: str) -> int:
    """A number as strtol reads it, with base 0."""
    found = re.match(r"[ \t-\r]*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", written)
    if not found:
        return 0
    sign, digits = found.groups()
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
    number = int(digits[:24], base)
    return max(-(1 << 63), min((1 << 63) - 1, -number if sign == "-" else number))


def int_of(written: str) -> int:
    """The same in 32 bits."""
    return (long_of(written) + (1 << 31)) % (1 << 32) - (1 << 31)


_SIZE = re.compile(
    r"[ \t-\r]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[iI][nN][fF]|[nN][aA][nN]))[ \t-\r]*(.?)",
    re.DOTALL,
)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(written: str, name: str) -> int:
    """A size as nccl-tests reads it: a decimal number, then K, M or G. Raises Rejected."""
    found = _SIZE.match(written)
    if found is None or found[2].upper() not in _UNITS:
        raise Rejected(f"invalid size specified for '{name}'")
    is_hexadecimal = "x" in found[1].lower()
    try:
        number = float.fromhex(found[1]) if is_hexadecimal else float(found[1])
    except OverflowError:
        number = math.inf
    size = number * _UNITS[found[2].upper()]
    if size < 0:
        raise Rejected(f"invalid size specified for '{name}'")
    if not size <= _LARGEST:
        raise Unable(f"{name} {written[:40]!r}: larger than any memory")
    return int(size)


def nccl_options(program: str, arguments: Sequence[str]) -> NcclOptions:
    """Reads a command line. Raises Rejected as nccl-tests would, Unable for what it can do and this
    cannot."""
    reader = _Reader(program)
    for letter, value in getopt_long(arguments, NAMES, "h"):
        if letter is None:
            reader.say(f"{value!r} is not an option: ignored")
        elif letter in ("h", WRONG):
            return reader.helping(None if letter == "h" else value)
        else:
            reader.take(letter, value or "")
    return reader.checked()


class _Reader:
    """Takes one option after another."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._options = NcclOptions()
        self._said: list[str] = []
        self._printed: list[str] = []
        self._skipped = 0
        self._timing = 0
        self._device = 0

    def say(self, line: str) -> None:
        self._said.append(f"{self._program}: {line}")

    def helping(self, problem: str | None) -> NcclOptions:
        """As there, an argument that is not understood prints the usage, and is no failure."""
        if problem is not None:
            self.say(problem)
            self._printed.append(f"invalid option '{WRONG}'")
        return self._finished(help=True)

    def _finished(self, **more: object) -> NcclOptions:
        said, printed = tuple(self._said), tuple(self._printed)
        return replace(self._options, said=said, printed=printed, **more)

    def take(self, letter: str, value: str) -> None:
        """Takes an option; the last of several alike counts."""
        if letter in _FIELDS:
            name, long = _FIELDS[letter]
            number = long_of(value) if long else int_of(value)
            self._options = replace(self._options, **{name: number})
        elif letter in _SIZES:
            name, written = _SIZES[letter]
            self._options = replace(self._options, **{name: bytes_of(value, written)})
        else:
            self._take_other(letter, value)

    def _take_other(self, letter: str, value: str) -> None:
        number = int_of(value)
        match letter:
            case "p":
                self._options = replace(self._options, parallel_init=number != 0)
            case "S":
                self._options = replace(self._options, timestamps=number != 0)
            case "J":
                self._options = replace(self._options, output=value)
            case "o":
                self._options = replace(self._options, reduction=self._reduction(value))
            case "d":
                self._options = replace(self._options, number=self._number(value))
            case "I":
                self._timing = number
            case "K":
                self._skipped = number
            case "D":
                self._device = number
            case "V" if not 0 < number <= 128:
                self._said.append(
                    "device_cta_count (-V) must be positive and less than 128, got "
                    f"{number}. Using default value 16."
                )
            case _:
                self._take_unable(letter, number)

    def _take_unable(self, letter: str, number: int) -> None:
        """What has no effect here, which is said where that matters, or is refused."""
        if letter == "C" and number:
            raise Unable("-C: linkgauge does not time the CPU side of launches")
        if letter == "u" and number:
            raise Unable("-u: linkgauge does not misalign buffers")
        if letter == "M" and number:
            self.say("-M: linkgauge does not report the memory used")
        if letter == "x" and number >= 0:
            self.say("-x: the library chooses its CTA policy itself")

    def _reduction(self, value: str) -> Reduction | None:
        for reduction in REDUCTIONS:
            if value == reduction:
                return reduction
        if value == ALL:
            return None
        self._printed.append(f"invalid op {value}, defaulting to sum .. ")
        return "sum"

    def _number(self, value: str) -> NumberName | None:
        for name in NUMBERS:
            if value == name:
                return name
        if value == ALL:
            return None
        self._printed.append(f"invalid type {value}, defaulting to float .. ")
        return "float"

    def checked(self) -> NcclOptions:
        """All options together, in the order of the checks there."""
        options = self._options
        if options.least > options.most:
            raise Rejected(
                f"invalid sizes for 'minbytes' and 'maxbytes': {options.least} > {options.most}"
            )
        if self._device > 0 and options.registered != 2:
            raise Rejected(
                "device implementation (-D > 0) requires enabling symmetric memory registration "
                "(-R 2)"
            )
        if self._device:
            raise Unable("-D: linkgauge has no device implementations of collectives")
        self._check_single_iterations()
        self._check_counts()
        self._tell_differences()
        each = self._timing == 1
        return self._finished(each_iteration=each, skipped=self._skipped)

    def _check_single_iterations(self) -> None:
        options, said = self._options, self._said
        if self._timing not in (0, 1):
            said.append("per-iteration timing (-I) only supports 0=off or 1=on. Disabling.")
            self._timing = 0
        if self._timing and options.graphs >= 1:
            said.append(
                "per-iteration timing (-I) is incompatible with CUDA graph mode (-G). Disabling."
            )
            self._timing = 0
        if options.blocking == 3 and options.graphs >= 1:
            said.append(
                "blocking mode (-z 3) is incompatible with CUDA graph mode (-G). Disabling."
            )
            self._options = replace(options, blocking=0)
        if not 0 <= self._skipped < options.iterations:
            most = options.iterations - 1
            said.append(f"per-iteration skip (-K) must be between 0 and {most}. Disabling.")
            self._skipped = 0
        if self._skipped and not self._timing:
            said.append("per-iteration skip (-K) requires per-iteration timing (-I 1). Disabling.")
            self._skipped = 0

    def _check_counts(self) -> None:
        """What there runs without end, divides by 0 or crashes."""
        options = self._options
        for letter, number in (
            ("t", options.threads), ("g", options.gpus), ("n", options.iterations),
            ("m", options.aggregated), ("b", options.least),
        ):  # fmt: skip
            if number < 1:
                raise Unable(f"-{letter} {number}: give at least 1")
        if options.factor < 0 or (options.factor < 2 and options.step < 1):
            raise Unable("-i, -f: sizes would have no end: give a step or a factor")
        if options.average not in range(4):
            raise Unable(f"-a {options.average}: give 0, 1, 2 or 3")
        if options.blocking not in range(4):
            raise Unable(f"-z {options.blocking}: give 0, 1, 2 or 3")
        if options.registered not in range(3):
            raise Unable(f"-R {options.registered}: give 0, 1 or 2")

    def _tell_differences(self) -> None:
        options = self._options
        if options.warm_ups != 1:
            self.say(f"-w {options.warm_ups}: linkgauge warms each size up by itself")
        if options.graphs > 1:
            self.say(f"-G {options.graphs}: the iterations are one graph, launched once")
        if options.checks > 1:
            self.say(f"-c {options.checks}: each result is checked once")
        if options.blocking in (1, 3):
            self.say(f"-z {options.blocking}: the host waits as with -z 2, without a barrier")


_FIELDS = {
    "t": ("threads", False), "g": ("gpus", False), "f": ("factor", True),
    "n": ("iterations", False), "m": ("aggregated", False), "w": ("warm_ups", False),
    "N": ("cycles", False), "c": ("checks", False), "r": ("root", False),
    "z": ("blocking", False), "T": ("timeout", False), "G": ("graphs", False),
    "a": ("average", False), "R": ("registered", False),
}  # fmt: skip
"""The fields of options that are numbers, and whether of 64 bits."""
_SIZES = {
    "b": ("least", "minbytes"), "e": ("most", "maxbytes"), "i": ("step", "stepBytes"),
}  # fmt: skip
"""The fields of options that are sizes, and their names in messages."""
