"""Runs transformers' LlamaForCausalLM with the decoder's weights, as a check or as a workload."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from linkgauge.model.errors import Unsupported, pip_install

from .decoder import EPSILON, Decoder

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


class Reference:
    """transformers' own model with a decoder's weights, and with a key-value cache that grows."""

    def __init__(self, decoder: Decoder) -> None:
        self._model = model_of(decoder)
        # Versions of transformers call it differently.
        known = signature(self._model.forward).parameters
        self._name = "cache" if "cache" in known else "past_key_values"

    def new_cache(self, _batch: int, _positions: int) -> Any:
        return import_module("transformers").DynamicCache(config=self._model.config)

    def named(self, _tokens: int) -> str:
        return f"transformers {import_module('transformers').__version__}"

    def run(self, tokens: Any, cache: Any, start: int = 0, arithmetic: object = None) -> Any:
        """Returns the scores of the next token, as Decoder.run does."""
        if more := cache.get_seq_length() - start:
            cache.crop(-more)
        made = self._model(tokens, **{self._name: cache}, use_cache=True, logits_to_keep=1)
        return made.logits[:, -1]
