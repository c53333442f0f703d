"""Implements `linkgauge copy`, which measures transfers that the user writes down."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import common
from .options import Options, argument

if TYPE_CHECKING:
    from linkgauge.engine.request import RunRequest
    from linkgauge.report.keeping import Display


_MEMORY = re.compile(r"(?:(gpu|cuda|device|dev)?:?(\d+)|(host|cpu|ram|mem|memory):?(\d*))")


def transfers_of(words: Sequence[str]) -> str:
    """Returns words as a transfer in quotes. Without quotes, a shell would take `>` for itself."""
    memories = [word for word in words if word not in ("->", "-", "to", ">")]
    return f'"{" -> ".join(map(_memory, (*memories, "DESTINATION")[: max(len(memories), 2)]))}"'


def _memory(word: str) -> str:
    found = _MEMORY.fullmatch(word.lower())
    if found is None:
        return word
    return f"host:{found[4] or 0}" if found[3] else f"cuda:{found[2]}"


class CopyOptions(Options):
    transfers: str = argument(
        "TRANSFERS",
        "Measure these; '&' joins those that run at once.",
        required=True,
        quoted=transfers_of,
    )
    profile: str = common.profile("standard")
    size: str | None = common.SIZE
    sampling: common.Sampling
    shape: common.Shape
    host_kernel: str | None = common.HOST_KERNEL
    label: str = common.label("copy")
    out: Path | None = common.OUT
    no_report: bool = common.NO_REPORT
    simulated: common.SimulatedOrListed
    utilization: bool = common.UTILIZATION
    wait: bool = common.WAIT
    profiling: common.Profiling
    no_verdict: bool = common.NO_VERDICT
    form: common.RunFormat


def copy(asked: CopyOptions) -> int:
    """Measure transfers that you write down, all at the same time.

    A transfer is MEMORY -> MEMORY by ENGINE; ce is a copy engine, sm a kernel, cpu host threads.

    Examples:
        linkgauge copy "cuda:0 -> cuda:1 by ce" --size 256M
        linkgauge copy "host:0 -> cuda:0 & cuda:0 -> host:0"
    """
    from linkgauge.uses.measuring import carry_out

    return carry_out(requested(asked), displayed(asked))


def requested(asked: CopyOptions) -> RunRequest:
    from linkgauge.engine.request import Written

    from .requests import engines_of, request_of, settings_of, under

    engines = engines_of(asked.shape, asked.host_kernel)
    settings = settings_of(asked.profile, asked.size, asked.sampling, engines, asked.simulated)
    settings = under(asked.profiling, settings, asked.out)
    return request_of(asked, Written(asked.transfers), settings, asked.profile)


def displayed(asked: CopyOptions) -> Display:
    from linkgauge.report.keeping import Display

    return Display(
        asked.form, asked.utilization,
        verdict=not asked.no_verdict, matrix=True, page=not asked.no_report,
    )  # fmt: skip
