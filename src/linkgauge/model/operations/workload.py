"""AI workloads, their language models, and the results that workloads have besides samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from linkgauge.model.shareable import Facts, FileName, FreeText, ServedModel, Word
from linkgauge.model.stats.summary import Summary

# The language models of AI workloads: Llama's decoder in four sizes, and what work it takes.
#
# A decoder-only transformer as Llama defines it: RMSNorm, rotary positions, grouped queries,
# SwiGLU, and an embedding that is also the last product (tied). Weights are drawn by a seed: what a
# figure needs of them is their number and their type.
#
# Operations are counted as is usual for the utilisation of models (Chowdhery et al., PaLM, 2022,
# appendix B): 2 a parameter and token, embeddings excluded, and attention's own two products; of
# causal attention only what is not masked.

ModelName = Literal["10m", "100m", "1b", "3b"]
NumberKind = Literal["bf16", "fp16", "fp32"]
NUMBER_BYTES: Mapping[NumberKind, int] = {"bf16": 2, "fp16": 2, "fp32": 4}
_MULTIPLY_ADD = 2
"""The operations of a multiplication and an addition."""
_PRODUCTS_OF_ATTENTION = 2
"""The products of attention: queries by keys, and the result by values."""
KEY_AND_VALUE = 2
BACKWARD = 2
"""The backward pass has two products for each product of the forward pass: one for the gradient of
the input, and one for the gradient of the weights."""


class ModelShape(msgspec.Struct, frozen=True):
    """A model's sizes. `hidden` is the width of a token's vector, `intermediate` SwiGLU's width."""

    name: ModelName
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    @property
    def layer_parameters(self) -> int:
        attention = self.hidden * self.head * (2 * self.heads + KEY_AND_VALUE * self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """The number of parameters, without the embedding."""
        return self.layers * self.layer_parameters + self.hidden

    @property
    def embedding(self) -> int:
        return self.vocabulary * self.hidden

    def weight_bytes(self, numbers: NumberKind) -> int:
        return (self.parameters + self.embedding) * NUMBER_BYTES[numbers]

    def cache_bytes(self, batch: int, tokens: int, numbers: NumberKind) -> int:
        each = KEY_AND_VALUE * self.kv_heads * self.head * NUMBER_BYTES[numbers]
        return self.layers * batch * tokens * each

    def prefill_operations(self, batch: int, tokens: int) -> int:
        """Returns the floating-point operations of a prefill. Token t attends to tokens 1 to t."""
        attended = tokens * (tokens + 1) // 2
        return self._operations(batch * tokens, batch * attended)

    def decode_operations(self, batch: int, context: int) -> int:
        return self._operations(batch, batch * context)

    def training_operations(self, batch: int, tokens: int) -> int:
        return (1 + BACKWARD) * self.prefill_operations(batch, tokens)

    def decode_bytes(self, batch: int, context: int, numbers: NumberKind) -> int:
        return self.weight_bytes(numbers) + self.cache_bytes(batch, context, numbers)

    def _operations(self, tokens: int, attended: int) -> int:
        attention = self.layers * _PRODUCTS_OF_ATTENTION * self.heads * self.head * attended
        return _MULTIPLY_ADD * (self.parameters * tokens + attention)


MODELS: Mapping[ModelName, ModelShape] = {
    one.name: one
    for one in (
        ModelShape("10m", 256, 12, 4, 2, 768, 4096),
        ModelShape("100m", 768, 12, 12, 4, 2048, 32000),
        # The layers of Llama 3.2 1B, and 13 of Llama 3 8B's.
        ModelShape("1b", 2048, 16, 32, 8, 8192, 32000),
        ModelShape("3b", 4096, 13, 32, 8, 14336, 32000),
    )
}


WorkKind = Literal[
    "prefill", "decode", "streamed", "offload", "restore", "training", "pipeline", "serving"
]
Implementation = Literal["own", "transformers"]
NUMBER_KINDS: tuple[NumberKind, ...] = get_args(NumberKind)
WORK_SAMPLES = 5
"""The number of samples of a workload. Each sample takes many operations, and preparing a workload
takes longer than all samples."""


ServerKind = Literal["openai", "triton-http", "triton-grpc"]


class Server(msgspec.Struct, frozen=True, omit_defaults=True):
    """A running inference server that requests go to.

    url: The URL of the server.
    kind: The protocol of the server.
    model: The model to request; null for the server's first model.
    rate: Requests per second at random moments; null if a fixed number of requests runs at once."""

    url: FreeText
    kind: ServerKind = "openai"
    model: ServedModel | None = None
    rate: float | None = None


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """An AI workload on one device, or on several ranks.

    kind: The kind of work. `prefill`: a forward pass over `batch` prompts. `decode`: generating
        `tokens` more tokens for each prompt. `streamed`: a forward pass with weights from host
        memory. `offload` and `restore`: copying keys and values to host memory and back.
        `training`: a step in mixed precision. `pipeline`: pieces copied in, processed and copied
        out. `serving`: requests to a server.
    model: The model's shape, by its name.
    numbers: The type of its numbers.
    batch: The number of prompts, or of concurrent requests.
    prompt: Tokens of a prompt; for `serving`, words.
    tokens: Tokens to generate for each prompt; for `pipeline`, pieces of input.
    overlap: Whether copies and collectives run while kernels compute, instead of waiting for them.
    ranks: The number of devices that work together.
    balance: For `pipeline`, the time of computing as a percentage of the time of copying.
    implementation: The implementation: linkgauge's own, or that of the package transformers.
    seed: The seed of weights and prompts.
    trace: The folder for the trace of an additional loop; null for no trace.
    server: The server that requests go to; null for other kinds."""

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
    trace: FileName | None = None
    server: Server | None = None

    @property
    def shape(self) -> ModelShape:
        return MODELS[self.model]


class WorkloadChoice(msgspec.Struct, frozen=True):
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
    """A separately timed part, such as `forward` of a training step or `first token` of inference.

    name: The name of the part.
    seconds: Seconds that the part took, each time.
    summary: Statistics of the seconds; null if there are none."""

    name: Word
    seconds: tuple[float, ...]
    summary: Summary | None = None


class Demands(msgspec.Struct, frozen=True):
    """The amounts of each kind of work that one loop must do.

    operations: Floating-point operations.
    memory_bytes: Bytes of device memory.
    to_device: Bytes over the link from the host.
    to_host: Bytes over the link to the host.
    between_devices: Bytes over links between devices.
    launching: Seconds that the host takes to launch all work; null if the host itself computes."""

    operations: float = 0.0
    memory_bytes: float = 0.0
    to_device: float = 0.0
    to_host: float = 0.0
    between_devices: float = 0.0
    launching: float | None = None


class Rates(msgspec.Struct, frozen=True):
    """A device's rates, measured by the same process before the workload. Null: not measured.

    operations: Operations/s of a matrix product with the workload's number type.
    memory: Bytes/s of a read of device memory.
    to_device: Bytes/s of copies from pinned host memory.
    to_host: Bytes/s of copies to pinned host memory.
    between_devices: Bytes/s of an all-reduce."""

    operations: float | None = None
    memory: float | None = None
    to_device: float | None = None
    to_host: float | None = None
    between_devices: float | None = None


class OperationShare(msgspec.Struct, frozen=True):
    """The share of a traced loop that operations of one kind take.

    name: The kind of operation.
    fraction: The share of the loop's device time, from 0 to 1."""

    name: Word
    fraction: float


class WorkDone(msgspec.Struct, frozen=True):
    """The results of a workload besides its samples.

    seconds: Median time of a loop in seconds.
    parameters: Parameters of the model; 0 for a server's model.
    demands: The work that one loop must do.
    rates: The rates that the device reaches for each kind of work.
    how: The software that carried out the workload.
    stages: The parts that are timed separately.
    split_error: Relative difference of a training step from the sum of its stages; else null.
    communication: Seconds that a loop's collectives take alone; null without collectives.
    exposed: Seconds of a loop in which only collectives run; null without collectives.
    link_use: Share of a loop that its bytes take on the host link at full rate; null if unknown.
    device_use: Share of a loop that its work takes on the device at full rate; null if unknown.
    shares: The shares of a traced loop's device time, by kind of operation; empty without a trace.
    trace: The file of the trace; null without a trace.
    tokens_rate: A server's tokens per second; null for other work."""

    seconds: float
    parameters: int
    demands: Demands
    rates: Rates
    how: tuple[Facts, ...] = ()
    stages: tuple[Stage, ...] = ()
    split_error: float | None = None
    communication: float | None = None
    exposed: float | None = None
    link_use: float | None = None
    device_use: float | None = None
    shares: tuple[OperationShare, ...] = ()
    trace: FileName | None = None
    tokens_rate: float | None = None
