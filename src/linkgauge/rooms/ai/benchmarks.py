"""Defines the AI workloads: inference, training steps and pipelines on the devices that torch
supports.

Models have random weights (`model/operations/workload.py`), so that nothing is downloaded. No
profile contains these workloads, because they need torch and take minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    Server,
    Workload,
    WorkloadChoice,
)
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import BANDWIDTH, REQUESTS, STEP, TOKENS, Unit

NO_TORCH = f"needs torch: {pip_install('linkgauge[ai]')}"
PIECES = 16
"""The number of pieces that a pipeline's input has."""
BALANCES = (50, 100, 200)
"""The times of computing to measure, in percent of the time of copying."""


class _Scale(NamedTuple):
    """The default sizes for a kind of device. `numbers` are its number types. The first type is
    measured with all `batches` and `prompts`, the other types with the `few` batches."""

    model: ModelName
    trained: ModelName
    numbers: tuple[NumberKind, ...]
    batches: tuple[int, ...]
    prompts: tuple[int, ...]
    few: tuple[int, ...]
    batch: int
    """The batch of a training step. For prompts of the greatest length, their number."""


_CPU = _Scale("10m", "10m", ("fp32", "bf16"), (1, 4), (64,), (1,), 1)
_DEVICE = _Scale("3b", "1b", ("bf16", "fp16", "fp32"), (1, 2, 4, 8, 16, 32, 64), (512, 2048),
                 (1, 8), 4)  # fmt: skip


class WorkloadRow(OnDevices, frozen=True):
    """Benchmarks that run a workload on each of torch's devices."""

    only_by: ClassVar[str | None] = "torch"


def _scale(device: Device) -> _Scale:
    return _CPU if device.is_cpu else _DEVICE


def _numbers(choice: WorkloadChoice, scale: _Scale) -> tuple[NumberKind, ...]:
    return choice.numbers or scale.numbers


def _asked(choice: WorkloadChoice, scale: _Scale, **own: object) -> Workload:
    """Returns a workload with the choices that apply to every kind of workload. `own` are the
    values of its kind."""
    common = {
        "model": choice.model or scale.model,
        "tokens": choice.tokens,
        "seed": choice.seed,
        "trace": choice.trace,
    }
    return Workload(**(common | own))  # type: ignore[arg-type]  # by name


def _cell(device: Device, row: str, column: str, report: Report, work: Workload) -> Cell:
    memory = parse_memory(device.memory)
    transfer = Transfer(NULL, NULL, Engine(memory, "sm"))
    return Cell(row, column, (transfer,), report, operation="workload", workload=work)


def _rows(fabric: DeviceSet) -> Iterator[tuple[Device, str]]:
    """Yields each device with the first part of the labels of its rows: its name, or an empty text
    if there is only one device."""
    for device in _chosen(fabric):
        several = len(_chosen(fabric)) > 1
        yield device, f"{parse_memory(device.memory).label} " if several else ""


def _chosen(fabric: DeviceSet) -> tuple[Device, ...]:
    """Returns the devices to measure. The CPU is included only if there is no other device."""
    return tuple(one for one in fabric.devices if not one.is_cpu) or fabric.devices


def _sweep(
    choice: WorkloadChoice, scale: _Scale
) -> Iterator[tuple[NumberKind, int, tuple[int, ...]]]:
    """Yields each number type with a prompt and its batches. The first type has all prompts and
    batches, and the other types have few. The user's choice replaces the defaults."""
    prompts = choice.prompts or scale.prompts
    for numbers in _numbers(choice, scale):
        first = numbers == _numbers(choice, scale)[0]
        batches = choice.batches or (scale.batches if first else scale.few)
        for prompt in prompts if first or choice.prompts else prompts[:1]:
            yield numbers, prompt, batches


def _inference(fabric: DeviceSet) -> Iterator[Cell]:
    choice = fabric.workloads
    for device, name in _rows(fabric):
        scale = _scale(device)
        for (numbers, prompt, batches), kind in product(
            _sweep(choice, scale), ("prefill", "decode")
        ):
            for batch in batches:
                work = _asked(
                    choice, scale, kind=kind, numbers=numbers, prompt=prompt, batch=batch,
                    implementation=choice.implementation,
                )  # fmt: skip
                row = f"{name}{kind} {numbers} prompt {prompt}"
                yield _cell(device, row, str(batch), Report.RATE, work)


def _streamed(fabric: DeviceSet) -> Iterator[Cell]:
    choice = fabric.workloads
    for device, name in _rows(fabric):
        scale = _scale(device)
        batches = choice.batches or scale.few
        prompt = (choice.prompts or scale.prompts)[0]
        numbers = _numbers(choice, scale)[0]
        for overlap, batch in product((True, False), batches):
            work = _asked(
                choice, scale, kind="streamed", numbers=numbers, prompt=prompt, batch=batch,
                overlap=overlap,
            )  # fmt: skip
            row = f"{name}{numbers} prompt {prompt}{'' if overlap else ', no overlap'}"
            yield _cell(device, row, str(batch), Report.RATE, work)


