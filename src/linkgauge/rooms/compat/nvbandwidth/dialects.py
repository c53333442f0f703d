"""Defines versions of nvbandwidth and tools derived from it. As in nvbandwidth, long names may be
abbreviated, `-t` and `-p` take several words, and `true` may follow a switch. Sources: nvbandwidth
0.8; for 0.9 and 0.10 release notes, help texts and published output (docs/as.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from linkgauge import __version__
from linkgauge.cli.tool_options import Parser, ToolOption, UsageError, help_lines, one_of, whole
from linkgauge.model.settings import EngineSettings, Settings

from .cases import CASES, CASES_0_8, OF_SEVERAL, Testcase
from .outcomes import Misprint, Spread

DEFAULT_SIZE = 512
"""The default size in MiB."""


def or_all(read: Callable[[str], int]) -> Callable[[str], int | None]:
    return lambda written: None if written == "-1" else read(written)


_number = partial(ToolOption, read=whole, least=1, most=10**9)
_pairs = partial(ToolOption, read=or_all(whole), least=1, most=10**9)
_several = partial(ToolOption, read=str, several=True)
_JSON = ToolOption("-j [ --json ]", "Print output in json format instead of plain \ntext.")
OPTIONS = (
    ToolOption("-h [ --help ]", "Produce help message"),
    _number("-b [ --bufferSize ] arg (=512)", "Memcpy buffer size in MiB"),
    ToolOption("-l [ --list ]", "List available testcases"),
    _several("-t [ --testcase ] arg", "Testcase(s) to run (by name or index)"),
    _several("-p [ --testcasePrefixes ] arg", "Testcase(s) to run (by prefix))"),
    ToolOption("-v [ --verbose ]", "Verbose output"),
    ToolOption("-s [ --skipVerification ]", "Skips data verification after copy"),
    ToolOption("-d [ --disableAffinity ]", "Disable automatic CPU affinity control"),
    _number("-i [ --testSamples ] arg (=3)", "Iterations of the benchmark"),
    ToolOption("-m [ --useMean ]", "Use mean instead of median for results"),
    _JSON,
)
_TARGET = "Target pairs for multinode device-to-device tests."
_SAMPLED = (
    *OPTIONS[:9],
    _pairs("-P [ --targetNumPairs ] arg (=-1)", _TARGET),
    OPTIONS[9],
    ToolOption("-H [ --useHugePages ]", "Use huge pages for host allocations."),
    _JSON,
)
_PAIR = "Run device-to-device tests only between these two GPUs (by UUID)"
_TARGET_LATEST = "Target pairs for multinode tests [default: -1]"
_LATEST = (
    ToolOption("-h, --help", "shows help message and exits"),
    ToolOption("    --version", "Print nvbandwidth release version and exit"),
    _number("-b, --bufferSize SIZE", "Memcpy buffer size in MiB [default: 512]"),
    ToolOption("-l, --list", "List available testcases"),
    _several("-t, --testcase TEST", "Testcase(s) to run (by name or index)"),
    _several("-p, --testcasePrefixes PREFIX  ", "Testcase(s) to run (by prefix)"),
    ToolOption("-v, --verbose", "Verbose output"),
    ToolOption("-s, --skipVerification", "Skips data verification after copy"),
    ToolOption("-d, --disableAffinity", "Disable automatic CPU affinity control"),
    _number("-i, --testSamples N", "Iterations of the benchmark [default: 3]"),
    _pairs("-P, --targetNumPairs N", _TARGET_LATEST),
    ToolOption("-m, --useMean", "Use mean instead of median for results"),
    ToolOption("-H, --useHugePages", "Use huge pages for host allocations"),
    ToolOption(
        "-F, --format FORMAT", "Output format: text, json, or perf [default: text]",
        one_of("text", "json", "perf"),
    ),
    _several("    --pair UUID1 UUID2", _PAIR),
)  # fmt: skip
_UNLISTED = (ToolOption("--perfFormatter"), _number("--loopCount arg"))


class NvbandwidthOptions(msgspec.Struct, frozen=True, rename="camel"):
    """Options of nvbandwidth, with sizes in MiB. Those after `pair` are only sailbandwidth's."""

    help: bool = False
    list: bool = False
    verbose: bool = False
    skip_verification: bool = False
    disable_affinity: bool = False
    use_mean: bool = False
    json: bool = False
    testcase: tuple[str, ...] = ()
    testcase_prefixes: tuple[str, ...] = ()
    buffer_size: int = DEFAULT_SIZE
    test_samples: int = 3
    perf_formatter: bool = False
    loop_count: int = 16
    version: bool = False
    format: str = "text"
    target_num_pairs: int | None = None
    use_huge_pages: bool = False
    pair: tuple[str, ...] = ()
    test_local_copy: bool = False
    display_ur: bool = msgspec.field(default=False, name="displayUR")
    is_single_die: bool = False
    disable_vm: bool = False
    use_normal_copy: bool = False
    blocks: int | None = None
    threads: int | None = None


