"""`linkgauge history`: the runs that are remembered, how figures went over them, and their care."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.cli.help_text import OUTPUT, WHICH
from linkgauge.cli.options import Option, headed, own
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.report.formats import Format

from .documents import HISTORY

ACTIONS = ("list", "trend", "import", "prune")


def _complete_action(incomplete: str) -> list[str]:
    return [name for name in ACTIONS if name.startswith(incomplete)]


@own(
    history=Option(
        "Use this history instead of the one of LINKGAUGE_HISTORY or of the data folder.",
        "URL|FILE",
    ),
    **headed(
        WHICH,
        host=Option("Take the runs of this host.", "NAME"),
        label=Option("Take the runs of this label.", "TEXT"),
        accelerator=Option("Take the runs of this accelerator: nvidia-h200, or H200.", "TEXT"),
        benchmark=Option("Take the runs that measured this benchmark. Repeatable.", "NAME"),
        since=Option("Take the runs from then on: 2026-11-01, 2026-11-01T12:00, 90d.", "WHEN"),
        until=Option("Take the runs before then.", "WHEN"),
        last=Option("Take the latest N of them. Default of a list: 20.", "N"),
        keep=Option("Prune all but the runs of this time, or the latest N of a machine.", "90d|N"),
    ),
    **headed(
        OUTPUT,
        least=Option("Leave out changes that are smaller than this. Default: 1%.", "P"),
        whole=Option("Show all runs of a list, or every cell of a trend.", flag="--all"),
    ),
    yes=Option("Prune: delete what the command would otherwise only name."),
)
def history(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ACTION...",
            help="Do this: list (the default) lists runs, trend BENCHMARK [ROW,COLUMN] shows how "
            "figures went, import DIR adds runs that were kept before, prune deletes old ones.",
            autocompletion=_complete_action,
            show_default=False,
        ),
    ] = None,
    history: str | None = None,
    host: str | None = None,
    label: str | None = None,
    accelerator: str | None = None,
    benchmark: list[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    last: int | None = None,
    least: str | None = None,
    whole: bool = False,
    keep: str | None = None,
    yes: bool = False,
    form: Annotated[Format, HISTORY],
) -> int:
    """List the runs that are remembered, and show where figures changed.

    Every run that is kept goes to the history: a file of SQLite in the data folder, or what
    LINKGAUGE_HISTORY names (a URL of PostgreSQL, a file, or none).

    Examples:
        linkgauge history --since 30d
        linkgauge history trend host_to_device_memcpy_ce
        linkgauge history import results
    """
    from linkgauge.cli.options import at_least_one
    from linkgauge.history.reading import Filter

    from . import actions

    action, *arguments = what or ["list"]
    if action not in ACTIONS:
        raise InputError(f"history {action!r}{hint(action, ACTIONS)}")
    _check(action, least=bool(least), whole=whole, prune=bool(keep or yes))
    which = Filter(
        host=host,
        label=label,
        accelerator=accelerator,
        benchmarks=tuple(benchmark or ()),
        since=None if since is None else actions.moment("--since", since),
        until=None if until is None else actions.moment("--until", until),
        last=at_least_one("--last", last),
    )
    if action in ("import", "prune") and form.is_document:
        raise InputError(f"{form.flag} is of list and trend")
    if action == "import":
        if which != Filter():
            raise InputError("import adds all runs below a folder: give no filter")
        return actions.bring_in([Path(one) for one in arguments], history)
    if action == "trend":
        return actions.show_trend(arguments, which, history, least, whole=whole, form=form)
    if arguments:
        raise InputError(f"history {action} takes no {arguments[0]!r}")
    if action == "prune":
        return actions.prune(which, keep, history, yes=yes)
    return actions.show_list(which, history, form, whole=whole)


def _check(action: str, **given: bool) -> None:
    """Raises InputError for options of another action."""
    options = {
        "least": ("--least is", ("trend",)),
        "whole": ("--all is", ("list", "trend")),
        "prune": ("--keep and --yes are", ("prune",)),
    }
    for name, is_given in given.items():
        said, owners = options[name]
        if is_given and action not in owners:
            raise InputError(f"{said} of history {' and '.join(owners)}")
