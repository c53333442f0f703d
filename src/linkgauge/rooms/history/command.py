"""The command `linkgauge history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from linkgauge.cli.help_text import OTHER, OUTPUT, WHICH
from linkgauge.cli.options import Count, Options, argument, option
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.report.formats import Format

from . import HISTORY

if TYPE_CHECKING:
    from linkgauge.history.reading import Filter

ACTIONS = ("list", "trend", "accept", "import", "prune")


class HistoryOptions(Options):
    what: tuple[str, ...] = argument(
        "ACTION...",
        "Do this: list (the default) lists runs, trend BENCHMARK [ROW,COLUMN] shows how figures "
        "went, accept [RUN] makes the level of a run (the latest) the usual one, import DIR adds "
        "runs that were kept before, prune deletes old ones.",
        offer=lambda _: ACTIONS,
    )
    history: str | None = option(
        OTHER,
        "Use this history instead of the one of LINKGAUGE_HISTORY or of the data folder.",
        "URL|FILE",
        is_input=True,
    )
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
        "Take the runs from then on: 2026-11-01, 2026-11-01T12:00, 90d.",
        "WHEN",
        is_input=True,
    )
    until: str | None = option(WHICH, "Take the runs before then.", "WHEN", is_input=True)
    last: Count | None = option(WHICH, "Take the latest N of them. Default of a list: 20.", "N")
    least: str | None = option(
        OUTPUT, "Leave out changes that are smaller than this. Default: 1%.", "P"
    )
    whole: bool = option(
        OUTPUT, "Show all runs of a list, or every cell of a trend.", flags="--all"
    )
    keep: str | None = option(
        WHICH,
        "Prune all but the runs of this time, or the latest N of a machine.",
        "90d|N",
        is_input=True,
    )
    yes: bool = option(OTHER, "Prune: delete what the command would otherwise only name.")
    form: Annotated[Format, HISTORY]


def history(asked: HistoryOptions) -> int:
    """List the runs that are remembered, and show where figures changed.

    Every run that is kept goes to the history: a file of SQLite in the data folder, or what
    LINKGAUGE_HISTORY names (a URL of PostgreSQL, a file, or none). A run that is worse than those
    before it is no measure for later ones, until its level is accepted.

    Examples:
        linkgauge history --since 30d
        linkgauge history trend host_to_device_memcpy_ce
        linkgauge history accept
        linkgauge history import results"""
    from . import actions

    action, *arguments = asked.what or ["list"]
    if action not in ACTIONS:
        raise InputError(f"history {action!r}{hint(action, ACTIONS)}")
    for options, is_given, owners in (
        ("--least is", asked.least, ("trend",)),
        ("--all is", asked.whole, ("list", "trend")),
        ("--keep and --yes are", asked.keep or asked.yes, ("prune",)),
    ):
        if is_given and action not in owners:
            raise InputError(f"{options} of history {' and '.join(owners)}")
    if action not in ("list", "trend") and asked.form.is_document:
        raise InputError(f"{asked.form.flag} is of list and trend")
    return actions.CARRIED_OUT[action](asked, arguments, _filter(asked))


def _filter(asked: HistoryOptions) -> Filter:
    from linkgauge.history.reading import Filter

    from .actions import moment

    return Filter(
        host=asked.host,
        label=asked.label,
        accelerator=asked.accelerator,
        benchmarks=asked.benchmark,
        since=None if asked.since is None else moment("--since", asked.since),
        until=None if asked.until is None else moment("--until", asked.until),
        last=asked.last,
    )
