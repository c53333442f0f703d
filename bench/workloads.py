"""Hold AI workloads against what the same GPU reaches in each part alone.

Measures products of matrices, reads of device memory and copies from host memory with backend cuda,
then inference with a model of 3 billion parameters over batches and types, streamed weights, caches
moved, pipelines and training steps. Prints a table with the bars. Exit status: 0 every bar held, 1
one was missed, 3 something was not measured. Needs a GPU, torch with CUDA, and linkgauge on
PYTHONPATH; `--out` keeps the runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from linkgauge.engine.kept.runs import RUN_FILE, read_run
from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.operations.workload import NUMBER_KINDS, NumberKind, WorkDone, Workload
from linkgauge.rooms.ai.section import bound_of

PREFILL, DECODE, STREAMED, SPLIT = 0.45, 0.60, 0.90, 0.03
ALONE = ("gpu_matmul", "device_memory_read", "host_to_device_memcpy_ce")
SWEEP = "1,2,4,8,16,32,64"
FEW = "1,8,32"


class Bar(NamedTuple):
    """What was reached of what: `least` of `alone`, or, for an error, at most `most`."""

    name: str
    reached: float
    least: float | None = None
    most: float | None = None
    said: str = ""

    @property
    def held(self) -> bool:
        above = self.least is None or self.reached >= self.least
        return above and (self.most is None or self.reached <= self.most)


class Alone(NamedTuple):
    """What backend cuda reaches: operations/s by type, bytes/s of reads and of copies to the
    device."""

    products: dict[str, float]
    read: float | None
    to_device: float | None


class Measured(NamedTuple):
    """A cell of a workload with its figures."""

    cell: CellResult
    asked: Workload
    done: WorkDone


def measure(arguments: Sequence[str], folder: Path) -> Run | None:
    """The run of a linkgauge command; None if it kept none."""
    print(f"$ linkgauge {' '.join(arguments)}", file=sys.stderr, flush=True)
    environment = os.environ | {"LINKGAUGE_HISTORY": "none", "LINKGAUGE_NO_REPORT": "1"}
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "linkgauge", *arguments, "--out", str(folder)]
    subprocess.run(command, env=environment, check=False, stdout=sys.stderr)
    kept = sorted(folder.rglob(RUN_FILE), key=lambda path: path.stat().st_mtime)
    return read_run(kept[-1]) if kept else None


def alone_of(run: Run | None) -> Alone:
    figures = {
        (result.benchmark, cell.row): cell.headline
        for result in (run.results if run else ())
        for cell in reversed(result.cells)  # the first device's counts
        if cell.headline is not None
    }
    products = {
        kind: figures[name]
        for kind in NUMBER_KINDS
        if (name := ("gpu_matmul", kind.upper())) in figures
    }
    of = {name: rate for (name, _), rate in figures.items()}
    return Alone(products, of.get("device_memory_read"), of.get("host_to_device_memcpy_ce"))


def measured_in(run: Run | None) -> Iterator[Measured]:
    for result in run.results if run else ():
        for cell in result.cells:
            if cell.work is not None and cell.workload is not None:
                yield Measured(cell, cell.workload, cell.work)


def bars(found: Sequence[Measured], alone: Alone) -> Iterator[Bar]:
    for numbers in NUMBER_KINDS:
        yield from _inference_bars(found, alone, numbers)
    for one in found:
        if one.asked.kind == "streamed" and one.asked.overlap and one.asked.batch == 1:
            rate = alone.to_device or one.done.rates.to_device or 1.0
            reached = one.done.demands.to_device / one.done.seconds / rate
            yield Bar("weights streamed, of H2D", reached, STREAMED, said=_figures(one))
    for one in found:
        if one.asked.kind == "training" and one.done.split_error is not None:
            overlap = "overlap" if one.asked.overlap else "no overlap"
            name = f"training split, {one.asked.ranks} devices, {overlap}"
            yield Bar(name, one.done.split_error, most=SPLIT, said=_figures(one))


def _inference_bars(found: Sequence[Measured], alone: Alone, numbers: NumberKind) -> Iterator[Bar]:
    of_type = [one for one in found if one.asked.numbers == numbers]
    prefills = [
        (one.done.demands.operations / one.done.seconds / rate, one)
        for one in of_type
        if one.asked.kind == "prefill"
        and (rate := alone.products.get(numbers) or one.done.rates.operations)
    ]
    if prefills:
        share, best = max(prefills, key=lambda pair: pair[0])
        name = f"prefill {numbers}, of matmul"
        yield Bar(name, share, PREFILL, said=f"{best.cell.place}: {_figures(best)}")
    for one in of_type:
        rate = alone.read or one.done.rates.memory
        if one.asked.kind == "decode" and one.asked.batch == 1 and rate:
            share = one.done.demands.memory_bytes / one.done.seconds / rate
            name = f"decode {numbers} prompt {one.asked.prompt}, of memory read"
            yield Bar(name, share, DECODE, said=_figures(one))


def _figures(one: Measured) -> str:
    """The time of a loop, what bounds it, and what carried it out."""
    bound = bound_of(one.done)
    kind = bound.kind if bound else None
    return f"{one.done.seconds * 1e3:.4g} ms, {kind}; {'; '.join(one.done.how)}"


def report(found: Sequence[Bar], alone: Alone) -> None:
    products = ", ".join(f"{kind} {rate / 1e12:.4g}" for kind, rate in alone.products.items())
    print(f"matmul (TFLOP/s): {products or 'not measured: as torch reaches'}")
    for name, rate in (("memory read", alone.read), ("host to device", alone.to_device)):
        print(f"{name} (GB/s): {rate / 1e9:.5g}" if rate else f"{name}: as torch reaches")
    width = max((len(bar.name) for bar in found), default=0)
    for bar in found:
        wanted = f">= {bar.least:.0%}" if bar.least is not None else f"<= {bar.most:.0%}"
        state = "held" if bar.held else "MISSED"
        print(f"{bar.name:<{width}}  {bar.reached:7.1%}  {wanted:<7} {state:<7}{bar.said}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="keep the runs in this folder")
    parser.add_argument("--model", default="3b")
    parser.add_argument("--quick", action="store_true", help="bf16 at batches 1, 8 and 32 alone")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = asked.out or Path(scratch)
        alone = alone_of(measure(["run", *ALONE, "--backend", "cuda"], out / "alone"))
        model = ["--model", asked.model]
        sweep = ["ai", "inference", *model, "--types", "bf16", "--prompt", "512,2048"]
        runs = [measure([*sweep, "--batch", FEW if asked.quick else SWEEP], out / "bf16")]
        if not asked.quick:
            others = ["--types", "fp16,fp32", "--prompt", "512", "--batch", FEW]
            runs.append(measure(["ai", "inference", *model, *others], out / "others"))
        rest = ["inference_streamed", "kv_offload", "pipeline"]
        runs.append(measure(["ai", *rest, *model, "--types", "bf16"], out / "rest"))
        runs.append(measure(["ai", "training_step", "--types", "bf16"], out / "training"))
    found = list(chain.from_iterable(map(measured_in, runs)))
    held = list(bars(found, alone))
    report(held, alone)
    kinds = {one.asked.kind for one in found}
    wanted = {"prefill", "decode", "streamed", "training"}
    if wanted - kinds:
        print(f"not measured: {', '.join(sorted(wanted - kinds))}")
        return 3
    return 0 if all(bar.held for bar in held) else 1


if __name__ == "__main__":
    sys.exit(main())
