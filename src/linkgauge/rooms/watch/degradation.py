"""Finds cells that are worse than before or than expected. Two slow measurements in a row degrade a
cell, and two good measurements restore it. Wrong bytes, errors and timeouts degrade it at once."""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import TableId, bytes_of
from linkgauge.model.documents.history import EarlierRun, SeriesId
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.recorded import recorded_kind
from linkgauge.model.stats.change_points import change_points
from linkgauge.model.stats.modes import cut
from linkgauge.model.stats.summary import robust_deviation
from linkgauge.model.units import Better

from .events import Degraded, Noticed, Recovered, Why

_N = TypeVar("_N", bound=Noticed)

LEAST = 5
"""The fewest earlier figures that are enough to know what is usual."""
MOST = 60
"""The number of the latest earlier figures that count."""
IN_A_ROW = 2
STEADY, UNSTEADY = 0.03, 0.1
"""The least losses that count by default. `UNSTEADY` is for paths of which single figures of
healthy machines are far off: in recorded runs, no two in a row are off by more."""
_FAR = 5.0
"""A figure this many deviations from the usual figure is not slow by chance."""
_FEW = 4.0
"""The weight that enlarges the scatter of few earlier figures, because their scatter is less
certain. With this number of earlier figures, the scatter counts twice."""


class WatchedCell(NamedTuple):
    cell: SeriesId
    found: CellResult
    result: Result


class _State:
    def __init__(self) -> None:
        self.usual: deque[float] = deque(maxlen=MOST)
        self.recent = deque[Why | None]([None] * IN_A_ROW, maxlen=IN_A_ROW)
        self.since: float | None = None
        self.why: Why = "history"


class Degradation:
    """Tracks degraded cells. A figure is slow if it is low for the hardware, or if its loss against
    the usual figure exceeds both `least` and the variation of earlier figures."""

    def __init__(self, least: float | None = None) -> None:
        self._asked = least
        self._least = STEADY if least is None else least
        self._cells = defaultdict[SeriesId, _State](_State)

    def learn(self, runs: Iterable[EarlierRun], better: Mapping[TableId, Better]) -> None:
        """Learns usual figures of the tables in `better` from earlier runs, the latest first."""
        series = grouped(
            (one.cell, one.figure)
            for run in runs
            for one in run.figures
            if one.status == "pass" and one.table in better and one.figure is not None
        )
        for cell, figures in series.items():
            usual = self._usual(figures[::-1], is_rate=better[cell.table] == "higher")
            self._cells[cell].usual.extend(usual)

    def _usual(self, figures: Sequence[float], *, is_rate: bool) -> Sequence[float]:
        """Returns the figures after the last lasting change or, if that was a loss, before it."""
        changes = change_points(figures)
        begins = [0, 0, *(one.at for one in changes)]
        last = changes[-1].ratio if changes else 1.0
        is_worse = (last < 1) == is_rate and abs(last - 1) > self._least
        return figures[begins[-2] : begins[-1]] if is_worse else figures[begins[-1] :]

    def suspects(self, seen: Iterable[WatchedCell]) -> Iterator[WatchedCell]:
        for one in seen:
            if one.found.status == "pass" and self._cells[one.cell].since is None:
                last = _repetitions(one.found)[-1:]
                if any(self._slow(one, figure) for figure in last):
                    yield one

    def observe(self, seen: WatchedCell, now: float, time: str) -> Degraded | Recovered | None:
        """Adds a measurement. Returns an event if the cell became degraded or recovered, else None.
        `now` is in seconds, `time` a date and time."""
        state, status = self._cells[seen.cell], seen.found.status
        if status in ("fail", "error", "timeout"):
            state.recent.append(status)
            state.why, is_low = status, True
        else:
            for figure in _repetitions(seen.found):
                state.recent.append(why := self._slow(seen, figure))
                state.why = why or state.why
                if why is None and state.since is None:
                    state.usual.append(figure)
            is_low = all(state.recent)
        if is_low and state.since is None:
            state.since = now
            return self._noticed(Degraded, seen, state, time)
        if state.since is not None and not any(state.recent):
            since, state.since = state.since, None
            return self._noticed(Recovered, seen, state, time, seconds=now - since)
        return None

    def is_open(self, cell: SeriesId) -> bool:
        state = self._cells[cell]
        return (state.recent[-1] is None) is (state.since is not None)

    def degraded(self) -> tuple[SeriesId, ...]:
        return tuple(cell for cell, state in self._cells.items() if state.since is not None)

    def whys(self) -> Collection[Why]:
        return {state.why for state in self._cells.values() if state.since is not None}

    def _noticed(
        self, kind: type[_N], seen: WatchedCell, state: _State, time: str, **more: float
    ) -> _N:
        expected = seen.found.expected
        return by_name(
            kind, seen.found, seen.result,
            time=time, cell=seen.cell, why=state.why,
            bytes=bytes_of(seen.found, seen.result.size),
            figure=seen.found.headline,
            usual=statistics.median(state.usual) if len(state.usual) >= LEAST else None,
            earlier=len(state.usual),
            expected=None if expected is None else expected.figure,
            share=seen.found.reached,
            **more,
        )  # fmt: skip

    def _slow(self, seen: WatchedCell, figure: float) -> Why | None:
        low: Why | None = "expected" if seen.found.verdict == "low" else None
        earlier = self._cells[seen.cell].usual
        if len(earlier) < LEAST or figure <= 0:
            return low
        usual = statistics.median(earlier)
        scatter = robust_deviation(abs(one - usual) for one in earlier) / usual
        # Where single figures of healthy runs are farther off than the least loss of a steady path,
        # two in a row may be, too.
        furthest = recorded_kind(seen.found, seen.found.bytes).furthest
        is_steady = seen.result.simulated or furthest < STEADY
        least = self._least if self._asked is not None or is_steady else UNSTEADY
        bound = max(least, _FAR * scatter * (1 + _FEW / len(earlier)))
        speed = figure / usual if seen.result.better == "higher" else usual / figure
        return "history" if speed < 1 - bound else low


def _repetitions(cell: CellResult) -> list[float]:
    by_repetition = cut(
        cell.samples, [sum(gates) for gates in cell.repetitions] or [len(cell.samples)]
    )
    return [statistics.median(repetition) for repetition in by_repetition if repetition]
