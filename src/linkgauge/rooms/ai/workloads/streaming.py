"""Measures inference with weights copied from host memory, and copies of key-value caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from linkgauge.model.operations.workload import NUMBER_BYTES, Demands, WorkDone, Workload

from .decoder import Decoder, KeyValueCache, Layer, draw_layer, views
from .generation import activation_bytes, unlike
from .group import Work
from .site import Site

SLOTS = 2
"""The number of layers on the device: one computes while the next layer arrives."""


class _Moving(Work):
    def finish(self, done: WorkDone) -> WorkDone:
        """Adds how much of a loop the link, and the device, would be busy at their full rates."""
        needs, rates = done.demands, done.rates

        def use(*parts: tuple[float, float | None]) -> float | None:
            times = (amount / rate / done.seconds for amount, rate in parts if amount and rate)
            return max(times, default=None)

        return replace(
            done,
            link_use=use((needs.to_device, rates.to_device), (needs.to_host, rates.to_host)),
            device_use=use(
                (needs.operations, rates.operations), (needs.memory_bytes, rates.memory)
            ),
        )


class Streamed(_Moving):
    def __init__(self, decoder: Decoder, asked: Workload) -> None:
        site, shape = decoder.site, decoder.shape
        self._decoder, self._asked, self._site = decoder, asked, site
        count = shape.layer_parameters
        self._bytes = shape.layers * count * NUMBER_BYTES[asked.numbers]
        self.steps = self._bytes
        self.needed = streamed_bytes(asked)
        self._slots = [
            site.torch.empty(count, dtype=decoder.kind, device=site.device) for _ in range(SLOTS)
        ]
        generator = site.torch.Generator(site.device).manual_seed(asked.seed)
        self._here = tuple(self._drawn(generator) for _ in range(shape.layers))
        self._prompts = decoder.prompts(asked.batch, asked.prompt, asked.seed)
        self._copying = site.stream()
        self._free: list[Any] = [None] * SLOTS
        self._next = 0
        self._scores: Any = None

    def _drawn(self, generator: Any) -> Any:
        draw_layer(self._slots[0], self._decoder.shape, generator)
        here = self._site.host_tensor(self._slots[0].numel(), self._decoder.kind)
        return here.copy_(self._slots[0])

    def _layers(self) -> Iterator[Layer]:
        arriving = self._send(0)
        for number in range(len(self._here)):
            slot, arrived = arriving
            if self._asked.overlap and number + 1 < len(self._here):
                arriving = self._send(number + 1)
            computing = self._site.current
            self._site.follow(computing, arrived)
            yield views(self._slots[slot], self._decoder.shape)
            self._free[slot] = self._site.mark(computing)
            if not self._asked.overlap and number + 1 < len(self._here):
                self._site.synchronize()
                arriving = self._send(number + 1)

    def _send(self, number: int) -> tuple[int, Any]:
        slot, self._next = self._next, (self._next + 1) % SLOTS
        self._site.follow(self._copying, self._free[slot])
        with self._site.queued(self._copying):
            self._slots[slot].copy_(self._here[number], non_blocking=True)
        return slot, self._site.mark(self._copying)

    def run(self) -> None:
        with self._site.torch.no_grad():
            self._scores = self._decoder.run(self._prompts, layers=self._layers())

    def demands(self) -> Demands:
        shape, asked = self._decoder.shape, self._asked
        return Demands(
            shape.prefill_operations(asked.batch, asked.prompt),
            shape.weight_bytes(asked.numbers) + self._bytes,  # written as they come, then read
            to_device=self._bytes,
        )

    def how(self) -> tuple[str, ...]:
        if self._asked.overlap:
            return ("the next layer is copied while one computes",)
        return ("each layer is copied before it computes",)

    def mismatch(self) -> str | None:
        torch, slot = self._site.torch, self._slots[0]

        def one_by_one() -> Iterator[Layer]:
            for here in self._here:
                self._site.synchronize()
                slot.copy_(here)
                yield views(slot, self._decoder.shape)

        with torch.no_grad():
            expected = self._decoder.run(self._prompts, layers=one_by_one())
        self._site.synchronize()
        return unlike(self._scores, expected, self._asked.numbers)


def streamed_bytes(asked: Workload) -> int:
    """Estimates the device memory: two layers, the embedding, and a layer's activations."""
    shape, each = asked.shape, NUMBER_BYTES[asked.numbers]
    weights = SLOTS * shape.layer_parameters + shape.embedding
    return weights * each + activation_bytes(shape, asked.batch * asked.prompt, asked.numbers)


class CacheMove(_Moving):
    def __init__(self, site: Site, asked: Workload) -> None:
        kind, shape = site.number_type(asked.numbers), asked.shape
        self._site, self._asked = site, asked
        self.steps = shape.cache_bytes(asked.batch, asked.prompt, asked.numbers)
        self.needed = self.steps
        self._there = KeyValueCache(site, shape, asked.batch, asked.prompt, kind).all
        generator = site.torch.Generator(site.device).manual_seed(asked.seed)
        self._there.normal_(generator=generator)
        self._here = site.host_tensor(self._there.numel(), kind).view(self._there.shape)
        self._here.copy_(self._there)
        (self._there if asked.kind == "restore" else self._here).zero_()

    @property
    def _ends(self) -> tuple[Any, Any]:
        both = self._there, self._here
        return both if self._asked.kind == "offload" else both[::-1]

    def run(self) -> None:
        source, destination = self._ends
        for layer in range(len(source)):
            destination[layer].copy_(source[layer], non_blocking=True)

    def demands(self) -> Demands:
        size = float(self.steps)
        if self._asked.kind == "offload":
            return Demands(memory_bytes=size, to_host=size)
        return Demands(memory_bytes=size, to_device=size)

    def how(self) -> tuple[str, ...]:
        return ("a copy for each layer, from or to pinned memory",)

    def mismatch(self) -> str | None:
        self._site.synchronize()
        if bool((self._here == self._there.to("cpu")).all()):
            return None
        return "keys and values differ from what was moved"
