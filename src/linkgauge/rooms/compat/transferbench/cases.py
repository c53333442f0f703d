"""Reads TransferBench 1.66's notation of transfers. A line is a test; the transfers of a test run
at the same time.

    test     = count executors { transfer }            as in `1 4 (G0->G0->G1)`
             | "-" count { transfer executors bytes }  as in `-2 (G0 G0 G1 4 1M) (G1 D1 G0 1 2M)`
    transfer = memory executor memory
    memory   = letter index                            N alone or with an index is no memory
    executor = letter index

Brackets and arrows are blanks. A line that does not begin with a number is a comment.
Source: ROCm/TransferBench: transfer definition syntax (docs of 1.66.02), examples/example.cfg."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from linkgauge.cli.tool import Context
from linkgauge.cli.tool_options import UsageError, digits
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Engine, EngineKind, Transfer

from ..copy_cells import Meter, Repetitions

HOST_LETTERS = {"C": "", "B": "", "D": "", "H": "pageable"}
"""The letters of host memory on a NUMA node, with linkgauge's kind of memory: default, coherent,
non-coherent, unpinned."""
NEAREST, NULL_LETTER = "P", "N"
DEVICE_LETTERS = ("G", "F")
ALIKE = {"B": "C", "D": "C", "F": "G"}
"""Letters of memories that differ only in coherence, with the letter that replaces each: linkgauge
does not distinguish coherence."""
MEMORY_LETTERS = (*HOST_LETTERS, NEAREST, *DEVICE_LETTERS, NULL_LETTER)
EXECUTORS = {"C": "CPU", "G": "GPU", "D": "DMA"}
"""The executors, in the order in which results list them."""
_REFUSED = {
    "U": "uncached GPU memory is not measured (before 1.66 U was unpinned host memory: now H)",
    "K": "uncached host memory is not measured",
    "M": "managed memory is not measured: linkgauge copy reaches it as host:N/managed",
}
_NIC = "NIC executors are not measured"
_BLANKS = re.compile(r"[()>]|(?<!^)-")
_SIZE = re.compile(r"([0-9]{1,15})([KMG]?)", re.IGNORECASE)
_TOKEN = re.compile(r"([A-Z])([0-9]*)", re.IGNORECASE)
POWERS = {"": 0, "K": 10, "M": 20, "G": 30}
MOST_TRANSFERS = 4096
_T = TypeVar("_T")


class NotMeasured(UsageError):
    """Raised for a transfer that the notation allows but linkgauge does not measure."""


class TransferEnd(msgspec.Struct, frozen=True):
    """A memory or an executor: its letter and its number."""

    letter: str
    index: int

    def __str__(self) -> str:
        return f"{self.letter}{self.index}"


class AskedTransfer(msgspec.Struct, frozen=True):
    """One requested transfer. If an end is None, no memory is read or written there. `count` is the
    number of SubExecutors. `size` is in bytes; 0 stands for the size on the command line."""

    source: TransferEnd | None
    executor: TransferEnd
    destination: TransferEnd | None
    count: int
    size: int = 0

    @property
    def ends(self) -> tuple[TransferEnd, ...]:
        return tuple(end for end in (self.source, self.destination) if end is not None)

    def __str__(self) -> str:
        """Returns the transfer as results show it."""
        source, destination = self.source or NULL_LETTER, self.destination or NULL_LETTER
        return f"{source} -> {self.executor}:{self.count} -> {destination}"


AskedTest = tuple[AskedTransfer, ...]


def parse_size(written: str) -> int:
    """Reads a size in bytes: a number with K, M or G. Raises UsageError for other text, and for
    sizes that are no multiple of 4."""
    found = _SIZE.fullmatch(written)
    if found is None:
        raise UsageError(f"'{written}' is not a number of bytes, such as 64M")
    size = int(found[1]) << POWERS[found[2].upper()]
    if size % 4:
        raise UsageError(f"{size} bytes: give a multiple of 4")
    return size


def parse_test(line: str) -> AskedTest:
    """Returns the transfers of a line; empty for a comment or an empty line. Raises UsageError for
    invalid notation. Raises NotMeasured for a transfer that linkgauge does not measure."""
    line = line.strip()
    words = iter(_BLANKS.sub(" ", line).split())
    first = next(words, "")
    count = digits(first.removeprefix("-"))
    if count is None and re.match("-?[0-9]", first):
        raise UsageError(f"'{first}' is not a number of transfers")
    if count is None:
        return ()
    if not 1 <= count <= MOST_TRANSFERS:
        raise UsageError(f"{count} transfers: give 1 to {MOST_TRANSFERS}")
    if first.startswith("-"):
        test = tuple(_own_counts(words, count))
    else:
        executors = _count(_next(words, "the number of SubExecutors"))
        test = tuple(_transfer(words, number, executors) for number in range(count))
    left = next(words, None)
    if left is not None:
        raise UsageError(f"'{left}' follows the last of {count} transfers")
    return test


def _own_counts(words: Iterator[str], count: int) -> Iterator[AskedTransfer]:
    for number in range(count):
        transfer = _transfer(words, number, 1)
        executors = _count(_next(words, f"SubExecutors of transfer {number}"))
        size = parse_size(_next(words, f"bytes of transfer {number}"))
        yield _checked(msgspec.structs.replace(transfer, count=executors, size=size))


def _transfer(words: Iterator[str], number: int, count: int) -> AskedTransfer:
    source = _memory(_next(words, f"the source of transfer {number}"))
    executor = _executor(_next(words, f"the executor of transfer {number}"))
    destination = _memory(_next(words, f"the destination of transfer {number}"))
    return _checked(AskedTransfer(source, executor, destination, count))


def _checked(transfer: AskedTransfer) -> AskedTransfer:
    if not transfer.ends:
        raise UsageError("a transfer has a source or a destination")
    if transfer.executor.letter == "D" and len(transfer.ends) < 2:
        raise UsageError(f"{transfer.executor} copies from one memory to another: not from or to N")
    if transfer.count == 0 and transfer.executor.letter != "G":
        raise UsageError("0 SubExecutors: only a GPU kernel's number is left to linkgauge")
    return transfer


def _next(words: Iterator[str], what: str) -> str:
    word = next(words, None)
    if word is None:
        raise UsageError(f"{what} is missing")
    return word


def _count(word: str) -> int:
    count = digits(word)
    if count is None or count >= 1 << 31:
        raise UsageError(f"'{word}' is not a number of SubExecutors")
    return count


def _memory(word: str) -> TransferEnd | None:
    """Reads a memory. The letter N gives None."""
    found = _TOKEN.fullmatch(word)
    if found is None and re.fullmatch(r"([A-Z][0-9]+){2,}", word, re.IGNORECASE):
        if word.upper().startswith("R"):
            raise NotMeasured(f"{word}: ranks are not measured; linkgauge runs under mpirun")
        raise NotMeasured(f"{word}: a transfer has one source and one destination here")
    letter = found[1].upper() if found else ""
    if letter in _REFUSED:
        raise NotMeasured(f"{word}: {_REFUSED[letter]}")
    if letter == NULL_LETTER:
        return None
    return _end(word, MEMORY_LETTERS, "a memory")


def _executor(word: str) -> TransferEnd:
    if re.fullmatch(r"[IN][0-9]+(\.[0-9]+)?", word, re.IGNORECASE):
        raise NotMeasured(f"{word}: {_NIC}")
    if "." in word:
        raise NotMeasured(f"{word}: parts of an executor cannot be chosen")
    return _end(word, EXECUTORS, "an executor")


def _end(word: str, letters: Iterable[str], what: str) -> TransferEnd:
    found = _TOKEN.fullmatch(word)
    if found is None or found[1].upper() not in letters or not found[2]:
        known = ", ".join(letters)
        raise UsageError(f"'{word}' is not {what}: a letter ({known}) and its number")
    return TransferEnd(found[1].upper(), digits(found[2]) or 0)


# TransferBench's transfers on this machine: in linkgauge's notation, measured, and summed up by
# executor.


_KINDS: dict[str, EngineKind] = {"C": "cpu", "G": "sm", "D": "ce"}


class MeasuredTest(msgspec.Struct, frozen=True):
    """A test with its times. `timings` are the times of each transfer. `whole` has the times of all
    transfers together, from the first start to the last end."""

    test: AskedTest
    timings: tuple[Repetitions, ...]
    whole: Repetitions

    def executors(self) -> Iterator[tuple[TransferEnd, tuple[int, ...], Repetitions]]:
        """Yields each executor with the numbers of its transfers, and with their combined
        repetitions."""
        order = list(EXECUTORS)
        every = {transfer.executor for transfer in self.test}
        for executor in sorted(every, key=lambda end: (order.index(end.letter), end.index)):
            own = tuple(n for n, transfer in enumerate(self.test) if transfer.executor == executor)
            yield executor, own, Repetitions.together([self.timings[number] for number in own])


class Bench:
    """Measures on a machine whose nodes and devices have TransferBench's numbers."""

    def __init__(self, context: Context) -> None:
        self.nodes = tuple(node.index for node in context.machine.host.nodes)
        cpus = (len(node.cpus) for node in context.machine.host.nodes if node.cpus)
        self.threads = min(cpus, default=1)
        """The number of threads that each node with CPUs has."""
        self.devices: tuple[Device, ...] = context.devices
        self.gauge = Meter(context)

    def measure(self, tests: Sequence[AskedTest], size: int) -> tuple[MeasuredTest, ...]:
        """Measures the tests, one after the other. Transfers without their own size have `size`
        bytes. Consecutive tests are measured in one step if their sizes have the same greatest
        common divisor."""
        found: list[MeasuredTest] = []
        for unit, together in groupby(
            tests, lambda test: math.gcd(*(t.size or size for t in test))
        ):
            group = tuple(together)
            cells = [[self._transfer(t, (t.size or size) // unit) for t in test] for test in group]
            results = self.gauge.measure(cells, size=unit)
            found += [_outcome(*pair, size) for pair in zip(group, results, strict=True)]
        return tuple(found)

    def check(self, test: AskedTest) -> None:
        """Raises UsageError if a memory or an executor of the test does not exist."""
        for transfer in test:
            self._transfer(transfer, 1)

    def _transfer(self, asked: AskedTransfer, scale: int) -> Transfer:
        source, destination = (
            NULL if end is None else self._memory(end)
            for end in (asked.source, asked.destination)
        )  # fmt: skip
        return Transfer(source, destination, self._engine(asked), scale)

    def _engine(self, asked: AskedTransfer) -> Engine:
        executor = asked.executor
        kind = _KINDS[executor.letter]
        if kind == "cpu":
            return Engine(host(self._of("CPU", self.nodes, executor)), kind, asked.count)
        return Engine(parse_memory(self._device(executor).memory), kind)

    def _memory(self, end: TransferEnd) -> Memory:
        if (same := ALIKE.get(end.letter)) is not None:
            self.gauge.report(f"{end.letter} is measured as {same}: they do not differ here")
        if end.letter in HOST_LETTERS:
            return host(self._of("CPU", self.nodes, end), HOST_LETTERS[end.letter])
        if end.letter == NEAREST:
            return host(self._device(end).near)
        return parse_memory(self._device(end).memory)

    def _device(self, end: TransferEnd) -> Device:
        if not self.devices:
            raise UsageError(f"{end}: there is no GPU")
        return self._of("GPU", self.devices, end)

    def _of(self, kind: str, known: Sequence[_T], end: TransferEnd) -> _T:
        if end.index >= len(known):
            raise UsageError(f"no {kind} {end.index}: there are 0 to {len(known) - 1}")
        return known[end.index]


def _outcome(test: AskedTest, cell: CellResult, size: int) -> MeasuredTest:
    sizes = [transfer.size or size for transfer in test]
    passed = cell.status == "pass"
    total = Repetitions.of(cell.samples if passed else (), sum(sizes))
    if len(test) == 1:
        return MeasuredTest(test, (total,), total)
    parts = [part.samples for part in cell.parts] if passed else [()] * len(test)
    return MeasuredTest(test, tuple(map(Repetitions.of, parts, sizes)), total)
