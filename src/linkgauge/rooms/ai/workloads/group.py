"""Takes samples of AI workloads, and traces one loop for Perfetto or Chrome's about:tracing."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace

from linkgauge.backends.protocol import Gated, SamplingPolicy, Timing
from linkgauge.model.operations.workload import (
    Demands,
    OperationShare,
    Rates,
    Stage,
    WorkDone,
    Workload,
)
from linkgauge.model.stats.summary import summarize

from .site import Site

_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("communication", ("nccl", "allreduce", "all_reduce", "gloo", "c10d")),
    ("copies", ("memcpy", "memset", "copy_", "aten::to")),
    ("attention", ("flash", "fmha", "attention", "sdp")),
    ("products", ("gemm", "gemv", "cutlass", "matmul", "addmm", "::mm", "::bmm", "nvjet", "xmma",
                  "splitk", "linear")),
    ("optimiser", ("adam", "multi_tensor", "foreach")),
)  # fmt: skip
"""The kinds of kernels, by words in their names. If the host computes, words are looked for in the
names of torch's own operators. Kernels without any of these words work element by element: norms,
rotations, activations."""
REST = "other kernels"


def traced(
    site: Site, asked: Workload, work: Work
) -> tuple[tuple[OperationShare, ...], str | None]:
    """Profiles a loop if `asked.trace`. Returns operations' shares of time, and the file."""
    if asked.trace is None:
        return (), None
    profile, kinds = site.torch.profiler.profile, site.torch.profiler.ProfilerActivity
    activities = [kinds.CPU, *((kinds.CUDA,) if site.is_cuda else ())]
    with profile(activities=activities, acc_events=True) as recorded:
        with site.stage(asked.kind):
            work.begin(1)
            work.run()
        site.synchronize()
    path = Path(asked.trace) / f"{name_of(asked)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    recorded.export_chrome_trace(str(path))
    return shares_of(_times(recorded, on_device=site.is_cuda)), str(path)


def name_of(asked: Workload) -> str:
    """Returns the name of a trace file without its suffix: `decode-bf16-batch8-prompt512`."""
    parts = (asked.kind, asked.numbers, f"batch{asked.batch}", f"prompt{asked.prompt}")
    more = ("" if asked.overlap else "serial", f"balance{asked.balance}")
    own = more if asked.kind in ("training", "pipeline") else ()
    return "-".join(part for part in (*parts, *own) if part)


def _times(recorded: Any, *, on_device: bool) -> Iterable[tuple[str, float]]:
    for event in recorded.key_averages():
        if on_device:
            time = getattr(event, "self_device_time_total", 0.0)
            if str(event.device_type).endswith("CUDA"):
                yield event.key, float(time)
        else:
            yield event.key, float(event.self_cpu_time_total)


def shares_of(times: Iterable[tuple[str, float]]) -> tuple[OperationShare, ...]:
    found: Counter[str] = Counter()
    for name, took in times:
        found[kind_of(name)] += took  # type: ignore[assignment]  # of numbers, whatever they count
    total = sum(found.values())
    return tuple(
        OperationShare(kind, time / total) for kind, time in found.most_common() if time > 0
    )


def kind_of(name: str) -> str:
    lower = name.lower()
    return next((kind for kind, words in _KINDS if any(word in lower for word in words)), REST)


# The group of a workload: what the engine arms, opens and waits for, and what it shows beside.


class Work(ABC):
    """A workload that runs in loops. `steps` counts the tokens, bytes or steps of a loop. `needed`
    is the device memory in bytes."""

    steps: int
    needed: int

    def begin(self, loops: int) -> None:  # noqa: B027  # most have nothing to do
        """Prepares `loops` loops before the clock starts, also in the workload's other ranks."""

    @abstractmethod
    def run(self) -> None:
        """Starts one loop. The device may still be busy when this returns."""

    @abstractmethod
    def demands(self) -> Demands:
        """Returns the operations and bytes that a loop needs."""

    @abstractmethod
    def how(self) -> tuple[str, ...]:
        """Returns short notes on the software that runs the workload."""

    def stages(self) -> tuple[Stage, ...]:
        """Returns the stages of a loop, timed in extra loops between the samples."""
        return ()

    @abstractmethod
    def mismatch(self) -> str | None:
        """Describes an error in the last loop's result, or returns None if the result is right."""

    def finish(self, done: WorkDone) -> WorkDone:
        return done

    def close(self) -> None:  # noqa: B027  # most have nothing to do
        """Ends the workload, also in its other ranks. Its tensors are freed after that."""


