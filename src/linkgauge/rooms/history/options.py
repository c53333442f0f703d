"""The options of `linkgauge history`."""

from __future__ import annotations

from typing import Annotated

from linkgauge.cli import common
from linkgauge.cli.help_text import OTHER, OUTPUT, WHICH
from linkgauge.cli.options import Count, Options, argument, option
from linkgauge.report.formats import Format

from . import HISTORY

ACTIONS = ("list", "trend", "accept", "import", "prune")


class HistoryOptions(Options):
    what: tuple[str, ...] = argument(
        "ACTION...",
        "list (default): list the runs; trend BENCHMARK [ROW,COLUMN]: show how figures changed; "
        "accept [RUN]: take the figures of this run (default: the latest) as normal from now on; "
        "import DIR: add DIR's runs that are not in the history; prune: delete old runs.",
        offer=lambda _: ACTIONS,
    )
    history: str | None = common.history(OTHER)
    host: str | None = option(WHICH, "Take the runs of this host.", "NAME", is_input=True)
    label: str | None = option(WHICH, "Take the runs of this label.", "TEXT", is_input=True)
    accelerator: str | None = option(
        WHICH, "Take the runs of this accelerator: nvidia-h200, or H200.", "TEXT", is_input=True
    )
    benchmark: tuple[str, ...] = option(
        WHICH, "Take the runs that measured this benchmark. Repeatable.", "NAME"
    )
    since: str | None = option(
        WHICH,
        "Take the runs since this time: 2026-11-01, 2026-11-01T12:00, 90d.",
        "WHEN",
        is_input=True,
    )
    until: str | None = option(WHICH, "Take the runs before this time.", "WHEN", is_input=True)
    last: Count | None = option(WHICH, "Take the latest N of these. Default for list: 20.", "N")
    least: str | None = option(
        OUTPUT, "Leave out changes that are smaller than this. Default: 1%.", "P"
    )
    whole: bool = option(
        OUTPUT, "Show all runs of a list, or every cell of a trend.", flags="--all"
    )
    keep: str | None = option(
        WHICH,
        "Keep the runs of the last 90 days (90d), or each machine's latest N; prune the others.",
        "90d|N",
        is_input=True,
    )
    yes: bool = option(OTHER, "Prune: delete what the command would otherwise only name.")
    form: Annotated[Format, HISTORY]
