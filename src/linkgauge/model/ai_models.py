"""The language models of AI workloads: Llama's decoder in four sizes, and what work it takes.

A decoder-only transformer as Llama defines it: RMSNorm, rotary positions, grouped queries, SwiGLU,
and an embedding that is also the last product (tied). Weights are drawn by a seed: what a figure
needs of them is their number and their type.

Operations are counted as is usual for the utilisation of models (Chowdhery et al., PaLM, 2022,
appendix B): 2 a parameter and token, embeddings excluded, and attention's own two products; of
causal attention only what is not masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

ModelName = Literal["10m", "100m", "1b", "3b"]
NumberKind = Literal["bf16", "fp16", "fp32"]
NUMBER_BYTES: Mapping[NumberKind, int] = {"bf16": 2, "fp16": 2, "fp32": 4}
_MULTIPLY_ADD = 2
"""Operations of a multiplication and an addition."""
_PRODUCTS_OF_ATTENTION = 2
"""Queries by keys, and what comes of that by values."""
KEY_AND_VALUE = 2
BACKWARD = 2
"""The backward pass multiplies twice for each product of the forward pass: for the gradient of its
input and for that of its weights."""


class ModelShape(msgspec.Struct, frozen=True):
    """A decoder: `layers` of `hidden` numbers a token, with so many `heads` of queries and
    `kv_heads` of keys and values, `intermediate` numbers inside SwiGLU, and a `vocabulary`."""

    name: ModelName
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int

    @property
    def head(self) -> int:
        """Numbers of a head."""
        return self.hidden // self.heads

    @property
    def layer_parameters(self) -> int:
        attention = self.hidden * self.head * (2 * self.heads + KEY_AND_VALUE * self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """Without the embedding, which is also the last product."""
        return self.layers * self.layer_parameters + self.hidden

    @property
    def embedding(self) -> int:
        return self.vocabulary * self.hidden

    def weight_bytes(self, numbers: NumberKind) -> int:
        """The bytes of all weights, the embedding included."""
        return (self.parameters + self.embedding) * NUMBER_BYTES[numbers]

    def cache_bytes(self, batch: int, tokens: int, numbers: NumberKind) -> int:
        """The bytes of the keys and values of so many tokens of each sequence of a batch."""
        each = KEY_AND_VALUE * self.kv_heads * self.head * NUMBER_BYTES[numbers]
        return self.layers * batch * tokens * each

    def prefill_operations(self, batch: int, tokens: int) -> int:
        """Floating-point operations of a forward pass over prompts of so many tokens: token t
        attends to t tokens, itself included."""
        attended = tokens * (tokens + 1) // 2
        return self._operations(batch * tokens, batch * attended)

    def decode_operations(self, batch: int, context: int) -> int:
        """Those of one more token of each sequence, which attends to `context` tokens."""
        return self._operations(batch, batch * context)

    def training_operations(self, batch: int, tokens: int) -> int:
        """Those of a forward and a backward pass through the layers."""
        return (1 + BACKWARD) * self.prefill_operations(batch, tokens)

    def decode_bytes(self, batch: int, context: int, numbers: NumberKind) -> int:
        """The bytes of device memory that one step must read: every weight once, the last product's
        too, and the keys and values of the context."""
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