class WorkGroup(Gated):
    """Times a workload by the host's clock. A sample ends when the device has finished."""

    def __init__(self, site: Site, asked: Workload, work: Work, rates: Rates) -> None:
        self._site, self._asked, self._work, self._rates = site, asked, work, rates
        self._each: list[float] = []
        self._launching: list[float] = []
        self.policy = SamplingPolicy(loops=1, steps=work.steps)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        with self._site.room(self._asked.batch, self._work.needed, held=None):
            seconds, handing_over = self._timed(loops * batches)
        self._each.append(seconds / loops / batches)
        self._launching.append(handing_over / loops / batches)
        return Timing((seconds,), seconds, (None,), ((0.0, seconds),))

    def _timed(self, loops: int) -> tuple[float, float]:
        """Returns the seconds until the device has run the loops, and until all were launched."""
        self._work.begin(loops)
        self._site.synchronize()
        begin = time.perf_counter()
        with self._site.stage(f"{self._asked.kind} x{loops}"):
            for _ in range(loops):
                self._work.run()
            handed_over = time.perf_counter()
            self._site.synchronize()
        return time.perf_counter() - begin, handed_over - begin

    def mismatch(self) -> str | None:
        return self._work.mismatch()

    def done(self) -> WorkDone:
        """Returns what was measured. The first two samples are left out as a warm-up."""
        counted = self._each[2:] or self._each
        demands = self._work.demands()
        if not self._site.is_cpu:
            launching = median(self._launching[2:] or self._launching)
            demands = replace(demands, launching=launching)
        shares, file = traced(self._site, self._asked, self._work)
        done = WorkDone(
            median(counted),
            self._asked.shape.parameters,
            demands,
            self._rates,
            self._work.how(),
            tuple(
                replace(stage, summary=summarize(stage.seconds, "lower"))
                for stage in self._work.stages()
            ),
            shares=shares,
            trace=file,
        )
        return self._work.finish(done)

    def close(self) -> None:
        super().close()
        if held := vars(self._work):
            self._work.close()
            held.clear()


def times_of(run: Callable[[], float], most: int = 64) -> tuple[float, ...]:
    """Calls `run` 4 to `most` times, for about a second. Returns the results."""
    begin, found = time.monotonic(), [run()]
    while len(found) < 4 or (len(found) < most and time.monotonic() - begin < 1):
        found.append(run())
    return tuple(found)


# A pipeline: pieces of input are copied to the device, computed on, and their results copied
# back; with overlap each piece is copied while the one before it computes.


SLOTS = 3
"""The number of pieces on the device: one arrives, one computes and one leaves."""
PIECE, CPU_PIECE = 64 << 20, 1 << 20
"""The bytes of a piece, on a device and on the CPU."""
_MOST_TRIES, _CLOSE, _MOST_PRODUCTS = 8, 1.05, 512
_SCALE = 0.5
"""The scale of the weights: N(0, (scale²) / order) keeps numbers from growing."""


class Pipeline(Work):
    """Copies in, computes, copies out. Computing takes `asked.balance` % of the slower copy."""

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
        torch, slot = self._site.torch, number % SLOTS
        torch.matmul(self._there[slot], self._weights, out=self._made[slot])
        for _ in range(self._products - 1):
            self._there[slot].copy_(self._made[slot])
            torch.matmul(self._there[slot], self._weights, out=self._made[slot])

    def _fit(self) -> tuple[float, float]:
        """Sets the number of products. Returns the seconds of the slower copy and of computing."""
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
        copying, computing = self._alone
        return (Stage("copying alone", (copying,)), Stage("computing alone", (computing,)))

    def mismatch(self) -> str | None:
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
        copying, computing = self._alone
        return replace(done, link_use=copying / done.seconds, device_use=computing / done.seconds)
