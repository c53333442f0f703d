"""run_vcpu_benchmark of the vCPU benchmark suite: profile `vm` under the name of a configuration.

Source: the suite's page: the benchmarks and their order, `results/<gpu>/<config>/`, and the files
of the topology there. It does not show its files of figures; a run of linkgauge lies in their
place, in a folder for each time that the configuration was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import msgspec

from linkgauge.benchmarks.collectives import LEAST
from linkgauge.cli.tool import Parser, UsageError, Where, hinting, size_of
from linkgauge.engine.folder import checked_label
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import opened
from linkgauge.history.keeping import remember
from linkgauge.model.collective import CollectiveChoice
from linkgauge.model.result import exit_code
from linkgauge.report.formats import FORMATS, TERMINAL
from linkgauge.report.live import Display, LiveReport

TOOL = "run_vcpu_benchmark"
HELP = """\
Usage: run_vcpu_benchmark CONFIG [--nccl-max-msg SIZE]

Measures this machine under the name of a configuration. Results are kept in
results/<gpu>/CONFIG/<time>/; without a GPU in results/cpu/CONFIG/<time>/.

  --nccl-max-msg SIZE  Largest message of the AllReduce sweep (default: 1G)

Then: linkgauge show results/<gpu>/ compares the configurations."""
RESULTS = Path("results")


@hinting(HELP.splitlines()[0])
def run(arguments: Sequence[str], where: Where) -> int:
    """Measures, shows and keeps a run."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    configuration, largest = parse(arguments)
    settings = msgspec.structs.replace(PROFILES["vm"], simulation=where.simulation)
    request = RunRequest(
        what=Selection(),
        settings=settings,
        backends=() if where.backend is None else ("host", where.backend),
        profile="vm",
        collectives=CollectiveChoice(largest=largest),
        wait=where.wait,
        out=str(RESULTS),
        label=checked_label(configuration),
        command=("linkgauge", "as", TOOL, *arguments),
        options={"--profile": "vm", "--label": configuration, "--out": str(RESULTS.absolute())},
    )
    with (
        opened(request) as session,
        LiveReport(Display(FORMATS[TERMINAL], matrix=True), remember) as report,
    ):
        measured = session.measure(session.plan(report), report, report.doubts)
        report.conclude(measured, session.folder)
        if session.folder is not None:
            place = quote(str(session.folder.parent.parent))
            print(f"to compare configurations: linkgauge show {place}")
    return exit_code(measured)


def parse(arguments: Sequence[str]) -> tuple[str, int | None]:
    """The configuration's name, and the bytes of the largest message. Raises UsageError."""
    parser = Parser()
    parser.add_argument("config")
    parser.add_argument("--nccl-max-msg", default=None)
    given = parser.parse_args(list(arguments))
    if not given.config.strip():
        raise UsageError("CONFIG: give the configuration a name")
    if given.nccl_max_msg is None:
        return given.config, None
    largest = size_of("--nccl-max-msg", given.nccl_max_msg)
    if largest < LEAST:
        raise UsageError(f"--nccl-max-msg {given.nccl_max_msg}: give at least {LEAST}")
    return given.config, largest
