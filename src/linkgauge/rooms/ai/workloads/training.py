"""Measures a training step in mixed precision. Weights, gradients and AdamW's moments are FP32;
autocast multiplies in the chosen type. The ranks add up a layer's gradients as one tensor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from itertools import pairwise
from statistics import median
from typing import Any

from msgspec.structs import replace

from linkgauge.machine.processes.channel import Channel, carry_out, decoder
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.workload import (
    NUMBER_BYTES,
    Demands,
    Rates,
    Stage,
    WorkDone,
    Workload,
)

from .decoder import Layer, arithmetic_of, causal, draw_layer, rotary, views
from .group import Work
from .ranks import COMMUNICATE, END, Join, Ranks, from_environment
from .site import Site

STAGES = ("input", "forward", "backward", "synchronisation", "optimiser")
_WARM_UPS = 2
_COMMUNICATED = 3
_MASTER = 4
"""The bytes of a number in the weights, their gradients and both moments."""
_COPIES = 4
_RATE = 1e-4


class Training(Work):
    steps = 1

    def __init__(self, site: Site, asked: Workload, ranks: Ranks | None = None) -> None:
        torch, shape = site.torch, asked.shape
        self._site, self._asked, self._ranks, self._shape = site, asked, ranks, shape
        self._kind = site.number_type(asked.numbers)
        self.needed = training_bytes(asked)
        generator = torch.Generator(site.device).manual_seed(asked.seed)
        count = shape.layer_parameters
        self._weights, self._gradients = (
            [torch.zeros(count, device=site.device) for _ in range(shape.layers)] for _ in range(2)
        )
        self._hooks: list[Any] = []
        self._layers = [self._leaves(number, generator) for number in range(shape.layers)]
        for flat, gradient in zip(self._weights, self._gradients, strict=True):
            flat.grad = gradient
        self._optimiser = torch.optim.AdamW(self._weights, lr=_RATE, fused=site.is_cuda or None)
        self._scaler = torch.amp.GradScaler(site.device.type, enabled=asked.numbers == "fp16")
        self._arithmetic = arithmetic_of(torch, shape)
        self._turn = rotary(site, shape, asked.prompt, self._kind)
        self._set_up_input()
        self._waiting: list[Any] = []
        self._marks: list[list[Any]] = []
        self._losses: list[Any] = []
        self._alone = 0.0

    def _leaves(self, number: int, generator: Any) -> Layer:
        drawn = draw_layer(self._weights[number], self._shape, generator)
        layer = Layer(*(weight.detach().requires_grad_() for weight in drawn))
        left = [0]

        def ready(_: Any) -> None:
            left[0] += 1
            if left[0] == len(layer):
                left[0] = 0
                if self._ranks is not None and self._asked.overlap:
                    self._waiting.append(self._ranks.reduce(self._gradients[number], later=True))

        for weight, gradient in zip(
            layer, views(self._gradients[number], self._shape), strict=True
        ):
            weight.grad = gradient
            self._hooks.append(weight.register_post_accumulate_grad_hook(ready))
        return layer

    def _set_up_input(self) -> None:
        asked, site = self._asked, self._site
        size = asked.batch * asked.prompt * self._shape.hidden
        generator = site.torch.Generator().manual_seed(
            asked.seed + (self._ranks.rank if self._ranks else 0)
        )
        self._here = site.host_tensor(size, self._kind)
        self._here.copy_(site.torch.randn(size, generator=generator))
        self._there = [
            site.torch.zeros(size, dtype=self._kind, device=site.device) for _ in range(2)
        ]
        self._copying = site.stream()
        self._arrived: Any = None
        self._number = 0
        self._sent = False

    def begin(self, loops: int) -> None:
        if self._ranks is not None:
            self._ranks.tell(loops)
            self._ranks.barrier()

    def run(self) -> None:
        self._marks.append([self._now()])
        with self._stage("input"):
            batch = self._input()
        with self._stage("forward"):
            loss = self._forward(batch)
        with self._stage("backward"):
            if self._asked.overlap:
                self._send()  # the next one
            self._scaler.scale(loss).backward()
        with self._stage("synchronisation"):
            self._synchronise()
        with self._stage("optimiser"):
            self._scaler.step(self._optimiser)
            self._scaler.update()
            for gradient in self._gradients:
                gradient.zero_()
        self._losses.append(loss.detach())

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        with self._site.stage(name):
            yield
        self._marks[-1].append(self._now())

    def _now(self) -> Any:
        if not self._site.is_cuda:
            return time.perf_counter()
        event = self._site.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _send(self) -> None:
        site, slot = self._site, self._there[self._number % 2]
        site.follow(self._copying, site.mark(site.current))  # nothing reads the slot any more
        with site.queued(self._copying if self._asked.overlap else None):
            slot.copy_(self._here, non_blocking=True)
        self._arrived = site.mark(self._copying if self._asked.overlap else None)
        self._sent = True

    def _input(self) -> Any:
        if not self._sent:
            self._send()
        self._site.follow(self._site.current, self._arrived)
        batch = self._there[self._number % 2]
        self._number, self._sent = self._number + 1, False
        return batch.view(self._asked.batch, self._asked.prompt, self._shape.hidden)

    def _forward(self, batch: Any) -> Any:
        """Returns the mean square of the last layer's output. Its gradients reach every weight."""
        torch, mixed = self._site.torch, self._asked.numbers != "fp32"
        device = self._site.device.type
        with torch.autocast(device, self._kind) if mixed else nullcontext():
            x = batch
            attend = causal(torch, self._shape)
            for layer in self._layers:
                x = self._arithmetic.layer(x, layer, self._turn, attend)
        return x.float().square().mean()

    def _synchronise(self) -> None:
        if self._ranks is None:
            return
        if self._asked.overlap:
            for waiting in self._waiting:
                waiting.wait()
            self._waiting = []
        else:
            for gradient in self._gradients:
                self._ranks.reduce(gradient)
        for gradient in self._gradients:
            gradient.div_(self._ranks.size)

    def communicate(self) -> float:
        """Returns the seconds of a step's collectives without computation."""
        if self._ranks is None:
            return 0.0
        ranks = self._ranks

        def all_of_them() -> None:
            for gradient in self._gradients:
                ranks.reduce(gradient)

        ranks.barrier()
        seconds = min(self._site.seconds(all_of_them) for _ in range(_COMMUNICATED))
        for gradient in self._gradients:
            gradient.zero_()
        return seconds

    def demands(self) -> Demands:
        asked, shape = self._asked, self._shape
        weights = shape.layers * shape.layer_parameters
        size = self._here.numel() * self._kind.itemsize
        ranks = asked.ranks
        return Demands(
            shape.training_operations(asked.batch, asked.prompt),
            2 * _COPIES * _MASTER * weights,
            to_device=size,
            between_devices=2 * (ranks - 1) / ranks * _MASTER * weights,
        )

    def how(self) -> tuple[str, ...]:
        overlap = "with overlap" if self._asked.overlap else "without overlap"
        ranks = self._asked.ranks
        library = f"{ranks} ranks by {self._ranks.library}" if self._ranks else "1 rank"
        return (library, overlap, "autocast, FP32 weights, AdamW")

    def stages(self) -> tuple[Stage, ...]:
        if self._ranks is not None:
            self._ranks.tell(COMMUNICATE)
            self._alone = self.communicate()
        steps = [self._elapsed(marks) for marks in self._marks]
        return tuple(
            Stage(name, tuple(step[number] for step in steps[_WARM_UPS:] or steps))
            for number, name in enumerate(STAGES)
        )

    def _elapsed(self, marks: list[Any]) -> list[float]:
        pairs = pairwise(marks)
        if self._site.is_cuda:
            return [begin.elapsed_time(end) / 1e3 for begin, end in pairs]
        return [end - begin for begin, end in pairs]

    def mismatch(self) -> str | None:
        losses = [float(loss) for loss in self._losses]
        if any(not loss < float("inf") for loss in losses):
            return "a loss is not a number"
        if len(losses) > 1 and losses[-1] >= losses[0]:
            figures = f"{losses[0]:.4g}, after {len(losses)} steps {losses[-1]:.4g}"
            return f"the loss does not fall: {figures}"
        return None

    def finish(self, done: WorkDone) -> WorkDone:
        parts = {stage.name: median(stage.seconds) for stage in done.stages}
        split = abs(sum(parts.values()) - done.seconds) / done.seconds
        if self._ranks is None:
            return replace(done, split_error=split)
        rate = done.demands.between_devices / self._alone if self._alone else None
        rates: Rates = replace(done.rates, between_devices=rate)
        exposed = parts["synchronisation"]
        return replace(
            done, split_error=split, communication=self._alone, exposed=exposed, rates=rates
        )

    def close(self) -> None:
        if self._ranks is not None and self._ranks.rank == 0:
            self._ranks.tell(END)
        for hook in self._hooks:  # each holds the layer that holds it
            hook.remove()
        self._hooks = []
        self._layers, self._weights, self._gradients = [], [], []
        self._marks, self._losses = [], []


