"""Defines benchmarks of AI workloads. No profile has them: they need torch, and take long."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from linkgauge.benchmarks.table import DeviceSet, OnDevices, Sweep, counts_up_to
from linkgauge.model.errors import pip_install
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import NULL, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.workload import (
    ModelName,
    NumberKind,
    Workload,
    WorkloadChoice,
)
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import BANDWIDTH, REQUESTS, STEP, TOKENS

NO_TORCH = f"needs torch: {pip_install('linkgauge[ai]')}"
PIECES = 16
"""The number of pieces that a pipeline's input has."""
BALANCES = (50, 100, 200)
"""The times of computing to measure, in percent of the time of copying."""


class _Scale(NamedTuple):
    """Defaults for a CPU or an accelerator. `trained` is the model for training. The first number
    type in `numbers` is measured with all `batches`, the others only with the batches `few`."""

    model: ModelName
    trained: ModelName
    numbers: tuple[NumberKind, ...]
    batches: tuple[int, ...]
    prompts: tuple[int, ...]
    few: tuple[int, ...]
    batch: int
    """The number of prompts in a training step. They have the greatest length in `prompts`."""


_CPU = _Scale("10m", "10m", ("fp32", "bf16"), (1, 4), (64,), (1,), 1)
_DEVICE = _Scale("3b", "1b", ("bf16", "fp16", "fp32"), (1, 2, 4, 8, 16, 32, 64), (512, 2048),
                 (1, 8), 4)  # fmt: skip


class WorkloadRow(OnDevices, frozen=True):
    only_by: ClassVar[str | None] = "torch"


class _Asked(NamedTuple):
    device: Device
    name: str
    choice: WorkloadChoice
    scale: _Scale

    @property
    def numbers(self) -> tuple[NumberKind, ...]:
        return self.choice.numbers or self.scale.numbers

    @property
    def prompts(self) -> tuple[int, ...]:
        return self.choice.prompts or self.scale.prompts

    def cell(self, row: str, column: object, report: Report = Report.RATE, **own: object) -> Cell:
        choice = self.choice
        common = {
            "model": choice.model or self.scale.model, "numbers": self.numbers[0],
            "tokens": choice.tokens, "seed": choice.seed, "trace": choice.trace,
        }  # fmt: skip
        work = Workload(**(common | own))  # type: ignore[arg-type]  # by name
        transfer = Transfer(NULL, NULL, Engine(parse_memory(self.device.memory), "sm"))
        return Cell(row, str(column), (transfer,), report, operation="workload", workload=work)


def _on_each(fabric: DeviceSet) -> tuple[_Asked, ...]:
    chosen = tuple(one for one in fabric.devices if not one.is_cpu) or fabric.devices
    return tuple(
        _Asked(
            device,
            f"{parse_memory(device.memory).label} " if len(chosen) > 1 else "",
            fabric.workloads,
            _CPU if device.is_cpu else _DEVICE,
        )
        for device in chosen
    )


def _inference(fabric: DeviceSet) -> Iterator[Cell]:
    for asked in _on_each(fabric):
        choice, scale = asked.choice, asked.scale
        for numbers in asked.numbers:
            is_first = numbers == asked.numbers[0]
            batches = choice.batches or (scale.batches if is_first else scale.few)
            prompts = asked.prompts if is_first or choice.prompts else asked.prompts[:1]
            for prompt, kind, batch in product(prompts, ("prefill", "decode"), batches):
                row = f"{asked.name}{kind} {numbers} prompt {prompt}"
                yield asked.cell(
                    row, batch, kind=kind, numbers=numbers, prompt=prompt, batch=batch,
                    implementation=choice.implementation,
                )  # fmt: skip


def _streamed(fabric: DeviceSet) -> Iterator[Cell]:
    for asked in _on_each(fabric):
        prompt = asked.prompts[0]
        for overlap, batch in product((True, False), asked.choice.batches or asked.scale.few):
            row = f"{asked.name}{asked.numbers[0]} prompt {prompt}"
            row += "" if overlap else ", no overlap"
            yield asked.cell(
                row, batch, kind="streamed", prompt=prompt, batch=batch, overlap=overlap
            )


