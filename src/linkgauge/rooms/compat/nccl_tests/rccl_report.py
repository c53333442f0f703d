"""Writes the report of rccl-tests (`-Z csv` or `-Z json`), with one row for each result in place
and out of place. Source: `Reporter` in src/common.cu, in the versions that have `numCycle`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from linkgauge.machine.processes.launch import launched
from linkgauge.model.errors import InputError

from .options import NcclOptions
from .text import MEGA, Body, Line, RankLine

_NAMES = {"alltoall": "AlltoAll", "sendrecv": "SendRecv", "hypercube": "HyperCube"}
_KEYS = "size", "type", "redop", "inPlace", "time", "algBw", "busBw", "wrong"
_HEADS = {"name": "collective", "inPlace": "inplace", "algBw": "algbw", "busBw": "busbw",
          "wrong": "#wrong"}  # fmt: skip
Shown = Sequence[tuple[Line, Sequence[Body]]]


def write_report(options: NcclOptions, ranks: Sequence[RankLine], shown: Shown) -> None:
    """Writes the report; under mpirun, adds nodes and ranks. Raises InputError on failure."""
    places = {"gpus": options.devices}
    if launched().size > 1:
        hosts = len({rank.hostname for rank in ranks})
        each = {"ranksPerNode": len(ranks) // hosts, "gpusPerRank": options.devices}
        places = {"nodes": hosts, "ranks": len(ranks), **each}
    keys = ("numCycle", "name", *places, *_KEYS)
    rows = [[_written(value) for value in row] for row in _rows(shown, places.values())]
    if options.format == "csv":
        text = "".join(f"{','.join(row)}\n" for row in ([_HEADS.get(k, k) for k in keys], *rows))
    else:
        pairs = (zip(keys, row, strict=True) for row in rows)
        each_row = (", ".join(f'"{key}":{value}' for key, value in row) for row in pairs)
        text = "[\n" + ",\n".join(f"{{{row}}}" for row in each_row) + "\n" * bool(rows) + "]\n"
    try:
        Path(str(options.report)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {options.report}: {error.strerror}") from error


def _rows(shown: Shown, places: Iterable[int]) -> Iterator[tuple[float | str, ...]]:
    cycles: Counter[Line] = Counter()
    for line, bodies in shown:
        work = line.works[0]
        name = _NAMES.get(work.collective) or work.collective.title().replace("_", "")
        size = work.counts(line.size, line.ranks).receive * work.number.bytes
        for in_place, body in enumerate(bodies):
            wrong = "N/A" if body.wrong is None else str(body.wrong)
            figures = body.seconds * MEGA, body.algorithm, body.bus, wrong
            yield cycles[line], name, *places, size, work.type, line.operation, in_place, *figures
        cycles[line] += 1


def _written(value: float | str) -> str:
    return f"{value:.6f}" if isinstance(value, float) else json.dumps(value)
