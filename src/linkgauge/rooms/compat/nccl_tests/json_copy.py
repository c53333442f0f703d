"""Writes the JSON of nccl-tests 2.19.6 (`-J`), version 3 (src/util.cu). As in nccl-tests, booleans
are the texts `true` and `false`, figures have six decimals, and the environment is included."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from linkgauge.machine.processes.launch import launched
from linkgauge.model.errors import InputError

from .options import NcclOptions
from .text import MEGA, TIME_FORMAT, Body, Each, Line, RankLine

_FORMAT = 3
Document = dict[str, Any]


def created(asked: str, tell: Callable[[str], None]) -> IO[str] | None:
    """Creates a file, numbered if `asked` exists, or returns None. Calls `tell` in either case."""
    tried, number = asked, 0
    while True:
        try:
            file = Path(tried).open("x", encoding="utf-8")  # noqa: SIM115  # kept open for the run
        except FileExistsError:
            tried, number = f"{asked}.{number}", number + 1
        except OSError:
            tell(f"# skipping json output; {tried} not accessible")
            return None
        else:
            tell(f"# Writing JSON output to {tried}")
            return file


class JsonCopy:
    def __init__(self, file: IO[str] | None, arguments: Sequence[str], library: int) -> None:
        self._file = file
        self._document: Document = {
            "version": _FORMAT,
            "start_time": _now(),
            "args": list(arguments),
            "env": [f"{name}={value}" for name, value in os.environ.items()],
            "nccl_version": library,
        }
        self._lines: list[Document] = []
        self._errors: list[str] = []

    def configuration(self, options: NcclOptions, ranks: Sequence[RankLine]) -> None:
        by_factor = "step_factor", options.factor
        step = by_factor if options.factor > 1 else ("step_bytes", options.step)
        self._document["config"] = {
            "nthreads": options.threads,
            "ngpus": options.gpus,
            "minimum_bytes": options.least,
            "maximum_bytes": options.most,
            step[0]: step[1],
            "warmup_iters": options.warm_ups,
            "iterations": options.iterations,
            "aggregated_iterations": options.aggregated,
            "validation": options.checks,
            "graph": options.graphs,
            "blocking_collectives": _truth(options.blocking > 0),
            "per_iter_timing": _truth(options.timing > 0),
            "per_iter_skip": options.skipped,
            "parallel_init": _truth(options.parallel_init),
            "devices": msgspec.to_builtins(ranks),
        }
        self._document["results"] = self._lines

    def line(self, line: Line, bodies: Sequence[Body], iterations: int) -> None:
        shown: Document = {
            "size": line.bytes_shown,
            "count": line.elements,
            "type": line.works[0].type,
            "redop": line.operation,
            "root": f"{line.root:6d}",
        }
        for side, body in zip(("out_of_place", "in_place"), bodies, strict=True):
            shown[side] = _body(body)
            if body.each is not None:
                shown[f"{side}_per_iter"] = _each(body.each)
        self._lines.append(shown | {"actual_iterations": iterations, "experiment_name": ""})

    def footer(self, wrong: int, mean: float, enough: bool | None) -> None:
        self._document["out_of_bounds"] = {"count": wrong, "okay": _truth(wrong == 0)}
        okay = "unchecked" if enough is None else _truth(enough)
        self._document["average_bus_bandwidth"] = {"bandwidth": _figure(mean), "okay": okay}

    def error(self, problem: str) -> None:
        self._errors.append(problem)

    def close(self) -> None:
        self._document |= {"errors": self._errors, "end_time": _now()}
        if self._file is not None:
            with self._file:
                json.dump(self._document, self._file, separators=(",", ":"))


def _body(body: Body) -> Document:
    return {
        "time": _figure(body.seconds * MEGA),
        "alg_bw": _figure(body.algorithm),
        "bus_bw": _figure(body.bus),
        "nwrong": None if body.wrong is None else float(body.wrong),
    }


def _each(each: Each) -> Document:
    return {
        "skipped_iterations": each.skipped,
        **{name: _figure(value) for name, value in each.figures.items()},
        "times_us": [_figure(one * MEGA) for one in each.seconds],
    }


def _figure(value: float) -> float | str:
    return "nan" if math.isnan(value) else round(value, 6)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _now() -> str:
    return datetime.now().astimezone().strftime(TIME_FORMAT)


# Writes the report of rccl-tests (`-Z csv` or `-Z json`), with one row for each result in place
# and out of place. Source: `Reporter` in src/common.cu, in the versions that have `numCycle`.


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
