"""Runs transformers' LlamaForCausalLM with the decoder's weights, to compare or measure it."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from linkgauge.model.errors import Unsupported, pip_install
from linkgauge.model.operations.workload import Stage, Workload

from .decoder import EPSILON, Decoder
from .generation import Inference, unlike
from .group import times_of

_BASE = 10000.0


def model_of(decoder: Decoder) -> Any:
    """Returns transformers' model with copied weights. Raises Unsupported without transformers."""
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        remedy = pip_install("linkgauge[ai]")
        raise Unsupported(f"transformers is not installed: {remedy}") from error
    shape, torch = decoder.shape, decoder.site.torch
    configuration = transformers.LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=len(decoder.rotary.cosines),
        rms_norm_eps=EPSILON,
        rope_parameters={"rope_theta": _BASE, "rope_type": "default"},
        tie_word_embeddings=True,
    )
    with torch.device(decoder.site.device):
        # Not by to(): the frequencies of rotary positions stay in FP32.
        model = transformers.AutoModelForCausalLM.from_config(
            configuration, dtype=decoder.kind, attn_implementation="sdpa"
        ).eval()
    model.load_state_dict(dict(_state(decoder)), strict=False)
    model.tie_weights()
    return model


def _state(decoder: Decoder) -> Any:
    shape = decoder.shape
    yield "model.embed_tokens.weight", decoder.embedding
    yield "lm_head.weight", decoder.embedding
    yield "model.norm.weight", decoder.last_norm
    split = [shape.heads * shape.head, *(shape.kv_heads * shape.head,) * 2]
    for number, layer in enumerate(decoder.layers):
        name = f"model.layers.{number}"
        yield f"{name}.input_layernorm.weight", layer.first_norm
        for part, weight in zip("qkv", layer.inputs.split(split), strict=True):
            yield f"{name}.self_attn.{part}_proj.weight", weight
        yield f"{name}.self_attn.o_proj.weight", layer.output
        yield f"{name}.post_attention_layernorm.weight", layer.second_norm
        for part, weight in zip(("gate", "up"), layer.gate_up.chunk(2), strict=True):
            yield f"{name}.mlp.{part}_proj.weight", weight
        yield f"{name}.mlp.down_proj.weight", layer.down


class Reference(Inference):
    """Measures transformers' own model, with a key-value cache that grows."""

    def __init__(self, decoder: Decoder, model: Any, asked: Workload) -> None:
        super().__init__(decoder, asked)
        self._model = model
        # Versions of transformers call it differently.
        known = signature(model.forward).parameters
        self._name = "cache" if "cache" in known else "past_key_values"
        self.needed += asked.shape.weight_bytes(asked.numbers)
        self._cache: Any = None
        self._first: Any = None
        self._scores: Any = None
        self._made: list[Any] = []

    def begin(self, loops: int) -> None:
        if self._decodes:
            self._prefill()

    def _prefill(self) -> None:
        with self._decoder.site.torch.no_grad():
            made = self._model(self._prompts, use_cache=True, logits_to_keep=1)
        self._cache = made["cache"] if "cache" in made else made["past_key_values"]
        self._scores = made.logits[:, -1]
        self._first = self._scores.argmax(-1, keepdim=True)

    def run(self) -> None:
        if not self._decodes:
            self._prefill()
            return
        more = self._cache.get_seq_length() - self._asked.prompt
        if more:
            self._cache.crop(-more)
        self._made = [self._first]
        for _ in range(self._asked.tokens):
            self._step()

    def _step(self) -> None:
        with self._decoder.site.torch.no_grad():
            made = self._model(self._made[-1], **{self._name: self._cache}, use_cache=True)
        self._scores = made.logits[:, -1]
        self._made.append(self._scores.argmax(-1, keepdim=True))

    def how(self) -> tuple[str, ...]:
        version = import_module("transformers").__version__
        return (f"transformers {version}", "kernels launched one by one")

    def stages(self) -> tuple[Stage, ...]:
        site = self._decoder.site
        if not self._decodes:
            return (Stage("first token", times_of(lambda: site.seconds(self._prefill))),)
        self._prefill()
        self._made = [self._first]

        def seen() -> None:
            self._step()
            self._made[-1].tolist()

        def token() -> float:
            return site.seconds(seen)

        return (Stage("between tokens", times_of(token, most=self._asked.tokens)),)

    def mismatch(self) -> str | None:
        torch = self._decoder.site.torch
        tokens = torch.cat((self._prompts, *self._made[:-1]), 1) if self._made else self._prompts
        with torch.no_grad():
            expected = self._decoder.run(tokens)
        return unlike(self._scores, expected, self._asked.numbers)

    def close(self) -> None:
        self._cache = None
