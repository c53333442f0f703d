"""Writes the JSON of nccl-tests 2.19.6 (`-J`), version 3 (src/util.cu). As in nccl-tests, booleans
are the texts `true` and `false`, figures have six decimals, and the environment is included."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from .options import NcclOptions
from .text import MEGA, TIME_FORMAT, Body, Each, Line, RankLine

_FORMAT = 3
Document = dict[str, Any]


def created(asked: str, tell: Callable[[str], None]) -> IO[str] | None:
    """Creates a file, with a number in its name if `asked` exists. Returns None on failure."""
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
        by_factor = options.factor > 1
        self._document["config"] = {
            "nthreads": options.threads,
            "ngpus": options.gpus,
            "minimum_bytes": options.least,
            "maximum_bytes": options.most,
            "step_factor" if by_factor else "step_bytes": (
                options.factor if by_factor else options.step
            ),
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
