"""AI workloads, as data: what a cell carries out, and what it shows beside its samples."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from .ai_models import MODELS, ModelName, ModelShape, NumberKind
from .statistics import Summary

WorkKind = Literal[
    "prefill", "decode", "streamed", "offload", "restore", "training", "pipeline", "serving"
]
Implementation = Literal["own", "transformers"]
NUMBER_KINDS: tuple[NumberKind, ...] = get_args(NumberKind)
WORK_SAMPLES = 5
"""Samples of a workload: each takes many operations, and preparing one takes longer than all."""


ServerKind = Literal["openai", "triton-http", "triton-grpc"]


class Server(msgspec.Struct, frozen=True, omit_defaults=True):
    """A running server: its `url`, what it speaks, and the `model` that is asked for (null: its
    first). With a `rate`, requests come at random moments, so many a second (an open loop);
    without, so many are under way at any time (a closed loop)."""

    url: str
    kind: ServerKind = "openai"
    model: str | None = None
    rate: float | None = None


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an AI workload does on one device, or on `ranks` of them.

    `prefill`: a forward pass over `batch` prompts of `prompt` tokens. `decode`: then, `tokens` more
    of each, one after another. `streamed`: a forward pass whose weights come from host memory layer
    by layer. `offload`, `restore`: the keys and values of the batch to host memory, and back.
    `training`: a step of mixed precision over the batch. `pipeline`: `tokens` pieces of input that
    are copied to the device, computed on and copied back; computing takes `balance` percent of the
    time of copying. `serving`: requests to a `server`, `batch` of them at once, each of `prompt`
    words for `tokens` tokens. Without `overlap`, copies and collectives wait for what computes.
    Weights and prompts are drawn by `seed`. `trace` is the folder for a trace of one more loop."""

    kind: WorkKind
    model: ModelName = "10m"
    numbers: NumberKind = "bf16"
    batch: int = 1
    prompt: int = 128
    tokens: int = 16
    overlap: bool = True
    ranks: int = 1
    balance: int = 100
    implementation: Implementation = "own"
    seed: int = 1
    trace: str | None = None
    server: Server | None = None

    @property
    def shape(self) -> ModelShape:
        return MODELS[self.model]


class WorkloadChoice(msgspec.Struct, frozen=True):
    """Which AI workloads are laid out. Null is what suits the device: of a CPU little."""

    model: ModelName | None = None
    batches: tuple[int, ...] = ()
    prompts: tuple[int, ...] = ()
    numbers: tuple[NumberKind, ...] = ()
    tokens: int = 16
    ranks: int | None = None
    implementation: Implementation = "own"
    seed: int = 1
    trace: str | None = None
    server: Server | None = None
    rates: tuple[float, ...] = ()


class Stage(msgspec.Struct, frozen=True):
    """A part of the work that is timed by itself, in seconds: of a training step `input`,
    `forward`, `backward`, `synchronisation`, `optimiser`, which add up to the step; of inference
    `first token` or `between tokens`, as the host sees them."""

    name: str
    seconds: tuple[float, ...]
    summary: Summary | None = None


class Demands(msgspec.Struct, frozen=True):
    """What one loop of the work must do: floating-point operations, bytes of device memory, bytes
    over the link to the host each way and over links between devices. `launching` is how long the
    host takes to hand over all of it, in seconds; null where the host computes itself."""

    operations: float = 0.0
    memory_bytes: float = 0.0
    to_device: float = 0.0
    to_host: float = 0.0
    between_devices: float = 0.0
    launching: float | None = None


class Rates(msgspec.Struct, frozen=True):
    """What the same device reaches in each, measured beforehand by the same process: operations/s
    of a product of matrices of the same type, bytes/s of a read of device memory, of copies from
    and to pinned host memory, and of an all-reduce. Null: not measured."""

    operations: float | None = None
    memory: float | None = None
    to_device: float | None = None
    to_host: float | None = None
    between_devices: float | None = None


class Share(msgspec.Struct, frozen=True):
    """What part of a traced loop's device time operations of a kind take."""

    name: str
    fraction: float


class WorkDone(msgspec.Struct, frozen=True):
    """What a workload shows beside its samples. `seconds` is the median time of a loop, `how` says
    what carried it out. `split_error` is how far the sum of a step's stages is from its time,
    relative. `communication` are the seconds of a loop's collectives by themselves, `exposed` those
    that computing did not hide. `link_use` and `device_use` are the shares of a loop in which the
    link to the host, and the device, would be busy at the rates that each reaches alone. `shares`
    are of the trace in the file `trace`. `tokens_rate` are a server's tokens/s."""

    seconds: float
    parameters: int
    demands: Demands
    rates: Rates
    how: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    split_error: float | None = None
    communication: float | None = None
    exposed: float | None = None
    link_use: float | None = None
    device_use: float | None = None
    shares: tuple[Share, ...] = ()
    trace: str | None = None
    tokens_rate: float | None = None
