"""`linkgauge as nvbandwidth`: NVIDIA's nvbandwidth 0.8, single-node tests.

Never uses the settings tuned for linkgauge: one stream, nvbandwidth's kernel geometry, fixed counts
of samples and loops.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from linkgauge import __version__
from linkgauge.judge.expect import Expectations
from linkgauge.judge.utilisation import utilisation
from linkgauge.judge.verdict import judge_result
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.result import Result, exit_code
from linkgauge.report.run_notes import note_lines
from linkgauge.report.run_text import make_console

from .base import Context, Quiet, UsageError, Where, measure, opened
from .nvbandwidth_cases import BY_NAME, CASES, Testcase, find, hint, with_prefixes
from .nvbandwidth_figures import TestMatrix, grid, outcome
from .nvbandwidth_json import JsonPrinter
from .nvbandwidth_options import DEFAULT_SIZE, HELP, NvbandwidthOptions, nvbandwidth_options
from .nvbandwidth_system import system_of
from .nvbandwidth_text import TextPrinter

GIT_VERSION = f"linkgauge {__version__}"
"""Shown where the tool names the commit that it was built from."""
Printer = TextPrinter | JsonPrinter


class Dialect(msgspec.Struct, frozen=True):
    """The differences between nvbandwidth and the tools derived from it: `header` is printed first,
    `options` reads the arguments."""

    name: str
    version: str
    header: tuple[str, ...]
    help: str
    options: Callable[[Sequence[str]], NvbandwidthOptions]


NVBANDWIDTH = Dialect(
    "nvbandwidth",
    "v0.8",
    ("nvbandwidth Version: v0.8", f"Built from Git version: {GIT_VERSION}", ""),
    f"nvbandwidth CLI:\n{HELP}",
    nvbandwidth_options,
)


def speak(dialect: Dialect, arguments: Sequence[str], where: Where) -> int:
    """Executes the arguments. Exit codes: 1 bad usage or an unknown test, else those of `linkgauge
    run`: nvbandwidth itself exits with 0 after errors."""
    try:
        options = dialect.options(arguments)
    except UsageError as error:
        print(*dialect.header, "ERROR: Invalid Arguments ", sep="\n")
        print(*(dialect.name, *arguments), ":\n")
        print(dialect.help)
        print(f"{dialect.name}: {error}", file=sys.stderr)
        return error.exit_code
    printer: Printer = TextPrinter(verbose=options.verbose, perf=options.perf_formatter)
    if options.json:
        printer = JsonPrinter(dialect.name, dialect.version, GIT_VERSION, verbose=options.verbose)
    else:
        print(*dialect.header, sep="\n")
    if options.help:
        print(dialect.help)
        return 0
    if options.list:
        _list()
        return 0
    try:
        return _run(options, where, printer)
    except LinkgaugeError as error:
        printer.fail(str(error))
        return error.exit_code


run = partial(speak, NVBANDWIDTH)


def _list() -> None:
    print("Index, Name:\n\tDescription\n=======================")
    for index, case in enumerate(CASES):
        print(f"{index}, {case.name}:", *(f"\t{line}" for line in case.about), "", sep="\n")


def _asked(options: NvbandwidthOptions) -> tuple[str, ...]:
    """Names or indices of tests. Raises UsageError."""
    if options.testcase and options.testcase_prefixes:
        raise UsageError(
            "You cannot specify both testcase and testcasePrefix options at the same time"
        )
    if options.testcase_prefixes:
        names = with_prefixes(options.testcase_prefixes)
        if not names:
            raise UsageError(
                "Specified list of testcase prefixes did not match any testcases"
                + hint(options.testcase_prefixes[0])
            )
        return names
    return options.testcase or tuple(BY_NAME)


def _run(options: NvbandwidthOptions, where: Where, printer: Printer) -> int:
    """Measures the requested tests, in the order in which they were requested."""
    found = [(asked, find(asked)) for asked in _asked(options)]
    cases = [case for _, case in found if isinstance(case, Testcase)]
    rows = [case.row for case in cases]
    if options.test_local_copy:
        rows = [case.row_with_local_copies for case in cases]
    if options.buffer_size < DEFAULT_SIZE:
        printer.warn(
            "NOTE: You have chosen a buffer size that is smaller than the default buffer size. It "
            f"is suggested to use the default buffer size ({DEFAULT_SIZE}MB) to achieve maximal "
            "peak bandwidth."
        )
    with opened(where, options.settings) as context:
        if not context.devices:
            raise InputError(
                f"there is no accelerator to measure: backend {context.backend} has no devices"
            )
        printer.system(system_of(context))
        reporting = _Reporting(found, options, context, printer)
        code = 0
        if rows:
            benchmarks = [row.lay_out(context.fabric) for row in rows]
            measured = measure(context, benchmarks, observer=reporting)
            code = exit_code(measured)
            if measured.finished is None:
                reporting.of_interrupted(measured.results)
            for note in note_lines(measured):
                make_console(stderr=True).print(note)
    reporting.of_missing()
    printer.end()
    return code or (UsageError.exit_code if len(cases) < len(found) else 0)


class _Reporting(Quiet):
    """Reports results as they come, and tests that do not exist at their place in the request."""

    def __init__(
        self,
        found: Sequence[tuple[str, Testcase | str]],
        options: NvbandwidthOptions,
        context: Context,
        printer: Printer,
    ) -> None:
        self._left = deque(found)
        self._devices = context.devices
        self._outcome = partial(
            outcome, devices=context.devices, use_mean=options.use_mean, verbose=options.verbose
        )
        self._printer = printer
        self._expectations = Expectations(context.machine) if options.display_ur else None

    def completed(self, result: Result) -> None:
        self.of_missing()
        self._left.popleft()
        case = BY_NAME[result.benchmark]
        shown = self._outcome(result, case)
        self._printer.show(msgspec.structs.replace(shown, shares=self._shares(result, case)))

    def of_interrupted(self, results: Sequence[Result]) -> None:
        """Reports the part of a test that was measured before Ctrl-C."""
        self.of_missing()
        if not self._left or not isinstance(case := self._left[0][1], Testcase):
            return
        for result in results[-1:]:
            if result.benchmark == case.name and result.cells:
                cut = msgspec.structs.replace(result, status="error")
                shown = self._outcome(cut, case)
                reasons = (*shown.reasons, f"interrupted after {len(result.cells)} cells")
                self._printer.show(msgspec.structs.replace(shown, reasons=reasons))

    def of_missing(self) -> None:
        """Reports the nonexistent tests that come next."""
        while self._left and isinstance(problem := self._left[0][1], str):
            self._printer.missing(self._left.popleft()[0], problem)

    def _shares(self, result: Result, case: Testcase) -> TestMatrix | None:
        """Percentages of the theoretical figures, for copies between devices."""
        if self._expectations is None or not case.row.between_devices:
            return None
        shares = utilisation(judge_result(result, self._expectations))
        if not shares:
            return None
        heading = case.heading.replace("bandwidth (GB/s)", "utilization ratio (%)")
        percent = {at: 100 * share for at, share in shares.items()}
        return grid(case, f"{case.name}_utilization", heading, self._devices, percent)
