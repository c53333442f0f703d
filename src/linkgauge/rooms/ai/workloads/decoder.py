"""Computes Llama's decoder with few, large matrix products. The cache of keys and values has a
fixed address, so CUDA graphs can use it. Tests compare with transformers' LlamaForCausalLM."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from linkgauge.model.operations.workload import ModelShape, Workload

from .site import Site

EPSILON = 1e-5
_DEVIATION = 0.02
"""The standard deviation of the weights, as in transformers."""
_BASE = 10000.0


class Layer(NamedTuple):
    """A layer's weights, laid out as in torch.nn.Linear. `inputs` is for queries, keys, values."""

    first_norm: Any
    inputs: Any
    output: Any
    second_norm: Any
    gate_up: Any
    down: Any


class Rotary(NamedTuple):
    """The cosines and sines of rotary embeddings by position. Half of the sines are negated."""

    cosines: Any
    sines: Any


Attend = Callable[[Any, Any, Any], Any]
"""A function that computes attention from queries, keys and values, each (batch, tokens, heads,
size of a head)."""


def layer_shapes(shape: ModelShape) -> Layer:
    heads = shape.heads + 2 * shape.kv_heads
    return Layer(
        (shape.hidden,),
        (heads * shape.head, shape.hidden),
        (shape.hidden, shape.heads * shape.head),
        (shape.hidden,),
        (2 * shape.intermediate, shape.hidden),
        (shape.hidden, shape.intermediate),
    )


def views(flat: Any, shape: ModelShape) -> Layer:
    parts, at = [], 0
    for size in layer_shapes(shape):
        count = math.prod(size)
        parts.append(flat[at : at + count].view(size))
        at += count
    return Layer(*parts)


def draw_layer(flat: Any, shape: ModelShape, generator: Any) -> Layer:
    """Fills `flat` with a layer's random weights, from N(0, 0.02²); the weights of norms are 1."""
    flat.normal_(0.0, _DEVIATION, generator=generator)
    layer = views(flat, shape)
    layer.first_norm.fill_(1.0)
    layer.second_norm.fill_(1.0)
    return layer


def rotary(site: Site, shape: ModelShape, positions: int, kind: Any) -> Rotary:
    """Returns rotary embeddings of the first `positions` positions (Su et al., RoFormer, 2021)."""
    torch, half = site.torch, shape.head // 2
    exponents = torch.arange(half, device=site.device, dtype=torch.float32) / half
    place = torch.arange(positions, device=site.device, dtype=torch.float32)
    angles = place[:, None] * (_BASE**-exponents)[None, :]
    cosines, sines = angles.cos(), angles.sin()
    return Rotary(
        torch.cat((cosines, cosines), -1).to(kind), torch.cat((-sines, sines), -1).to(kind)
    )


