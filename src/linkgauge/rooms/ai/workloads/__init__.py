"""Runs AI workloads on the devices of backend `torch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkgauge.model.memory import Memory
from linkgauge.model.operations.workload import NumberKind, Rates, Workload

from .decoder import Decoder
from .generation import Decode, Prefill, needed_bytes
from .group import Pipeline, Work, WorkGroup
from .ranks import END, Ranks, gather
from .reference import Reference
from .site import Site, measure_rates
from .streaming import CacheMove, Streamed, streamed_bytes
from .training import Training, training_bytes

LONGEST = 4096


class Workloads:
    """Prepares workloads. Keeps the last model's weights and the devices' rates for later cells."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._rates: dict[tuple[Memory, NumberKind], Rates] = {}
        self._decoder: tuple[object, Decoder] | None = None
        self._ranks: Ranks | None = None

    def group(self, device: Any, memory: Memory, asked: Workload) -> WorkGroup:
        """Prepares a workload. Raises Unsupported if it does not fit or cannot run here."""
        site = Site(self._torch, device, memory)
        site.choose()
        rates = self._rates_of(site, asked.numbers)
        needed = _NEEDED.get(asked.kind, needed_bytes)(asked)
        self._forget_unless(_key(site, asked))
        resident = self._decoder is not None
        held = asked.shape.weight_bytes(asked.numbers) if resident else 0
        with site.room(asked.batch, needed, held=held):
            return WorkGroup(site, asked, self._work(site, asked), rates)

    def _work(self, site: Site, asked: Workload) -> Work:
        match asked.kind:
            case "prefill" | "decode":
                decoder = self.decoder(site, asked)
                own = asked.implementation == "own"
                reference = None if own else Reference(decoder)
                return (Prefill if asked.kind == "prefill" else Decode)(decoder, asked, reference)
            case "streamed":
                positions = max(LONGEST, asked.prompt)
                return Streamed(Decoder(site, asked, positions, resident=False), asked)
            case "training":
                ranks = self.ranks(site, asked)
                try:
                    return Training(site, asked, ranks)
                except BaseException:
                    if ranks is not None:  # the others wait for what to do
                        ranks.tell(END)
                    raise
            case "pipeline":
                return Pipeline(site, asked)
        return CacheMove(site, asked)

    def _rates_of(self, site: Site, numbers: NumberKind) -> Rates:
        key = site.memory, numbers
        if key not in self._rates:
            self._forget_unless(None)
            self._rates[key] = measure_rates(site, numbers)
        return self._rates[key]

    def _forget_unless(self, key: object) -> None:
        if self._decoder is not None and self._decoder[0] != key:
            site, self._decoder = self._decoder[1].site, None
            site.release()

    def decoder(self, site: Site, asked: Workload) -> Decoder:
        key = _key(site, asked)
        if self._decoder is None:
            positions = max(LONGEST, asked.prompt + asked.tokens)
            self._decoder = key, Decoder(site, asked, positions)
        return self._decoder[1]

    def ranks(self, site: Site, asked: Workload) -> Ranks | None:
        if self._ranks is not None and self._ranks.size != asked.ranks:
            self._ranks.close()
            self._ranks = None
        if self._ranks is None and asked.ranks > 1:
            self._ranks = gather(site, asked.ranks)
        if self._ranks is not None:
            self._ranks.share(asked)
        return self._ranks

    def close(self) -> None:
        self._decoder = None
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None


def _key(site: Site, asked: Workload) -> object:
    if asked.kind not in ("prefill", "decode"):
        return None
    longer = max(LONGEST, asked.prompt + asked.tokens)
    return site.memory, asked.model, asked.numbers, asked.seed, asked.implementation, longer


def _cache_bytes(asked: Workload) -> int:
    return asked.shape.cache_bytes(asked.batch, asked.prompt, asked.numbers)


def _little(_: Workload) -> int:
    return 1 << 20


_NEEDED: dict[str, Callable[[Workload], int]] = {
    "streamed": streamed_bytes,
    "offload": _cache_bytes,
    "restore": _cache_bytes,
    "training": training_bytes,
    "pipeline": _little,
}
