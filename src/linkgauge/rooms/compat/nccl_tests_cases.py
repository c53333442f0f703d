"""What nccl-tests measures, in its order: of each type, reduction and root all sizes, each out of
place and in place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count, islice, product

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.collectives import cell_of, row_of
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.collective import (
    NUMBERS,
    REDUCTIONS,
    Collective,
    CollectiveName,
    NumberName,
    Reduction,
    Registration,
    bus_factor,
    has_root,
    reduces,
)
from linkgauge.model.transfer import Benchmark, Cell
from linkgauge.model.units import COLLECTIVE, format_size

from .nccl_tests_options import NcclOptions, Unable

NO_ROOT = -1
_AT_ONCE = 64
"""Sizes that are planned at once: there may be any number of them."""
_LABELLED: tuple[CollectiveName, ...] = ("sendrecv",)
"""Those that have a reduction in their lines, and take one, although they reduce nothing."""
_REGISTERED: tuple[Registration | None, ...] = (None, "local", "symmetric")


class Line(msgspec.Struct, frozen=True):
    """A line of the table: a `size` that was asked for, measured by both `works`, out of place and
    in place, by groups of so many `ranks`. `operation` is the reduction as it is shown."""

    works: tuple[Collective, Collective]
    size: int
    ranks: int
    operation: str

    @property
    def bytes_shown(self) -> int:
        """The bytes of a rank's larger buffer, of the elements that it has."""
        counts = self.works[0].counts(self.size, self.ranks)
        return max(counts.send, counts.receive) * self.works[0].number.bytes

    @property
    def elements(self) -> int:
        return self.works[0].counts(self.size, self.ranks).count

    @property
    def root(self) -> int:
        return NO_ROOT if self.works[0].root is None else self.works[0].root

    def rates(self, seconds: float) -> tuple[float, float]:
        """`algbw` and `busbw` in GB/s."""
        algorithm = self.works[0].bytes_counted(self.size, self.ranks) / 1e9 / seconds
        return algorithm, algorithm * bus_factor(self.works[0].collective, self.ranks)

    def cells(self, fabric: DeviceSet) -> Iterator[Cell]:
        """Out of place, then in place."""
        for work in self.works:
            column = format_size(self.size)
            yield cell_of(work, fabric.devices, self.size, row_of(work), column)


class Part(msgspec.Struct, frozen=True):
    """Lines that are planned together, and the benchmark that measures them."""

    lines: tuple[Line, ...]
    benchmark: Benchmark


def parts(
    name: CollectiveName, options: NcclOptions, split: str | None, fabric: DeviceSet
) -> Iterator[Part]:
    """All that is measured; without end if so many cycles were asked for. Raises Unable for a root
    that is no rank."""
    for works, label in _works(name, options, split, len(fabric.devices)):
        ranks = len(works[0].groups(len(fabric.devices))[0])
        # As there, 0 cycles are counted down below 0.
        for _ in range(options.cycles) if options.cycles > 0 else count():
            lines = (Line(works, size, ranks, label) for size in sizes(options))
            while some := tuple(islice(lines, _AT_ONCE)):
                cells = tuple(cell for line in some for cell in line.cells(fabric))
                yield Part(some, _benchmark(name, fabric, cells))


def _benchmark(name: str, fabric: DeviceSet, cells: tuple[Cell, ...]) -> Benchmark:
    title = "type(row) by size(column)"
    return Benchmark(name, title, fabric.backend, cells, COLLECTIVE, sweep=True, size=1)


def sizes(options: NcclOptions) -> Iterator[int]:
    """The sizes that the steps reach, or the factors."""
    size = options.least
    while size <= options.most:
        yield size
        size = size * options.factor if options.factor > 1 else size + options.step


def _works(
    name: CollectiveName, options: NcclOptions, split: str | None, ranks: int
) -> Iterator[tuple[tuple[Collective, Collective], str]]:
    numbers: tuple[NumberName, ...] = (options.number,) if options.number else tuple(NUMBERS)
    operations: tuple[Reduction, ...] = (options.reduction,) if options.reduction else REDUCTIONS
    group = len(Collective(name, split=split).groups(ranks)[0])
    for number, operation, root in product(
        numbers,
        operations if reduces(name) or name in _LABELLED else (None,),
        _roots(options.root, group) if has_root(name) else (None,),
    ):
        work = Collective(
            name,
            number,
            operation if reduces(name) else None,
            root,
            split=split,
            aggregated=options.aggregated,
            blocking=options.blocking > 0,
            graphed=options.graphs > 0,
            registered=_REGISTERED[options.registered],
        )
        unnamed = "" if name == "hypercube" else "none"
        yield (work, replace(work, in_place=True)), operation or unnamed


def _roots(asked: int, ranks: int) -> tuple[int, ...]:
    if asked == NO_ROOT:
        return tuple(range(ranks))
    if not 0 <= asked < ranks:
        raise Unable(f"-r {asked}: the ranks are 0 to {ranks - 1}")
    return (asked,)


_SPLIT = re.compile(r"(AND|&|OR|\||MOD|%|DIV|/)\s*(0[xX][0-9a-f]+|0b[01]+|[0-9]+)", re.IGNORECASE)


def split_of(environment: Mapping[str, str]) -> str | None:
    """The groups that NCCL_TESTS_SPLIT_MASK or NCCL_TESTS_SPLIT asks for, as a Collective has them;
    None without. Raises Unable for what is not understood."""
    mask = environment.get("NCCL_TESTS_SPLIT_MASK")
    if mask is not None:
        found = re.match(r"\s*(?:0[xX])?([0-9a-fA-F]{1,8})", mask)
        return (
            f"AND {_checked('NCCL_TESTS_SPLIT_MASK', mask, int(found[1], 16) if found else None)}"
        )
    written = environment.get("NCCL_TESTS_SPLIT")
    if written is None:
        return None
    match = _SPLIT.match(written)
    number = _number(match[2]) if match else None
    if match and match[1].upper() in ("MOD", "%", "DIV", "/") and not number:
        number = None
    value = _checked("NCCL_TESTS_SPLIT", written, number)
    return f"{match[1].upper() if match else ''} {value}"


def _number(written: str) -> int:
    """As strtoul reads it with base 0, and binary numbers."""
    if written[:2].lower() == "0b":
        return int(written[2:34], 2)
    octal = written.startswith("0") and written.isdecimal()
    return int(re.match("[0-7]*", written)[0][:12] or "0", 8) if octal else int(written[:12], 0)  # type: ignore[index]  # which always matches


def _checked(name: str, written: str, number: int | None) -> int:
    if number is None or number >= 10**9:
        raise Unable(f"{name}={written[:40]!r}: give AND, OR, MOD or DIV and a number, or a mask")
    return number