def _offload(fabric: DeviceSet) -> Iterator[Cell]:
    choice = fabric.workloads
    for device, name in _rows(fabric):
        scale = _scale(device)
        prompt, numbers = (choice.prompts or scale.prompts)[-1], _numbers(choice, scale)[0]
        for kind, way in (("offload", "to host"), ("restore", "to device")):
            for batch in choice.batches or scale.few:
                work = _asked(choice, scale, kind=kind, numbers=numbers, prompt=prompt, batch=batch)
                yield _cell(device, f"{name}{way}", str(batch), Report.RATE, work)


def rank_counts(devices: int, asked: int | None) -> tuple[int, ...]:
    """Returns the numbers of ranks to measure: 1, 2, 4 … and all devices, or only the chosen
    number."""
    return counts_up_to(devices) if asked is None else (asked,)


def _training(fabric: DeviceSet) -> Iterator[Cell]:
    choice, devices = fabric.workloads, _chosen(fabric)
    for device in devices[:1]:
        scale = _scale(device)
        numbers, prompt = _numbers(choice, scale)[0], (choice.prompts or scale.prompts)[-1]
        numbers = "bf16" if numbers == "fp32" and not choice.numbers else numbers
        batches = choice.batches or (scale.batch,)
        for overlap, batch in product((False, True), batches):
            for ranks in rank_counts(len(devices), choice.ranks):
                work = _asked(
                    choice, scale, kind="training", model=choice.model or scale.trained,
                    numbers=numbers, prompt=prompt, batch=batch, overlap=overlap, ranks=ranks,
                )  # fmt: skip
                said = "overlap" if overlap else "no overlap"
                row = f"{numbers} batch {batch}, {said}"
                yield _cell(device, row, str(ranks), Report.LATENCY, work)


def _pipeline(fabric: DeviceSet) -> Iterator[Cell]:
    choice = fabric.workloads
    for device in _chosen(fabric):
        scale = _scale(device)
        for balance, overlap in product(BALANCES, (False, True)):
            work = _asked(
                choice, scale, kind="pipeline", numbers=_numbers(choice, scale)[0], tokens=PIECES,
                balance=balance, overlap=overlap,
            )  # fmt: skip
            row = f"computing {balance}%, {'overlap' if overlap else 'no overlap'}"
            yield _cell(device, row, parse_memory(device.memory).label, Report.RATE, work)


NO_SERVER = "needs a running server: linkgauge ai serving --url http://127.0.0.1:8000"
AT_ONCE = (1, 2, 4, 8, 16)
"""The numbers of concurrent requests to measure."""
PROMPT_WORDS = 16


class ServingRow(Sweep, frozen=True):
    """Benchmarks that send requests from this host to a server."""

    only_by: ClassVar[str | None] = "host"


def _request(fabric: DeviceSet, row: str, column: str, batch: int, server: Server) -> Cell:
    choice, node = fabric.workloads, fabric.nodes[0].index
    work = Workload(
        "serving", batch=batch, prompt=(choice.prompts or (PROMPT_WORDS,))[0],
        tokens=choice.tokens, seed=choice.seed, server=server,
    )  # fmt: skip
    transfer = Transfer(NULL, NULL, Engine(host(node), "cpu"))
    return Cell(row, column, (transfer,), Report.RATE, operation="workload", workload=work)


def _closed(fabric: DeviceSet) -> Iterator[Cell]:
    server = fabric.workloads.server
    if server is None:
        return
    for batch in fabric.workloads.batches or AT_ONCE:
        yield _request(fabric, server.kind, str(batch), batch, server)


def _open(fabric: DeviceSet) -> Iterator[Cell]:
    server = fabric.workloads.server
    if server is None:
        return
    for rate in fabric.workloads.rates:
        asked = replace(server, rate=rate)
        yield _request(fabric, server.kind, f"{rate:g}/s", 1, asked)


def _row(
    name: str, title: str, cells: Callable[[DeviceSet], Iterator[Cell]], unit: Unit
) -> WorkloadRow:
    return WorkloadRow(name, title, cells, unit, 0, NO_TORCH, profiles=())


WORKLOADS: tuple[WorkloadRow, ...] = (
    _row(
        "ai_inference",
        "language model, prefill and decode, type and prompt(row) by batch(column)",
        _inference,
        TOKENS,
    ),
    _row(
        "ai_inference_streamed",
        "weights streamed from host memory for each pass, prompt(row) by batch(column)",
        _streamed,
        BANDWIDTH,
    ),
    _row(
        "ai_kv_offload",
        "keys and values of a batch moved, way(row) by batch(column)",
        _offload,
        BANDWIDTH,
    ),
    _row(
        "ai_training_step",
        "training step of transformer blocks, type and batch(row) by devices(column)",
        _training,
        STEP,
    ),
    _row(
        "ai_pipeline",
        "input and results copied while pieces compute, time of computing by that of "
        "copying(row) on device(column)",
        _pipeline,
        BANDWIDTH,
    ),
)

SERVING: tuple[ServingRow, ...] = (
    ServingRow(
        "ai_serving",
        "requests to a server, by how many are under way at once(column)",
        _closed,
        REQUESTS,
        0,
        NO_SERVER,
        profiles=(),
    ),
    ServingRow(
        "ai_serving_open",
        "requests to a server at random moments, by how many a second(column)",
        _open,
        REQUESTS,
        0,
        f"{NO_SERVER} --rate 1,4",
        profiles=(),
    ),
)