def arithmetic_of(torch: Any, shape: ModelShape, *, to_compile: bool = False) -> Arithmetic:
    """Returns two functions of tensors: a layer's computation before attention, and after it."""
    functional, addcmul, addmm = torch.nn.functional, torch.addcmul, torch.addmm
    head, heads, kv_heads = shape.head, shape.heads, shape.kv_heads

    def norm(x: Any, weight: Any) -> Any:
        # The fused kernel takes numbers of one type; weights in training are of another.
        return functional.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), EPSILON)

    def added(x: Any, inputs: Any, weights: Any) -> Any:
        if to_compile:
            return x + functional.linear(inputs, weights)
        rows = inputs.reshape(-1, inputs.shape[-1])
        return addmm(x.reshape(-1, x.shape[-1]), rows, weights.t()).view(x.shape)

    def before(
        x: Any, first_norm: Any, inputs: Any, cosines: Any, sines: Any
    ) -> tuple[Any, Any, Any]:
        made = functional.linear(norm(x, first_norm), inputs).view(*x.shape[:-1], -1, head)
        turning, values = made.split((heads + kv_heads, kv_heads), -2)
        other = turning.roll(head // 2, -1)
        turned = addcmul(turning * cosines[:, None], other, sines[:, None])
        queries, keys = turned.split((heads, kv_heads), -2)
        return queries, keys, values

    def after(x: Any, mixed: Any, output: Any, second_norm: Any, gate_up: Any, down: Any) -> Any:
        x = added(x, mixed, output)
        gate, up = functional.linear(norm(x, second_norm), gate_up).chunk(2, -1)
        return added(x, functional.silu(gate) * up, down)

    return Arithmetic(torch, before, after)


def compiled(decoder: Decoder) -> Arithmetic:
    """Compiles a layer with torch for fixed tensor shapes, with kernels tuned for batch 1. Uses no
    subprocesses to compile, because they would outlive a worker process that is killed."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch, options = decoder.site.torch, {"coordinate_descent_tuning": True}
    _, *parts = arithmetic_of(torch, decoder.shape, to_compile=True)
    how = {"fullgraph": True, "dynamic": False, "options": options}
    return Arithmetic(torch, *(torch.compile(part, **how) for part in parts))


class Arithmetic(NamedTuple):
    torch: Any
    before: Callable[..., tuple[Any, Any, Any]]
    after: Callable[..., Any]

    def layer(self, x: Any, layer: Layer, turn: Rotary, attend: Attend) -> Any:
        """Computes a layer. x and the result have the shape (batch, tokens, hidden)."""
        queries, keys, values = self.before(x, layer.first_norm, layer.inputs, *turn)
        mixed = attend(queries, keys, values).reshape(x.shape)
        return self.after(x, mixed, layer.output, layer.second_norm, layer.gate_up, layer.down)

    def norm(self, x: Any, weight: Any) -> Any:
        return self.torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, EPSILON)


def causal(torch: Any, shape: ModelShape) -> Attend:
    def attend(queries: Any, keys: Any, values: Any) -> Any:
        return attention(torch, shape, queries, keys, values, is_causal=queries.shape[1] > 1)

    return attend


def attention(
    torch: Any, shape: ModelShape, queries: Any, keys: Any, values: Any, *, is_causal: bool
) -> Any:
    grouped = shape.heads // shape.kv_heads
    if grouped > 1 and queries.dtype == torch.float32:
        # The fused kernel of this type knows no groups, and without it all scores are stored.
        keys, values = (one.repeat_interleave(grouped, 2) for one in (keys, values))
        grouped = 1
    mixed = torch.nn.functional.scaled_dot_product_attention(
        *(tensor.transpose(1, 2) for tensor in (queries, keys, values)),
        is_causal=is_causal,
        enable_gqa=grouped > 1,
    )
    return mixed.transpose(1, 2)


class KeyValueCache:
    """Keys and values, of the shape (layers, 2, batch, positions, key heads, size of a head)."""

    def __init__(
        self, site: Site, shape: ModelShape, batch: int, positions: int, kind: Any
    ) -> None:
        size = (shape.layers, 2, batch, positions, shape.kv_heads, shape.head)
        self.all = site.torch.zeros(size, dtype=kind, device=site.device)
        self._torch, self._shape = site.torch, shape

    def attend(self, layer: int, start: int) -> Attend:
        keys_of, values_of = self.all[layer]

        def attend(queries: Any, keys: Any, values: Any) -> Any:
            end = start + queries.shape[1]
            keys_of[:, start:end] = keys
            values_of[:, start:end] = values
            whole = start == 0
            seen = (keys, values) if whole else (keys_of[:, :end], values_of[:, :end])
            is_causal = whole and queries.shape[1] > 1
            return attention(self._torch, self._shape, queries, *seen, is_causal=is_causal)

        return attend


_ATTENTION = {0: "attention not fused", 1: "flash attention", 2: "memory-efficient attention",
              3: "cuDNN attention"}  # fmt: skip
"""The names of the ways to compute attention, by torch.nn.attention.SDPBackend."""


class Decoder:
    """A Llama model with random weights. Unless `resident`, `run` must be given the layers."""

    def __init__(
        self, site: Site, asked: Workload, positions: int, *, resident: bool = True
    ) -> None:
        torch, self.site, self.shape = site.torch, site, asked.shape
        self.numbers, self.kind, shape = asked.numbers, site.number_type(asked.numbers), self.shape
        generator = torch.Generator(site.device).manual_seed(asked.seed)
        self.embedding = torch.empty(
            shape.vocabulary, shape.hidden, dtype=self.kind, device=site.device
        ).normal_(0.0, _DEVIATION, generator=generator)
        self.last_norm = torch.ones(shape.hidden, dtype=self.kind, device=site.device)
        self.layers = tuple(
            draw_layer(
                torch.empty(shape.layer_parameters, dtype=self.kind, device=site.device),
                shape, generator,
            )
            for _ in range(shape.layers if resident else 0)
        )  # fmt: skip
        self.rotary = rotary(site, shape, positions, self.kind)
        self.arithmetic = arithmetic_of(torch, shape)

    def run(
        self,
        tokens: Any,
        cache: KeyValueCache | None = None,
        start: int = 0,
        layers: Iterator[Layer] | None = None,
        arithmetic: Arithmetic | None = None,
    ) -> Any:
        """Returns the scores of the next token (batch, vocabulary) for `tokens` (batch, tokens),
        the first at position `start`. `layers` and `arithmetic` replace the decoder's own."""
        arithmetic, torch = arithmetic or self.arithmetic, self.site.torch
        x = torch.nn.functional.embedding(tokens, self.embedding)
        turn = Rotary(*(table[start : start + tokens.shape[1]] for table in self.rotary))
        for number, layer in enumerate(layers or iter(self.layers)):
            attend = cache.attend(number, start) if cache else causal(torch, self.shape)
            x = arithmetic.layer(x, layer, turn, attend)
        last = arithmetic.norm(x[:, -1], self.last_norm)
        return torch.nn.functional.linear(last, self.embedding)

    def new_cache(self, batch: int, positions: int) -> KeyValueCache:
        return KeyValueCache(self.site, self.shape, batch, positions, self.kind)

    def named(self, tokens: int) -> str:
        """Returns the name of the attention kernel that torch chooses for this many tokens."""
        torch, shape, site = self.site.torch, self.shape, self.site
        sizes = (1, shape.heads, tokens, shape.head), (1, shape.kv_heads, tokens, shape.head)
        queries, keys = (torch.empty(size, dtype=self.kind, device=site.device) for size in sizes)
        grouped = shape.heads != shape.kv_heads
        if self.numbers == "fp32":
            keys, grouped = queries, False
        try:
            chosen = torch._fused_sdp_choice(  # noqa: SLF001  # there is no public question
                queries, keys, keys, is_causal=tokens > 1, enable_gqa=grouped
            )
        except (AttributeError, TypeError, RuntimeError):
            return "scaled_dot_product_attention"
        return _ATTENTION.get(int(chosen), "scaled_dot_product_attention")

    def prompts(self, batch: int, tokens: int, seed: int) -> Any:
        """Returns random tokens (batch, tokens). A seed gives the same tokens on every device."""
        torch = self.site.torch
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(self.shape.vocabulary, (batch, tokens), generator=generator)
        return drawn.to(self.site.device)
