"""Finds the fastest settings of each path on a GPU, and stores them for its model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from statistics import median

import msgspec

from linkgauge.backends.protocol import Copy, Group, Pattern, Tried
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.transfer import Engine, Memory, Transfer

from . import CudaBackend
from .memory import CudaBuffer
from .settings import DEFAULT, CopySettings, key, store_tuned

TUNE_SIZE = 512 << 20
FINALISTS = 5
ROUNDS = 7
GAIN = 1.001
"""Settings replace the defaults only if they are faster by this factor."""
_SAMPLE_SECONDS = 0.02
_SEED = 7


class Candidate(msgspec.Struct, frozen=True):
    """Settings with their rate in bytes/s, counting both directions."""

    settings: CopySettings
    rate: float


def tune(
    backend: CudaBackend,
    index: int,
    peer: int | None = None,
    size: int = TUNE_SIZE,
    folder: Path | None = None,
    tell: Callable[[Tried], None] = lambda tried: None,
) -> dict[str, CopySettings]:
    """The best settings of each path of device `index`, stored for its model.

    Every candidate runs once; the best and the defaults then take turns, so that drift affects all
    alike. A candidate that copies wrongly or fails with an error is dropped. `peer` is the device
    that peer paths go to; without it they are skipped. Paths on which the defaults are best are
    left out.

    Raises BackendError if the device is dead; what was found before that is stored.
    """
    device = backend.devices()[index]
    best: dict[str, CopySettings | None] = {}
    for transfer in transfers(index, peer, device.near):
        if backend.refusal(transfer) is None:
            path = key(transfer)
            best[path] = _tune_path(backend, transfer, size, tell)
            store_tuned(device.model, {path: best[path]}, folder)
    return {path: settings for path, settings in best.items() if settings is not None}


def transfers(index: int, peer: int | None, node: int = 0) -> Iterator[Transfer]:
    """One transfer for each path. Not `<->`: its order of loops is part of what it measures."""
    device = Memory("cuda", index)
    kernel, copy_engine = Engine(device, "sm"), Engine(device, "ce")
    host = Memory("host", node)
    yield Transfer(host, device, kernel)
    yield Transfer(device, host, kernel)
    yield Transfer(device, device, kernel)
    yield Transfer(device, device, copy_engine)
    if peer is not None:
        other = Memory("cuda", peer)
        yield Transfer(device, other, kernel)
        yield Transfer(other, device, kernel)


def candidates(transfer: Transfer, multiprocessors: int) -> Iterator[CopySettings]:
    """The settings to try on a path, the defaults first."""
    yield DEFAULT
    if transfer.engine.kind == "ce":
        yield from (CopySettings(streams=count) for count in (2, 3, 4))
        return
    for each, threads, unroll, spread, streaming in product(
        (1, 2, 4), (128, 256, 512), (4, 8, 16), (False, True), (False, True)
    ):
        blocks = each * multiprocessors
        yield CopySettings(
            blocks=blocks, threads=threads, unroll=unroll, spread=spread, streaming=streaming
        )
    yield from (CopySettings(kernel="bulk", unroll=ahead) for ahead in (1, 2, 3))


def _tune_path(
    backend: CudaBackend, transfer: Transfer, size: int, report: Callable[[Tried], None]
) -> CopySettings | None:
    """The settings that beat the defaults on this path, or None."""
    source = backend.allocate(transfer.source, size, transfer.engine)
    try:
        destination = backend.allocate(transfer.destination, size, transfer.engine)
    except (BackendError, Unsupported):
        source.free()
        raise
    try:
        copy = Copy(transfer, source, destination, size, _SEED)
        course = _Trial(backend, source, destination, copy, report)
        every = candidates(transfer, backend.multiprocessors(transfer.engine.owner))
        heats = [tried for settings in every if (tried := course.run(settings)) is not None]
        # If the defaults cannot run, or copy wrongly, there is nothing to compare with.
        if not heats or heats[0].settings != DEFAULT:
            return None
        final = course.take_turns(finalists(heats))
    finally:
        source.free()
        destination.free()
    for tried in final:
        words = tried.settings.describe(transfer.engine.kind)
        report(Tried(key(transfer), words, tried.rate))
    winner = max(final, key=lambda tried: tried.rate)
    return winner.settings if winner.rate > GAIN * final[0].rate else None


def finalists(heats: Sequence[Candidate]) -> list[CopySettings]:
    """The defaults, then the best of the others and of each kernel: a single run may mislead about
    one of a kernel's settings, but hardly about all of them."""
    ranked = sorted(heats[1:], key=lambda tried: tried.rate, reverse=True)
    chosen = [tried.settings for tried in ranked[:FINALISTS]]
    for kernel in ("plain", "bulk"):
        of_kernel = [tried.settings for tried in ranked if tried.settings.kernel == kernel]
        chosen += [settings for settings in of_kernel[:2] if settings not in chosen]
    return [heats[0].settings, *chosen]


class _Trial(msgspec.Struct, frozen=True):
    """One copy, run with different settings."""

    backend: CudaBackend
    source: CudaBuffer
    destination: CudaBuffer
    copy: Copy
    report: Callable[[Tried], None]

    def run(self, settings: CopySettings) -> Candidate | None:
        """The rate of one sample; None if it cannot run here, fails or copies wrongly.

        Raises BackendError if not even the buffers can be filled: the device is dead."""
        transfer, size = self.copy.transfer, self.copy.size
        self.backend.fill(self.source, size, Pattern.WORDS, _SEED, inverted=False)
        self.backend.fill(self.destination, size, Pattern.WORDS, _SEED, inverted=True)
        try:
            with suppress(Unsupported):
                rate = self._measured(settings)
                wrong = self.backend.first_mismatch(self.destination, size, Pattern.WORDS, _SEED)
                return Candidate(settings, rate) if wrong is None else None
        except BackendError as error:
            words = settings.describe(transfer.engine.kind)
            self.report(Tried(key(transfer), words, 0.0, str(error)))
        return None

    def _measured(self, settings: CopySettings) -> float:
        group = self.backend.prepare_with([self.copy], settings)
        try:
            loops = min(max(2, int(_SAMPLE_SECONDS / _seconds(group, 1))), group.most_loops)
            moved = self.copy.transfer.bytes_moved(self.copy.size) * loops
            return moved / _seconds(group, loops)
        finally:
            group.close()

    def take_turns(self, finalists: Sequence[CopySettings]) -> list[Candidate]:
        """The finalists' median rates over rounds in which each runs once."""
        rates: list[list[float]] = [[] for _ in finalists]
        for _ in range(ROUNDS):
            for settings, own in zip(finalists, rates, strict=True):
                if 0.0 not in own:
                    tried = self.run(settings)
                    own.append(0.0 if tried is None else tried.rate)
        # Settings that copied wrongly even once cannot win.
        return [
            Candidate(settings, median(own) if min(own) else 0.0)
            for settings, own in zip(finalists, rates, strict=True)
        ]


def _seconds(group: Group, loops: int) -> float:
    group.arm(loops)
    group.open()
    return group.wait().span