def training_bytes(asked: Workload) -> int:
    """Estimates the bytes of weights, gradients, moments and activations. For each token, a layer
    keeps 12 vectors of the hidden size, and 4 of the intermediate size (SwiGLU)."""
    shape, width = asked.shape, NUMBER_BYTES[asked.numbers]
    weights = shape.layer_parameters * (_COPIES * _MASTER + width)
    each = 12 * shape.hidden + 4 * shape.intermediate
    return shape.layers * (weights + asked.batch * asked.prompt * each * width)


# A rank of a training step beside the first: a process that it has started, or what `linkgauge ai
# training_step` does in all processes of torchrun or mpiexec but the first.


def _follow(device: str, rank: int, size: int, meeting: str) -> None:
    """Runs a rank other than 0: takes part in rank 0's workloads until rank 0 ends."""
    name = device if ":" in device else f"{device}:0"
    site = Site(import_module("torch"), device, parse_memory(f"torch:{name}"))
    ranks = Ranks(site, rank, size, meeting)
    try:
        while (asked := ranks.share(None)) is not None:
            work = Training(site, asked, ranks)
            while (heard := ranks.hear()) != END:
                if heard == COMMUNICATE:
                    work.communicate()
                    continue
                ranks.barrier()
                for _ in range(heard):
                    work.run()
                site.synchronize()
            work.close()
    except RuntimeError as error:  # rank 0 is gone, and so is the work
        raise LinkgaugeError(str(error)) from error
    ranks.close()


def follow_launched(launched: Launch) -> None:
    is_cuda = import_module("torch").cuda.is_available()
    device = f"cuda:{launched.local_rank}" if is_cuda else "cpu"
    _follow(device, launched.rank, launched.size, from_environment())


def serve(channel: Channel) -> None:
    joining = decoder(Join)(channel.receive())
    carry_out(joining, lambda j: _follow(j.device, j.rank, j.size, j.meeting), channel.send)
