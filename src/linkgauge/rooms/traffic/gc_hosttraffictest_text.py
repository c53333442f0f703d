"""Prints results in the format of gc-hosttraffictest's manual page: lines or one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from linkgauge.cli.tool import Quiet
from linkgauge.judge.limits import Objection, objected
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.hardware.machine import Device
from linkgauge.model.units import count_of
from linkgauge.report.words.sentences import sentence

from .benchmarks import Combination, Volume, gigabits, volume_of

TILE = "tile"
_SIDES = {"host": "host", "device": TILE}
_BAR = 40


class ProgressPrinter(Quiet):
    def __init__(self, tests: int, objection: Objection, *, lines: bool, verbose: bool) -> None:
        self._tests = tests
        self._objection = objection
        self._lines = lines
        self._verbose = verbose
        self._done = 0

    def completed(self, result: Result) -> None:
        for cell in map(partial(objected, self._objection), result.cells):
            self._done += 1
            if self._verbose:
                print(bar(self._done, self._tests), file=sys.stderr, flush=True)
            title, volume = _title(cell), volume_of(cell)
            if volume is not None and self._lines:
                print(line(title, volume), flush=True)
                if self._verbose:
                    print("\n".join(details(cell, volume)), flush=True)
            if cell.reason is not None:
                print(f"ERROR: {title}: {cell.reason}", file=sys.stderr, flush=True)


def bar(done: int, count: int) -> str:
    full = _BAR * done // count
    return f"[{'=' * full}{' ' * (_BAR - full)}] {100 * done // count:3}%"


def line(title: str, volume: Volume) -> str:
    before, _, behind = title.partition("buffer")
    names = {
        "host": "RDMA host write" if "->" in before else "RDMA host read",
        "device": "tile write" if "<-" in behind else "tile read",
    }
    figures = [f"{gigabits(volume.rate(side))} Gbps {names[side]}" for side in volume.moved]
    return f"{title}:  {', '.join(figures)}, for {volume.seconds:.2f} seconds."


def details(cell: CellResult, volume: Volume) -> Iterator[str]:
    for side, moved in volume.moved.items():
        yield f"  {_SIDES[side].title()} data transferred: {round(moved)} bytes"
    samples = count_of(len(cell.samples), "sample")
    yield f"  {samples} of {count_of(cell.loops, 'pass', 'passes')} over the buffer"
    yield from (f"  Note: {sentence(note)}" for note in cell.notes)


def heading(device: Device | None, tests: Sequence[Combination], tiles: int) -> str:
    what = "Host threads in a device's stead" if device is None else f"{device.model}"
    sizes = f"{count_of(tiles, 'tile')}, {count_of(len(tests), 'test')}"
    return f"Device: {what}; {sizes}"


def document(
    configuration: Mapping[str, str], tests: Sequence[Combination], runs: Sequence[Run]
) -> str:
    """Returns the results as JSON. All values are strings; fractions have 17 significant digits."""
    root: dict[str, Mapping[str, object]] = {"configuration": configuration}
    for number, run in enumerate(runs):
        cells = [cell for result in run.results for cell in result.cells]
        root[f"repeat_{number}"] = {
            test.name(TILE): _fields(cell) for test, cell in zip(tests, cells, strict=False)
        }
    return json.dumps(root, indent=4)


def _fields(cell: CellResult) -> dict[str, str]:
    fields = {"description": _title(cell)}
    volume = volume_of(cell)
    if volume is not None:
        fields["duration_seconds"] = f"{volume.seconds:.17g}"
        for side, moved in volume.moved.items():
            fields[f"{_SIDES[side]}_data_transferred_bytes"] = str(round(moved))
        for side in volume.moved:
            fields[f"{_SIDES[side]}_transfer_speed_gbps"] = f"{volume.rate(side) * 8e-9:.17g}"
    if cell.reason is not None:
        fields["error"] = cell.reason
    return fields


def _title(cell: CellResult) -> str:
    return cell.row.replace("device", TILE)
