"""The command `linkgauge history`."""

from __future__ import annotations

from linkgauge.model.errors import InputError
from linkgauge.model.names import hint

from .options import ACTIONS, HistoryOptions


def history(asked: HistoryOptions) -> int:
    """List the runs in the history, and show where figures changed.

    Every kept run goes to the history: an SQLite file in the data folder, or what
    LINKGAUGE_HISTORY names (a URL of PostgreSQL, a file, or none). Later runs are not compared with
    a run that got worse, until you accept it.

    Examples:
        linkgauge history --since 30d
        linkgauge history trend host_to_device_memcpy_ce
        linkgauge history accept
        linkgauge history import results"""
    from linkgauge.history.reading import Filter

    from . import actions

    action, *arguments = asked.what or ["list"]
    if action not in ACTIONS:
        raise InputError(f"unknown action {action!r}{hint(action, ACTIONS)}")
    for options, is_given, owners in (
        ("--least is", asked.least, ("trend",)),
        ("--all is", asked.whole, ("list", "trend")),
        ("--keep and --yes are", asked.keep or asked.yes, ("prune",)),
    ):
        if is_given and action not in owners:
            raise InputError(f"{options} of history {' and '.join(owners)}")
    if action not in ("list", "trend") and asked.form.is_document:
        raise InputError(f"{asked.form.flag} is of list and trend")
    own = {name: of for name, of in vars(asked).items() if name in Filter.__struct_fields__}
    given = (name for name in ("since", "until") if own[name] is not None)
    ends = {name: actions.moment(f"--{name}", own[name]) for name in given}
    which = Filter(**own | ends, benchmarks=asked.benchmark)
    return actions.CARRIED_OUT[action](asked, arguments, which)
