"""Carries out the actions of `linkgauge history`: list, trend, accept, import and prune."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from linkgauge.history import VARIABLE
from linkgauge.history.address import address
from linkgauge.history.reading import (
    Filter,
    benchmarks_of,
    histories_of,
    number_of_runs,
    runs_of,
)
from linkgauge.history.records import microseconds
from linkgauge.history.store import Store, opened
from linkgauge.model.documents.history import PastRun
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.model.names import hint
from linkgauge.model.transfer import Place
from linkgauge.model.units import parse_fraction

from . import HISTORY, TRENDS, WHOLE_TRENDS
from .options import HistoryOptions

_AGE = re.compile(r"([0-9]{1,6}) ?([hdwy])", re.ASCII)
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}


def moment(name: str, text: str) -> int:
    """Reads a date, a time or an age (`30d`) as microseconds since 1970. Raises InputError."""
    if age := _AGE.fullmatch(text.strip()):
        return _ago(int(age[1]) * _HOURS[age[2]])
    try:
        found = microseconds(text.strip())
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise InputError(f"{name} {text!r}: give 2026-11-01, 2026-11-01T12:00, or 90d for 90 days")
    return found


def _ago(hours: int) -> int:
    return time.time_ns() // 1000 - hours * 3_600_000_000


@contextmanager
def _store(asked: HistoryOptions, which: Filter, *, must_exist: bool = True) -> Iterator[Store]:
    url = address(asked.history)
    if url is None:
        raise InputError(f"the history is turned off ({VARIABLE}=none): give --history URL")
    with opened(url, must_exist=must_exist) as store:
        known = benchmarks_of(store) if which.benchmarks else ()
        for name in which.benchmarks:
            if name not in known:
                raise InputError(_why_nothing(name, (), known))
        yield store


LATEST = 20
"""The runs that a list shows by default; documents hold all."""


def show_list(asked: HistoryOptions, arguments: Sequence[str], which: Filter) -> int:
    from .trends import HistoryDocument

    _refuse_more("list", arguments)
    is_brief = not (asked.whole or asked.form.is_document) and which.last is None
    with _store(asked, which) as store:
        found = runs_of(store, replace(which, last=LATEST) if is_brief else which)
        count = number_of_runs(store, which) if is_brief else len(found)
    asked.form.write(HISTORY, HistoryDocument(found[::-1]))
    if count > len(found):
        print(f"the latest {LATEST} of {count} runs: --all shows all, --last N the latest N")
    return 0


def show_trend(asked: HistoryOptions, arguments: Sequence[str], which: Filter) -> int:
    from linkgauge.judge.compare.trends import trend_of

    from .trends import TrendDocument

    if not arguments:
        raise InputError("the trend of what? Give a benchmark, and cells as ROW,COLUMN")
    benchmark, *cells = arguments
    places = [_place(text) for text in cells]
    least = {} if asked.least is None else {"least": parse_fraction(asked.least, "--least")}
    with _store(asked, which) as store:
        found = histories_of(store, benchmark, places, which)
        if not found:
            raise InputError(_why_nothing(benchmark, cells, benchmarks_of(store)))
    trends = TrendDocument(tuple(trend_of(history, **least) for history in found))
    asked.form.write(WHOLE_TRENDS if asked.whole else TRENDS, trends)
    return 0


def _place(text: str) -> Place:
    row, comma, column = text.strip("() ").partition(",")
    if not comma or not row.strip() or not column.strip():
        raise InputError(f"cell {text!r}: give its row and its column, such as 0,1")
    return Place(row.strip(), column.strip())


def _why_nothing(benchmark: str, cells: Sequence[str], known: Sequence[str]) -> str:
    if benchmark in known:
        of = f" at {', '.join(cells)}" if cells else ""
        return f"the history has no complete run of {benchmark}{of} that these options take"
    return f"no run of the history measured {benchmark!r}{hint(benchmark, known, '')}"


def _refuse_more(action: str, arguments: Sequence[str]) -> None:
    if arguments:
        raise InputError(f"history {action} takes no {arguments[0]!r}")


def accept(asked: HistoryOptions, arguments: Sequence[str], which: Filter) -> int:
    """Accepts the figures of the named run, or of the latest, as the level for later runs. Raises
    InputError unless exactly one run fits."""
    from linkgauge.history.writing import accept as accept_level

    _refuse_more("accept", arguments[1:])
    name = arguments[0] if arguments else None
    with _store(asked, which) as store:
        whole = [run for run in runs_of(store, which) if run.finished and not run.profiled]
        place = str(Path(name or ".").absolute())
        named = [run for run in whole if name == run.id or place == run.path]
        if name is None:
            named, which_one = whole[:1], "that these options take"
        else:
            which_one = f"called {name!r}{hint(name, [run.id for run in whole], '')}"
        if not named:
            raise InputError(f"the history has no complete run {which_one}")
        if len(named) > 1:
            raise InputError(f"{len(named)} runs are called {name!r}: give the folder of one")
        accept_level(store, run := named[0], _ago(0))
    print(f"accepted: later runs of {run.host}, {run.accelerators} are compared with run {run.id} "
          "and the runs after it")  # fmt: skip
    return 0


def bring_in(asked: HistoryOptions, arguments: Sequence[str], which: Filter) -> int:
    """Adds the runs below folders to the history. Returns 3 if a run could not be read."""
    from linkgauge.engine.kept.runs import PACKED, read_run
    from linkgauge.history.writing import add
    from linkgauge.judge.outcome import outcome_of
    from linkgauge.report.console import make_console
    from linkgauge.report.progress import progress_bar

    if which != Filter():
        raise InputError("import adds all runs below a folder: give no filter")
    if not arguments:
        raise InputError("import what? Give folders that hold runs, such as results")
    paths = [path for folder in arguments for path in _runs_below(Path(folder))]
    counts = Counter[str]()
    errors = make_console(stderr=True)
    with _store(asked, which, must_exist=False) as store, progress_bar(errors) as bar:
        task = bar.add_task("importing", total=len(paths))
        for path in paths:
            place = path if path.is_dir() or path.name.endswith(PACKED) else path.parent
            try:
                run = read_run(path)
                counts[add(store, run, place, outcome_of(run).word)] += 1
            except InputError as error:
                counts["left out"] += 1
                errors.print(f"left out: {error}")
            bar.advance(task)
    more = {how: f", {count} {how}" for how, count in counts.items()}
    print(f"imported: {counts['added']} of {len(paths)} runs{more.get('renewed', '')}, "
          f"{counts['known']} were there already{more.get('left out', '')}")  # fmt: skip
    return 3 if "left out" in counts else 0


def _runs_below(folder: Path) -> list[Path]:
    from linkgauge.engine.kept.runs import is_run, run_folders

    if not folder.exists():
        raise InputError(f"there is no {folder}")
    found = [folder] if is_run(folder) else run_folders(folder)
    if not found:
        raise InputError(f"no run is kept below {folder}")
    return found


def prune(asked: HistoryOptions, arguments: Sequence[str], which: Filter) -> int:
    """Removes old runs from the history if --yes, else lists them. The folders of runs stay."""
    from linkgauge.history.writing import remove
    from linkgauge.report.formats import TERMINAL, formats

    from .trends import HistoryDocument

    _refuse_more("prune", arguments)
    if asked.keep is None:
        raise InputError("prune needs --keep: 90d keeps 90 days, 100 the latest 100 runs of each "
                         "machine")  # fmt: skip
    with _store(asked, which) as store:
        found = runs_of(store, which)
        old = _old(found, asked.keep)
        if not old:
            print(f"nothing to prune: all {len(found)} runs are kept")
            return 0
        if asked.yes:
            remove(store, [run.number for run in old])
            print(f"pruned: {len(old)} of {len(found)} runs; their folders are as they were")
            return 0
    formats()[TERMINAL].write(HISTORY, HistoryDocument(tuple(old[::-1])))
    print(
        f"would prune these {len(old)} of {len(found)} runs; to do it: add --yes", file=sys.stderr
    )
    return 0


def _old(found: Sequence[PastRun], keep: str) -> list[PastRun]:
    if keep.isascii() and keep.isdecimal():
        by_machine = grouped((run.machine, run) for run in found)
        old = {run.number for runs in by_machine.values() for run in runs[int(keep) :]}
        return [run for run in found if run.number in old]
    if not _AGE.fullmatch(keep.strip()):
        raise InputError(f"--keep {keep!r}: give a time such as 90d, or a number of runs")
    oldest = moment("--keep", keep)
    return [run for run in found if (microseconds(run.started) or 0) < oldest]


CARRIED_OUT: Mapping[str, Callable[[HistoryOptions, Sequence[str], Filter], int]] = {
    "list": show_list, "trend": show_trend, "accept": accept, "import": bring_in, "prune": prune,
}  # fmt: skip
