"""Measures inference: a pass over prompts (prefill), and the generation of tokens (decode)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from linkgauge.model.operations.workload import (
    NUMBER_BYTES,
    Demands,
    ModelShape,
    NumberKind,
    Stage,
    Workload,
)

from .decoder import Arithmetic, Decoder, compiled
from .group import Work, times_of
from .site import first_line

if TYPE_CHECKING:
    from .reference import Reference

TOLERANCE = {"bf16": 0.05, "fp16": 0.01, "fp32": 1e-3}
"""The tolerated error of scores after rounding in all layers: the norm of a difference divided by
the norm of the expected scores."""
_CHECKED = 2
"""The number of sequences in a batch that are checked by a pass without a cache; of transformers'
model, all are."""
_TRIALS = 3


def activation_bytes(shape: ModelShape, tokens: int, numbers: NumberKind) -> int:
    """Estimates the peak bytes of a layer's activations: input, output, SwiGLU's tensors."""
    return tokens * (4 * shape.hidden + 4 * shape.intermediate) * NUMBER_BYTES[numbers]


class Inference(Work):
    """Inference by our decoder or, with `reference`, by transformers' own model of its weights."""

    def __init__(
        self, decoder: Decoder, asked: Workload, reference: Reference | None = None
    ) -> None:
        self._decoder, self._asked, self._model = decoder, asked, reference or decoder
        self._decodes = asked.kind == "decode"
        self._checked = slice(_CHECKED if reference is None else None)
        self.steps = asked.batch * (asked.tokens if self._decodes else asked.prompt)
        copied = 0 if reference is None else asked.shape.weight_bytes(asked.numbers)
        self.needed = needed_bytes(asked) + copied
        self._prompts = decoder.prompts(asked.batch, asked.prompt, asked.seed)
        positions = asked.prompt + (asked.tokens if self._decodes else 0)
        self._cache = self._model.new_cache(asked.batch, positions)
        self._scores: Any = None

    def demands(self) -> Demands:
        shape, asked = self._decoder.shape, self._asked
        if not self._decodes:
            cached = shape.cache_bytes(asked.batch, asked.prompt, asked.numbers)
            operations = shape.prefill_operations(asked.batch, asked.prompt)
            return Demands(operations, shape.weight_bytes(asked.numbers) + cached)
        contexts = [asked.prompt + number + 1 for number in range(asked.tokens)]
        return Demands(
            sum(shape.decode_operations(asked.batch, context) for context in contexts),
            sum(shape.decode_bytes(asked.batch, context, asked.numbers) for context in contexts),
        )


class Prefill(Inference):
    def run(self) -> None:
        with self._decoder.site.torch.no_grad():
            self._scores = self._model.run(self._prompts, self._cache)

    def how(self) -> tuple[str, ...]:
        return (self._model.named(self._asked.prompt), "kernels launched one by one")

    def stages(self) -> tuple[Stage, ...]:
        def seen() -> None:
            self.run()
            self._scores.argmax(-1).tolist()

        return (Stage("first token", times_of(partial(self._decoder.site.seconds, seen))),)

    def mismatch(self) -> str | None:
        with self._decoder.site.torch.no_grad():
            expected = self._decoder.run(self._prompts[self._checked])
        return unlike(self._scores[self._checked], expected, self._asked.numbers)


