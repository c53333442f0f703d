"""The command line of nvbandwidth 0.8 and of the tools derived from it.

As there, long names may be abbreviated, `-t` and `-p` take several words, and a word `true` may
follow a switch (scripts write `-s true`).
"""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from linkgauge.cli.tool import Once, Parser, UsageError, digits
from linkgauge.model.settings import EngineSettings, Settings

HELP = """\
  -h [ --help ]                  Produce help message
  -b [ --bufferSize ] arg (=512) Memcpy buffer size in MiB
  -l [ --list ]                  List available testcases
  -t [ --testcase ] arg          Testcase(s) to run (by name or index)
  -p [ --testcasePrefixes ] arg  Testcase(s) to run (by prefix))
  -v [ --verbose ]               Verbose output
  -s [ --skipVerification ]      Skips data verification after copy
  -d [ --disableAffinity ]       Disable automatic CPU affinity control
  -i [ --testSamples ] arg (=3)  Iterations of the benchmark
  -m [ --useMean ]               Use mean instead of median for results
  -j [ --json ]                  Print output in json format instead of plain 
                                 text.
"""  # noqa: W291  # as Boost breaks the line
DEFAULT_SIZE = 512
"""MiB."""


class NvbandwidthOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options under the tool's own names; sizes in MiB. `perf_formatter` and `loop_count` are
    not in its help; the fields after them are sailbandwidth's."""

    help: bool
    list: bool
    verbose: bool
    skip_verification: bool
    disable_affinity: bool
    use_mean: bool
    json: bool
    testcase: tuple[str, ...] = ()
    testcase_prefixes: tuple[str, ...] = ()
    buffer_size: int = DEFAULT_SIZE
    test_samples: int = 3
    perf_formatter: bool = False
    loop_count: int = 16
    test_local_copy: bool = False
    display_ur: bool = msgspec.field(default=False, name="displayUR")
    kernel: Literal["plain", "bulk"] | None = None
    blocks: int | None = None
    threads: int | None = None

    @property
    def settings(self) -> Settings:
        """How to measure: one stream, and never tuned settings."""
        return Settings(
            sizes=(self.buffer_size << 20,),
            samples=self.test_samples,
            loops=self.loop_count,
            verify=not self.skip_verification,
            engines=EngineSettings(
                kernel=self.kernel,
                blocks=self.blocks,
                threads=self.threads,
                streams=1,
                tuned=False,
                affinity=not self.disable_affinity,
            ),
        )


def number(text: str, allowed: range, what: str) -> int:
    """A number in the allowed range, which `what` describes."""
    found = digits(text)
    if found is None or found not in allowed:
        raise ArgumentTypeError(f"{text!r} is not {what}")
    return found


def make_parser() -> Parser:
    """Options that are not given are absent from the namespace."""
    parser = Parser(allow_abbrev=True, argument_default=SUPPRESS)
    for name in ("help", "list", "verbose", "skipVerification", "disableAffinity", "json"):
        parser.add_argument(f"-{name[0]}", f"--{name}", action="store_true", default=False)
    parser.add_argument("-m", "--useMean", action="store_true", default=False)
    parser.add_argument("--perfFormatter", action="store_true", default=False)
    count = partial(number, allowed=range(1, 10**9 + 1), what="a number from 1 to 1000000000")
    for names in (("-b", "--bufferSize"), ("-i", "--testSamples"), ("--loopCount",)):
        parser.add_argument(*names, type=count, action=Once)
    for names in (("-t", "--testcase"), ("-p", "--testcasePrefixes")):
        parser.add_argument(*names, nargs="+", action="extend")
    return parser


def parse(parser: Parser, arguments: Sequence[str]) -> dict[str, Any]:
    """The given options, by name. Raises UsageError."""
    given, rest = parser.parse_known_args(arguments)
    for word in rest:
        if word != "true":
            what = "unrecognised option" if word.startswith("-") else "no option takes the word"
            raise UsageError(f"{what} '{word}'")
    return vars(given)


def nvbandwidth_options(arguments: Sequence[str]) -> NvbandwidthOptions:
    return msgspec.convert(parse(make_parser(), arguments), NvbandwidthOptions)