def parse(arguments: Sequence[str], options: Sequence[ToolOption]) -> NvbandwidthOptions:
    """Reads a command line. Accepts `--json` for all versions. Raises UsageError."""
    listed = {option.written for option in options}
    more = (option for option in (*_UNLISTED, _JSON) if option.written not in listed)
    parser = Parser((*options, *more))
    given = parser.given([word for word in arguments if word != "true"])
    found = msgspec.convert(given, NvbandwidthOptions)
    if found.pair and len(found.pair) != 2:
        raise UsageError("--pair: give the UUIDs of two GPUs")
    if found.testcase and found.testcase_prefixes:
        raise UsageError("-t and -p exclude each other: give one of them")
    return found


GIT_VERSION = f"linkgauge {__version__}"
"""The text in place of the commit from which the tool was built."""


class Dialect(msgspec.Struct, frozen=True):
    """A version of nvbandwidth, or a derived tool. `misprints` are wrong words in headings, by test
    name. `spread` says which variation is printed, if any. If `is_brief`, devices are not listed.
    If `has_bulk`, kernels make bulk copies by default."""

    name: str
    version: str
    header: tuple[str, ...]
    options: tuple[ToolOption, ...]
    misprints: Mapping[str, tuple[Misprint, ...]]
    tests: tuple[Testcase, ...] = CASES_0_8
    spread: Spread = None
    is_brief: bool = False
    has_bulk: bool = False

    def cases(self, *, several: bool) -> tuple[Testcase, ...]:
        """Returns the tests. If `several`, adds the tests between processes at the end."""
        return (*self.tests, *OF_SEVERAL) if several else self.tests

    @property
    def help(self) -> str:
        if self.is_brief:
            what = "A tool for bandwidth measurements on NVIDIA GPUs."
            lines = help_lines(self.options, 26)
            return f"Usage: {self.name} [options]\n\n{what}\n\nArguments:\n{lines}\n"
        width = 1 + max(len(option.written) for option in self.options)
        return f"{self.name} CLI:\n{help_lines(self.options, width)}\n"

    def settings(self, asked: NvbandwidthOptions) -> Settings:
        return Settings(
            sizes=(asked.buffer_size << 20,),
            samples=asked.test_samples,
            loops=asked.loop_count,
            verify=not asked.skip_verification,
            engines=EngineSettings(
                kernel=("plain" if asked.use_normal_copy else "bulk") if self.has_bulk else None,
                blocks=asked.blocks,
                threads=asked.threads,
                streams=1,
                tuned=False,
                affinity=not asked.disable_affinity,
            ),
        )


_BETWEEN = "multinode_device_to_device_"
_ROWS = Misprint("CPU(row)", "GPU(row)")
WRITES_AS_READS = {f"{_BETWEEN}bidirectional_memcpy_write_ce": (Misprint("Read", "Write"),)}
_MISPRINTS = {
    f"{_BETWEEN}memcpy_read_sm": (Misprint("memcpy CE", "memcpy SM"),),
    f"{_BETWEEN}bidirectional_memcpy_read_ce": (_ROWS,),
    f"{_BETWEEN}bidirectional_memcpy_read_sm": (_ROWS,),
    f"{_BETWEEN}bidirectional_memcpy_write_sm": (_ROWS,),
} | {name: (_ROWS, *writes) for name, writes in WRITES_AS_READS.items()}


def _version(number: str, options: tuple[ToolOption, ...]) -> Dialect:
    header = f"nvbandwidth Version: v{number}", f"Built from Git version: {GIT_VERSION}", ""
    return Dialect("nvbandwidth", f"v{number}", header, options, _MISPRINTS)


VERSIONS = {
    "0.8": _version("0.8", OPTIONS),
    "0.9": replace(_version("0.9", _SAMPLED), spread="cells"),
    "0.10": replace(_version("0.10.0", _LATEST), tests=CASES, spread="samples", is_brief=True),
}
