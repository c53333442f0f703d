"""A pipeline: pieces of input are copied to the device, computed on, and their results copied back;
with overlap each piece is copied while the one before it computes."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from linkgauge.model.workload import Demands, Stage, WorkDone, Workload

from .group import Work
from .site import Site

SLOTS = 3
"""Pieces on the device: one that arrives, one that computes and one that leaves."""
PIECE, CPU_PIECE = 64 << 20, 1 << 20
"""Bytes of a piece, on a device and on the CPU."""
_MOST_TRIES, _CLOSE, _MOST_PRODUCTS = 8, 1.05, 512
_SCALE = 0.5
"""Of the weights: N(0, (scale²) / order) keeps numbers from growing."""


class Pipeline(Work):
    """A piece is a square matrix, and computing on it is a number of products with a matrix of
    weights that takes `balance` percent of the time of its two copies, the longer of them."""

    def __init__(self, site: Site, asked: Workload) -> None:
        torch, self._site, self._asked = site.torch, site, asked
        kind = site.number_type(asked.numbers)
        self._bytes = CPU_PIECE if site.is_cpu else PIECE
        count = self._bytes // kind.itemsize
        self._order = int(count**0.5) // 64 * 64
        self._bytes = self._order**2 * kind.itemsize
        self.steps = 2 * self._bytes * asked.tokens
        self.needed = (2 * SLOTS + 1) * self._bytes
        shape = (self._order, self._order)
        generator = torch.Generator(site.device).manual_seed(asked.seed)

        def drawn() -> Any:
            return torch.empty(shape, dtype=kind, device=site.device).normal_(generator=generator)

        def host() -> Any:
            return site.host_tensor(self._order**2, kind).view(shape)

        self._weights = drawn() * (_SCALE / self._order**0.5)
        self._inputs = [host().copy_(drawn()) for _ in range(asked.tokens)]
        self._outputs = [host() for _ in range(asked.tokens)]
        self._there = [torch.empty(shape, dtype=kind, device=site.device) for _ in range(SLOTS)]
        self._made = [torch.empty(shape, dtype=kind, device=site.device) for _ in range(SLOTS)]
        self._in, self._out = site.stream(), site.stream()
        self._left: list[Any] = [None] * SLOTS
        self._products = 1
        self._alone = self._fit()
        for output in self._outputs:  # of what trials made
            output.zero_()

    def _copy_in(self, number: int) -> None:
        self._there[number % SLOTS].copy_(self._inputs[number], non_blocking=True)

    def _copy_out(self, number: int) -> None:
        self._outputs[number].copy_(self._made[number % SLOTS], non_blocking=True)

    def _compute(self, number: int) -> None:
        """Products one after another, from a slot into its result and back; ends in the result."""
        torch, slot = self._site.torch, number % SLOTS
        torch.matmul(self._there[slot], self._weights, out=self._made[slot])
        for _ in range(self._products - 1):
            self._there[slot].copy_(self._made[slot])
            torch.matmul(self._there[slot], self._weights, out=self._made[slot])

    def _fit(self) -> tuple[float, float]:
        """Has computing take its percentage of copying, as measured here. Returns the seconds of
        each alone, of all pieces."""
        pieces = range(self._asked.tokens)

        def each(*calls: Any) -> float:
            def all_pieces() -> None:
                for number in pieces:
                    for call in calls:
                        call(number)

            all_pieces()
            return min(self._site.seconds(all_pieces) for _ in range(2))

        copying = max(each(self._copy_in), each(self._copy_out))
        wanted = copying * self._asked.balance / 100
        computing = each(self._compute)
        for _ in range(_MOST_TRIES):
            products = max(1, min(_MOST_PRODUCTS, round(self._products * wanted / computing)))
            if products == self._products or 1 / _CLOSE < wanted / computing < _CLOSE:
                break
            self._products = products
            computing = each(self._compute)
        return copying, computing

    def run(self) -> None:
        if self._asked.overlap:
            self._overlapping()
            return
        for number in range(self._asked.tokens):
            for call in (self._copy_in, self._compute, self._copy_out):
                call(number)
                self._site.synchronize()

    def _overlapping(self) -> None:
        site, computing = self._site, self._site.current
        for stream in (self._in, self._out):  # after what else the device has to do
            site.follow(stream, site.mark(computing))
        for number in range(self._asked.tokens):
            slot = number % SLOTS
            site.follow(self._in, self._left[slot])
            with site.queued(self._in), site.stage("input"):
                self._copy_in(number)
            site.follow(computing, site.mark(self._in))
            with site.stage("compute"):
                self._compute(number)
            site.follow(self._out, site.mark(computing))
            with site.queued(self._out), site.stage("output"):
                self._copy_out(number)
            self._left[slot] = site.mark(self._out)

    def demands(self) -> Demands:
        pieces = self._asked.tokens
        size = float(self._bytes * pieces)
        products = self._products * pieces
        copies = (self._products - 1) * pieces
        return Demands(
            2 * self._order**3 * products,
            (3 * products + 2 * copies + 2 * pieces) * self._bytes,
            to_device=size,
            to_host=size,
        )

    def how(self) -> tuple[str, ...]:
        streams = "three streams" if self._asked.overlap and self._in is not None else "one by one"
        return (f"{self._asked.tokens} pieces, {self._products} products each, {streams}",)

    def stages(self) -> tuple[Stage, ...]:
        """What copies take without computing, the longer way, and computing without copies."""
        copying, computing = self._alone
        return (Stage("copying alone", (copying,)), Stage("computing alone", (computing,)))

    def mismatch(self) -> str | None:
        """Computes the first and the last piece again, one by one, and compares all numbers."""
        self._site.synchronize()
        for number in dict.fromkeys((0, self._asked.tokens - 1)):
            found = self._outputs[number].clone()
            self._copy_in(number)
            self._compute(number)
            self._copy_out(number)
            self._site.synchronize()
            if not bool((found == self._outputs[number]).all()):
                return f"the result of piece {number} differs from what it is without overlap"
        return None

    def finish(self, done: WorkDone) -> WorkDone:
        """The link is busy for the longer way of its copies, the device for its computing."""
        copying, computing = self._alone
        return replace(done, link_use=copying / done.seconds, device_use=computing / done.seconds)

    def close(self) -> None:
        self._inputs, self._outputs = [], []
