"""Judges whether another tool's figures are normal, from its output alone (`linkgauge judge`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from linkgauge.cli import common
from linkgauge.cli.help_text import OUTPUT, WHAT
from linkgauge.cli.options import Options, argument, option
from linkgauge.cli.proposals import machine_names

if TYPE_CHECKING:
    from linkgauge.model.documents.result import Run
    from linkgauge.report.keeping import Display


class JudgeOptions(Options):
    files: tuple[Path, ...] = argument(
        "FILE...",
        "The output of a tool, and texts that tell of the machine; one file may hold several. "
        "- reads stdin.",
        required=True,
    )
    machine: str | None = option(
        WHAT,
        "The machine, where the files do not tell: 8 x H100 SXM, topo.txt, a .yml, or a shipped "
        "machine.",
        "PRODUCT|FILE[,FILE…]|NAME",
        offer=machine_names,
        is_input=True,
    )
    limits: Path | None = common.LIMITS
    matrix: bool = common.MATRIX
    whole: bool = common.WHOLE
    verbose: bool = common.VERBOSE
    label: str = common.label("default")
    out: Path | None = option(OUTPUT, "Keep the run below this folder.", "DIR")
    form: common.RunFormat


def judge_files(asked: JudgeOptions) -> int:
    """Judge the figures of another tool's output.

    Reads nvbandwidth, nccl-tests, rccl-tests, all_reduce_bench, hccl_demo, CUDA's samples,
    rocm-bandwidth-test, TransferBench, RVS, perftest, OSU, IMB, ucx_perftest, nixlbench, iperf3,
    STREAM, MLC, sysbench, gdsio, fio and others. Learns the machine from the output of nvidia-smi,
    lspci, lscpu, numactl -H, dmidecode -t memory, ibstat, rocm-smi --showtopo and others, and from
    NCCL's topology XML. Shows what each figure should be and why, and what is unknown. Exits with 1
    if a figure is low or a tool failed.

    Examples:
        linkgauge judge nvbandwidth.log topo.txt
        linkgauge judge nccl.log --machine "8 x H100 SXM"
        kubectl logs job/nccl-tests | linkgauge judge -
    """
    from linkgauge.model.errors import LinkgaugeError, worst_code
    from linkgauge.report.live import show_kept

    reported = reported_runs(asked)
    shown = show_kept(reported.run, reported.kept, reported.display)
    code = worst_code((shown, reported.code)) or 0
    # Where the tool lost figures, the verdict is `fail`. This command has lost none.
    return 1 if code == LinkgaugeError.exit_code else code


class ReportedRun(NamedTuple):
    run: Run
    kept: Path | None
    display: Display
    code: int


def reported_runs(asked: JudgeOptions) -> ReportedRun:
    """Judges the run of each host, and stores the runs if `--out` is given. Returns the worst.
    Raises InputError if a text cannot be read or has no figures."""
    from msgspec.structs import replace

    from linkgauge.cli.requests import command_of
    from linkgauge.report.keeping import Display

    from .judging import judged_hosts, keep, read_given_files

    limits = common.limits_in(asked.limits)
    display = Display(
        asked.form, limits=limits, matrix=asked.matrix, whole=asked.whole, verbose=asked.verbose
    )
    texts = read_given_files(asked.files)
    runs, code = judged_hosts(texts, asked.machine, asked.label, display.judged)
    runs = [replace(run, command=command_of(asked)) for run in runs]
    kept = [keep(run, asked.out) for run in runs] if asked.out else [None]
    return ReportedRun(runs[0], kept[0], display, code)
