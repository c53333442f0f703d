"""Runs TransferBench 1.66: transfers between memories, carried out by the executors that the user
chooses.

Source: ROCm/TransferBench (src/client, docs of 1.66.02: notation, presets, environment variables,
output). CPU executors are host threads, GPU executors kernels (sm), DMA executors copy engines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from linkgauge.backends import SHAPED
from linkgauge.cli.tool import Where, opened, show
from linkgauge.cli.tool_options import UsageError
from linkgauge.model.errors import worst_code

from . import presets, text
from .cases import AskedTest, Bench, NotMeasured, parse_size, parse_test
from .environment import TOOL, Common, Variables
from .text import blocks

DEFAULT_SIZE = 1 << 28
_SMALLEST, _LARGEST = 1 << 10, 1 << 29
Line = tuple[str, AskedTest]
"""A line of a file with its test. The test is empty for a comment, or for a line that is left
out."""


def run(arguments: Sequence[str], where: Where) -> int:
    """Carries out a command line of the tool: measures, and prints the tool's output."""
    variables = Variables(os.environ)
    if not arguments or {"-h", "--help"} & {arguments[0]}:
        show(text.usage(DEFAULT_SIZE, presets.NAMES))
        if not arguments:
            with opened(where, Common.read(variables).settings(None, DEFAULT_SIZE)) as context:
                show(text.detected(Bench(context)))
        return 0
    what, *more = arguments
    size = parse_size(more[0]) if more else DEFAULT_SIZE
    common = Common.read(variables)
    if what in presets.REFUSED:
        raise UsageError(f"preset {what}: {presets.REFUSED[what]}")
    if what in presets.NAMES:
        for word in more[1:]:
            print(f"{TOOL}: '{word}' has no effect: variables set presets", file=sys.stderr)
        return _preset(what, size, common, variables, where)
    alone = what == "cmdline"
    if len(more) > 1 and not alone:
        raise UsageError(f"'{more[1]}' follows the size: only cmdline takes a test")
    tests = _tests([" ".join(more[1:])] if alone else _lines(what), alone=alone)
    if not any(tests_of for _, tests_of in tests):
        raise UsageError("no test: write one, such as: 1 4 (G0->G0->G1)")
    variables.tell_ignored()
    show(text.banner(), text.listing(common))
    return _measure(common, where, tests, size)


def _preset(name: str, size: int, common: Common, variables: Variables, where: Where) -> int:
    if not size:
        raise UsageError(f"preset {name}: give a size")
    variables.tell_ignored()
    shape = blocks(name, Variables(os.environ))
    with opened(where, common.settings(shape, size)) as context:
        bench = Bench(context)
        lines = presets.PRESETS[name](bench, common, Variables(os.environ), size).lines()
        _tell_shape(context.backend, shape)
        show(text.banner())
        for line in lines:
            print(line, flush=True)
        return bench.gauge.exit_code


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(presets.NAMES)
        why = error.strerror if isinstance(error, OSError) else "not a text"
        raise UsageError(f"cannot read {file}: {why}; presets are {known}") from error


def _tests(lines: Sequence[str], *, alone: bool) -> tuple[Line, ...]:
    """Returns pairs of a line and its test. Comments that begin with `##` are kept, without a test.
    If linkgauge cannot measure a test, its line has no test, and stderr says why; with `alone`,
    this is an error. Raises UsageError for invalid lines."""
    found: list[Line] = []
    for number, line in enumerate(lines, 1):
        try:
            test = parse_test(line)
        except NotMeasured as error:
            if alone:
                raise
            print(f"{TOOL}: line {number} is left out: {error}", file=sys.stderr)
            found.append((line, ()))
            continue
        except UsageError as error:
            raise UsageError(f"line {number}: {error}") from error
        if test and len({transfer.count == 0 for transfer in test}) > 1:
            raise UsageError(f"line {number}: 0 SubExecutors are for all transfers of a test")
        if test or line.startswith("##"):
            found.append((line, test))
    return tuple(found)


def shape_of(test: AskedTest) -> int | None:
    """Returns the number of blocks of the kernels in a test. None if the test has no kernels. 0 if
    the backend chooses the number, or if the kernels have different numbers."""
    counts = {transfer.count for transfer in test if transfer.executor.letter == "G"}
    return None if not counts else counts.pop() if len(counts) == 1 else 0


def _groups(lines: Sequence[Line]) -> Iterator[tuple[int | None, list[Line]]]:
    """Yields groups of consecutive lines whose kernels have the same number of blocks. None means
    that the backend chooses the number."""
    shape: int | None = None
    group: list[Line] = []
    for line in lines:
        asked = shape_of(line[1])
        if asked is not None and shape not in (None, asked):
            yield shape or None, group
            group = []
        group.append(line)
        shape = shape if asked is None else asked
    yield shape or None, group


def _tell_shape(backend: str, shape: int | None) -> None:
    if shape is not None and backend not in SHAPED:
        why = f"the number of a kernel's SubExecutors has no effect on backend {backend}"
        print(f"{TOOL}: {why}", file=sys.stderr)


def _measure(common: Common, where: Where, lines: Sequence[Line], size: int) -> int:
    """Measures the tests of a file. Opens the machine once for each group of tests with the same
    number of blocks."""
    codes, numbers = [], count(1)
    for at, (shape, group) in enumerate(_groups(lines)):
        settings = common.settings(shape, size or _SMALLEST)
        with opened(where, settings, tells=not at) as context:
            bench = Bench(context)
            if not at:
                _check(bench, lines)
                every = (shape_of(test) for _, test in lines)
                _tell_shape(context.backend, next(filter(None, every), None))
            for line, test in group:
                _measure_line(bench, common, line, test, size, numbers)
            codes.append(bench.gauge.exit_code)
        if codes[-1] == 130:
            break
    return worst_code(codes) or 0


def _check(bench: Bench, lines: Sequence[Line]) -> None:
    """Checks all tests before anything is measured. Raises UsageError for an invalid test."""
    for line, test in lines:
        try:
            bench.check(test)
        except UsageError as error:
            raise UsageError(f"{line}: {error}") from error
        if len({t.count for t in test if t.executor.letter == "G"}) > 1:
            why = "kernels with several numbers of SubExecutors take the backend's own shape"
            print(f"{TOOL}: {line}: {why}", file=sys.stderr)


def _measure_line(
    bench: Bench, common: Common, line: str, test: AskedTest, size: int, numbers: Iterator[int]
) -> None:
    if line.startswith("##"):
        print(end="" if common.csv else f"{line}\n")
    elif not test:
        next(numbers)  # as if it had been measured
    for one in _sizes(size, common.factor) if test else ():
        (outcome,) = bench.measure((test,), one)
        show(text.results(common, next(numbers), outcome))


def _sizes(size: int, factor: int) -> Iterator[int]:
    """Yields the size. If the size is 0, yields a range of sizes: `factor` sizes from each power of
    2 to the next."""
    if size:
        yield size
        return
    power = _SMALLEST
    while power <= _LARGEST:
        step = max(4, power // factor // 4 * 4)
        yield from range(power, min(2 * power, _LARGEST + 1), step)
        power *= 2
