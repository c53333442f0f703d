"""How the fastest settings for each path on a GPU are found, and stored under the GPU's model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import product
from pathlib import Path as File
from statistics import median
from typing import Protocol

import msgspec

from linkgauge.backends.protocol import RESULTS, Backend, Buffer, Copy, Group, Pattern, run
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import NULL, Memory
from linkgauge.model.operations.operation import ARRAYS, OperationName, named
from linkgauge.model.settings import Tried
from linkgauge.model.transfer import Engine, Transfer

from .device import CudaDevice
from .settings import (
    ARRAY_DEFAULT,
    DEFAULT,
    FULL_GRID,
    CopySettings,
    defaults,
    key,
    store_tuned,
)

TUNE_SIZE = 512 << 20
FINALISTS = 5
ROUNDS = 7
GAIN = 1.001
"""Settings replace the defaults only if they are faster by at least this factor."""
_SAMPLE_SECONDS, _ARRAY_SECONDS = 0.02, 0.005
_THREADS_A_MULTIPROCESSOR = 2048
"""The number of threads that can run on a multiprocessor at once, on most architectures."""
_SEED = 7


class Path(msgspec.Struct, frozen=True):
    transfer: Transfer
    operation: OperationName = "copy"

    @property
    def name(self) -> str:
        return key(self.transfer, self.operation)

    @property
    def contents(self) -> tuple[Pattern, Pattern]:
        work = ARRAYS.get(self.operation)
        if work is not None and work.computes:
            return Pattern.NUMBERS, RESULTS[work.kind]
        return Pattern.WORDS, Pattern.CONSTANT if self.transfer.source.is_null else Pattern.WORDS


class Tunable(Backend, Protocol):
    """The part of a backend that a search for settings uses."""

    def device_of(self, memory: Memory) -> CudaDevice: ...
    def prepare_with(
        self, copies: Sequence[Copy], settings: CopySettings | None, operation: OperationName
    ) -> Group: ...


class Candidate(msgspec.Struct, frozen=True):
    """Settings that were tried. `rate` is in bytes/s, summed over both directions or all arrays."""

    settings: CopySettings
    rate: float


def tune(
    backend: Tunable,
    index: int,
    peer: int | None = None,
    size: int = TUNE_SIZE,
    folder: File | None = None,
    tell: Callable[[Tried], None] = lambda tried: None,
) -> dict[str, CopySettings]:
    """Stores the best settings of each path of a device, and returns those that are faster than the
    defaults, by path. With `peer`, also tunes paths between the two devices. `tell` receives each
    result. Raises BackendError if a device is lost; settings found before stay stored."""
    device = backend.devices()[index]
    best: dict[str, CopySettings | None] = {}
    for path in paths(index, peer, device.near):
        if backend.refusal(path.transfer) is None:
            best[path.name] = _tune_path(backend, path, size, tell)
            store_tuned(device.model, {path.name: best[path.name]}, folder)
    return {path: settings for path, settings in best.items() if settings is not None}


def paths(index: int, peer: int | None, node: int = 0) -> Iterator[Path]:
    device = Memory("cuda", index)
    kernel, copy_engine = Engine(device, "sm"), Engine(device, "ce")
    host = Memory("host", node)
    yield Path(Transfer(host, device, kernel))
    yield Path(Transfer(device, host, kernel))
    yield Path(Transfer(device, device, kernel))
    yield Path(Transfer(device, device, copy_engine))
    yield Path(Transfer(device, NULL, kernel), "peak-read")
    yield Path(Transfer(NULL, device, kernel), "peak-write")
    yield Path(Transfer(device, device, kernel), "peak-copy")
    yield Path(Transfer(device, device, kernel), "peak-triad")
    if peer is not None:
        other = Memory("cuda", peer)
        yield Path(Transfer(device, other, kernel))
        yield Path(Transfer(other, device, kernel))


def candidates(path: Path, multiprocessors: int) -> Iterator[CopySettings]:
    """Yields the settings to try on a path, with the defaults first."""
    if path.operation in ARRAYS:
        yield from _of_arrays(path.operation, multiprocessors)
        return
    yield DEFAULT
    if path.transfer.engine.kind == "ce":
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


def _of_arrays(operation: OperationName, multiprocessors: int) -> Iterator[CopySettings]:
    yield ARRAY_DEFAULT
    for threads, unroll in product((256, 512, 1024), (1, 2, 4, 8)):
        settings = CopySettings(blocks=FULL_GRID, threads=threads, unroll=unroll)
        if settings != ARRAY_DEFAULT:
            yield settings
        if unroll > 1:
            for share in (1, 2):
                blocks = multiprocessors * _THREADS_A_MULTIPROCESSOR // (threads * share)
                yield CopySettings(blocks=blocks, threads=threads, unroll=unroll, spread=True)
    if operation == "peak-copy":
        yield from (CopySettings(kernel="bulk", unroll=ahead) for ahead in (1, 2, 3))


def _tune_path(
    backend: Tunable, path: Path, size: int, report: Callable[[Tried], None]
) -> CopySettings | None:
    transfer, arrays = path.transfer, named(path.operation).source_arrays
    ends: dict[str, Buffer] = {}
    with ExitStack() as made:
        for end, memory in (("source", transfer.source), ("destination", transfer.destination)):
            if not memory.is_null:
                bytes_of_end = size * arrays if end == "source" else size
                ends[end] = backend.allocate(memory, bytes_of_end, transfer.engine)
                made.callback(ends[end].free)
        copy = Copy(transfer, ends.get("source"), ends.get("destination"), size, _SEED)
        return search(backend, path, copy, report)


def search(
    backend: Tunable,
    path: Path,
    copy: Copy,
    report: Callable[[Tried], None] = lambda tried: None,
) -> CopySettings | None:
    """Returns the fastest settings, or None if the defaults are as fast or do not work."""
    trial = _Trial(backend, path, copy, report)
    every = candidates(path, backend.device_of(path.transfer.engine.owner).multiprocessors)
    heats = [tried for settings in every if (tried := trial.run(settings)) is not None]
    # If the defaults cannot run, or copy wrongly, there is nothing to compare with.
    first = defaults(path.transfer, path.operation)
    if not heats or heats[0].settings != first:
        return None
    if path.operation in ARRAYS:
        heats += trial.streaming(heats)
    # The best and the defaults run in turn, so that drift affects all.
    final = trial.take_turns(finalists(heats))
    for tried in final:
        words = tried.settings.describe(path.transfer.engine.kind)
        report(Tried(path.name, words, tried.rate))
    winner = max(final, key=lambda tried: tried.rate)
    return winner.settings if winner.rate > GAIN * final[0].rate else None


def finalists(heats: Sequence[Candidate]) -> list[CopySettings]:
    """Returns the defaults, the fastest candidates, and at least two candidates of each kernel."""
    ranked = sorted(heats[1:], key=lambda tried: tried.rate, reverse=True)
    chosen = [tried.settings for tried in ranked[:FINALISTS]]
    for kernel in ("plain", "bulk"):
        of_kernel = [tried.settings for tried in ranked if tried.settings.kernel == kernel]
        chosen += [settings for settings in of_kernel[:2] if settings not in chosen]
    return [heats[0].settings, *chosen]


class _Trial(msgspec.Struct, frozen=True):
    """A copy that is run with different settings."""

    backend: Tunable
    path: Path
    copy: Copy
    report: Callable[[Tried], None]

    def run(self, settings: CopySettings) -> Candidate | None:
        """Returns the settings with their rate, or None if the copy fails or is wrong."""
        copy, (given, made) = self.copy, self.path.contents
        if copy.source is not None:
            size = copy.size * named(self.path.operation).source_arrays
            self.backend.fill(copy.source, size, given, copy.seed, inverted=False)
        if copy.destination is not None:
            self.backend.fill(copy.destination, copy.size, made, copy.seed, inverted=True)
        try:
            with suppress(Unsupported):
                rate, checksum = self._measured(settings)
                return Candidate(settings, rate) if self._is_right(checksum) else None
        except BackendError as error:
            words = settings.describe(copy.transfer.engine.kind)
            self.report(Tried(self.path.name, words, 0.0, str(error)))
        return None

    def _is_right(self, checksum: int | None) -> bool:
        copy, (_, made) = self.copy, self.path.contents
        if copy.destination is None and copy.source is not None:
            return checksum == self.backend.checksum(copy.source, copy.size)
        found = copy.destination
        return found is not None and (
            self.backend.first_mismatch(found, copy.size, made, copy.seed) is None
        )

    def _measured(self, settings: CopySettings) -> tuple[float, int | None]:
        operation = self.path.operation
        group = self.backend.prepare_with([self.copy], settings, operation)
        seconds = _ARRAY_SECONDS if operation in ARRAYS else _SAMPLE_SECONDS
        try:
            loops = min(max(2, int(seconds / run(group, 1).span)), group.most_loops)
            moved = self.copy.transfer.bytes_moved(self.copy.size) * named(operation).counted_arrays
            timing = run(group, loops)
            return moved * loops / timing.span, (*timing.checksums, None)[0]
        finally:
            group.close()

    def streaming(self, heats: Sequence[Candidate]) -> list[Candidate]:
        plain = [tried for tried in heats if tried.settings.kernel == "plain"]
        ranked = sorted(plain, key=lambda tried: tried.rate, reverse=True)[:FINALISTS]
        again = (msgspec.structs.replace(tried.settings, streaming=True) for tried in ranked)
        return [tried for settings in again if (tried := self.run(settings)) is not None]

    def take_turns(self, finalists: Sequence[CopySettings]) -> list[Candidate]:
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