class Decode(Inference):
    """Generates tokens. Uses CUDA graphs and, at batch 1, compiled kernels if they are faster."""

    def __init__(
        self, decoder: Decoder, asked: Workload, reference: Reference | None = None
    ) -> None:
        super().__init__(decoder, asked, reference)
        torch, site = decoder.site.torch, decoder.site
        with torch.no_grad():
            scores = self._model.run(self._prompts, self._cache)
        size = (asked.batch, asked.tokens + 1)
        self._made = torch.zeros(size, dtype=torch.long, device=site.device)
        """The generated tokens; the first follows from the prompt."""
        self._made[:, 0] = scores.argmax(-1)
        self._scores = torch.zeros_like(scores)
        self._steps: list[Callable[[], object]] = []
        self._how: tuple[str, ...] = ()
        self._choose()
        self._forget()

    def _forget(self) -> None:
        """Erases the last results, so that a step that computes nothing fails the check."""
        self._made[:, 1:] = 0
        self._scores.fill_(float("nan"))

    def _step(self, number: int, arithmetic: Arithmetic) -> None:
        torch = self._decoder.site.torch
        with torch.no_grad():
            token = self._made[:, number : number + 1]
            start = self._asked.prompt + number
            scores = self._model.run(token, self._cache, start, arithmetic=arithmetic)
            self._made[:, number + 1] = scores.argmax(-1)
            self._scores.copy_(scores)

    def _plain(self, arithmetic: Arithmetic) -> list[Callable[[], object]]:
        return [partial(self._step, number, arithmetic) for number in range(self._asked.tokens)]

    def _choose(self) -> None:
        plain = self._decoder.arithmetic
        if not self._decoder.site.is_cuda or self._model is not self._decoder:
            self._steps, self._how = self._plain(plain), ("kernels launched one by one",)
            return
        self._steps, self._how = self._captured(plain), ("CUDA graphs",)
        problem = no_compiler() if self._asked.batch == 1 else "not at this batch"
        if problem is not None:
            if self._asked.batch == 1:
                self._how = (*self._how, f"no torch.compile: {problem}")
            return
        graphs = self._steps
        try:
            made = self._captured(compiled(self._decoder))
        except Exception as error:  # noqa: BLE001  # of a compiler: whatever it is, there are graphs
            self._how = (*self._how, f"torch.compile failed: {first_line(error)[:120]}")
            return
        before, after = self._trial(graphs), self._trial(made)
        figures = f"{before * 1e3:.3g} ms a token without, {after * 1e3:.3g} ms with torch.compile"
        if after < before:
            self._steps = made
            self._how = ("CUDA graphs of torch.compile", figures)
        else:
            self._how = ("CUDA graphs", figures)

    def _captured(self, arithmetic: Arithmetic) -> list[Callable[[], object]]:
        """Captures each step as a CUDA graph. Graphs share memory, because they run in order."""
        cuda = self._decoder.site.torch.cuda
        plain = self._plain(arithmetic)
        aside = cuda.Stream(self._decoder.site.device)
        aside.wait_stream(cuda.current_stream())
        with cuda.stream(aside):  # libraries load their kernels, and compilers make theirs
            plain[0]()
            plain[-1]()
        cuda.current_stream().wait_stream(aside)
        cuda.synchronize()
        pool, replays = cuda.graph_pool_handle(), []
        for step in plain:
            graph = cuda.CUDAGraph()
            with cuda.graph(graph, pool=pool, stream=aside):
                step()
            replays.append(graph.replay)
        return replays

    def _trial(self, steps: list[Callable[[], object]]) -> float:
        def all_steps() -> None:
            for step in steps:
                step()

        all_steps()
        best = min(self._decoder.site.seconds(all_steps) for _ in range(_TRIALS))
        return best / len(steps)

    def run(self) -> None:
        for step in self._steps:
            step()

    def how(self) -> tuple[str, ...]:
        return (self._model.named(1), *self._how)

    def stages(self) -> tuple[Stage, ...]:
        found: list[float] = []

        def tokens() -> float:
            site, last = self._decoder.site, time.perf_counter()
            for number, step in enumerate(self._steps):
                step()
                self._made[:, number + 1].tolist()
                now = time.perf_counter()
                found.append(now - last)
                last = now
            site.synchronize()
            return last

        times_of(tokens, most=32)
        return (Stage("between tokens", tuple(found)),)

    def mismatch(self) -> str | None:
        torch = self._decoder.site.torch
        whole = torch.cat((self._prompts, self._made[:, :-1]), 1)[self._checked]
        with torch.no_grad():
            expected = self._decoder.run(whole)
        return unlike(self._scores[self._checked], expected, self._asked.numbers)


def needed_bytes(asked: Workload) -> int:
    """Estimates the bytes of weights, the key-value cache, and one layer's activations."""
    shape = asked.shape
    positions = asked.prompt + (asked.tokens if asked.kind == "decode" else 0)
    return (
        shape.weight_bytes(asked.numbers)
        + shape.cache_bytes(asked.batch, positions, asked.numbers)
        + activation_bytes(shape, asked.batch * asked.prompt, asked.numbers)
    )


def unlike(found: Any, expected: Any, numbers: NumberKind) -> str | None:
    """Describes how far scores are from the expected ones; None if rounding explains it."""
    distance = (found.float() - expected.float()).norm() / expected.float().norm()
    error = float(distance)
    if error <= TOLERANCE[numbers]:  # not a number is no such error
        return None
    return f"the scores of the last token are off by {error:.2g} of their norm"


def no_compiler() -> str | None:
    if find_spec("triton") is None:
        return "triton is not installed"
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        return "no C compiler"
    return None