def _offload(fabric: DeviceSet) -> Iterator[Cell]:
    for asked in _on_each(fabric):
        for kind, way in (("offload", "to host"), ("restore", "to device")):
            for batch in asked.choice.batches or asked.scale.few:
                row = f"{asked.name}{way}"
                yield asked.cell(row, batch, kind=kind, prompt=asked.prompts[-1], batch=batch)


def _training(fabric: DeviceSet) -> Iterator[Cell]:
    every = _on_each(fabric)
    for asked in every[:1]:
        choice, numbers = asked.choice, asked.numbers[0]
        numbers = "bf16" if numbers == "fp32" and not choice.numbers else numbers
        counts = counts_up_to(len(every)) if choice.ranks is None else (choice.ranks,)
        batches = choice.batches or (asked.scale.batch,)
        for overlap, batch, ranks in product((False, True), batches, counts):
            row = f"{numbers} batch {batch}, {'overlap' if overlap else 'no overlap'}"
            yield asked.cell(
                row, ranks, Report.LATENCY, kind="training", prompt=asked.prompts[-1],
                model=choice.model or asked.scale.trained, numbers=numbers, batch=batch,
                overlap=overlap, ranks=ranks,
            )  # fmt: skip


def _pipeline(fabric: DeviceSet) -> Iterator[Cell]:
    for asked in _on_each(fabric):
        column = parse_memory(asked.device.memory).label
        for balance, overlap in product(BALANCES, (False, True)):
            row = f"computing {balance}%, {'overlap' if overlap else 'no overlap'}"
            yield asked.cell(
                row, column, kind="pipeline", tokens=PIECES, balance=balance, overlap=overlap
            )


NO_SERVER = "needs a running server: linkgauge ai serving --url http://127.0.0.1:8000"
AT_ONCE = (1, 2, 4, 8, 16)
PROMPT_WORDS = 16


class ServingRow(Sweep, frozen=True):
    only_by: ClassVar[str | None] = "host"


def _request(
    fabric: DeviceSet, column: str, *, batch: int = 1, rate: float | None = None
) -> Iterator[Cell]:
    choice, server = fabric.workloads, fabric.workloads.server
    if server is None:
        return
    work = Workload(
        "serving", batch=batch, prompt=(choice.prompts or (PROMPT_WORDS,))[0],
        tokens=choice.tokens, seed=choice.seed, server=replace(server, rate=rate),
    )  # fmt: skip
    transfer = Transfer(NULL, NULL, Engine(host(fabric.nodes[0].index), "cpu"))
    yield Cell(server.kind, column, (transfer,), Report.RATE, operation="workload", workload=work)


def _closed(fabric: DeviceSet) -> Iterator[Cell]:
    for batch in fabric.workloads.batches or AT_ONCE:
        yield from _request(fabric, str(batch), batch=batch)


def _open(fabric: DeviceSet) -> Iterator[Cell]:
    for rate in fabric.workloads.rates:
        yield from _request(fabric, f"{rate:g}/s", rate=rate)


WORKLOADS = tuple(
    WorkloadRow(name, title, cells, unit, 0, NO_TORCH, profiles=())
    for name, title, cells, unit in (
        ("ai_inference",
         "language model, prefill and decode, type and prompt(row) by batch(column)",
         _inference, TOKENS),
        ("ai_inference_streamed",
         "weights streamed from host memory for each pass, prompt(row) by batch(column)",
         _streamed, BANDWIDTH),
        ("ai_kv_offload", "keys and values of a batch moved, direction(row) by batch(column)",
         _offload, BANDWIDTH),
        ("ai_training_step",
         "training step of transformer blocks, type and batch(row) by devices(column)",
         _training, STEP),
        ("ai_pipeline",
         ("input and results copied while pieces compute, computing in % of copying time(row) "
          "on device(column)"),
         _pipeline, BANDWIDTH),
    )
)  # fmt: skip
SERVING = tuple(
    ServingRow(name, title, cells, REQUESTS, 0, reason, profiles=())
    for name, title, cells, reason in (
        ("ai_serving", "requests to a server, by how many are under way at once(column)",
         _closed, NO_SERVER),
        ("ai_serving_open", "requests to a server at random moments, by how many a second(column)",
         _open, f"{NO_SERVER} --rate 1,4"),
    )
)  # fmt: skip
