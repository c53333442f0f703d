"""What runs under compute-sanitizer: every kernel, in each variant, every byte compared."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from linkgauge.backends.cuda import flags, group, load, matmul, work
from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.cuda.compiler import Compiler
from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.cuda.memory import address_in
from linkgauge.backends.cuda.nccl.group import RankData
from linkgauge.backends.cuda.settings import DEFAULT, SPLIT_DEFAULT, CopySettings
from linkgauge.backends.protocol import RESULTS, Buffer, CheckedGroup, Copy, Group, Pattern, run
from linkgauge.machine.host import read_host
from linkgauge.model.errors import BackendError, LinkgaugeError, TookTooLong, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.collective import NUMBERS, Collective
from linkgauge.model.operations.contents import ElementOrigin
from linkgauge.model.operations.operation import ARRAYS, OperationName, named, size_of
from linkgauge.model.settings import EngineSettings, Pieces
from linkgauge.model.transfer import Transfer

LARGE = (1 << 20) + 7
SMALL = (1, 17, 4097)
LOOPS = 2
PLAIN = (
    DEFAULT,
    SPLIT_DEFAULT,
    CopySettings(blocks=3, threads=128, unroll=4, streaming=True),
    CopySettings(blocks=3, threads=64, unroll=4, spread=True),
)
# Few enough blocks that each goes round its ring several times.
ARRAY_SHAPES = (
    CopySettings(blocks=3, threads=128, unroll=4),
    CopySettings(blocks=3, threads=64, unroll=2, spread=True, streaming=True),
)
BULK = tuple(CopySettings(kernel="bulk", blocks=2, unroll=ahead) for ahead in (1, 2, 3))
IDLE = "null -> null by cuda:0.sm"
LOCAL, BOTH = "cuda:0 -> cuda:0 by sm", "host:0 <-> cuda:0 by sm"
CROSSING = ("host:0 -> cuda:0 by sm", "cuda:0 -> host:0 by sm")

Ran = dict[str, tuple[int, int]]
"""By entry point: the numbers of its variants that ran, and of launches."""


class Recorder(Driver):
    """A driver that records which kernels were launched."""

    def __init__(self, bindings: Any) -> None:
        super().__init__(bindings)
        self._files: dict[int, str] = {}
        self._kernels: dict[int, tuple[str, int]] = {}
        self._launches: Counter[tuple[str, int]] = Counter()
        self._known = 0

    def call(self, name: str, *arguments: Any, about: str = "") -> Any:
        result = super().call(name, *arguments, about=about)
        if name == "cuModuleLoadData":
            self._files[int(result)] = about.removesuffix(".cu")
        elif name == "cuModuleGetFunction":
            # Numbered, because another kernel may get its handle once its context is gone.
            self._known += 1
            entry_point = f"{self._files[int(arguments[0])]}.{arguments[1].decode()}"
            self._kernels[int(result)] = entry_point, self._known
        elif name == "cuLaunchKernel":
            self._launches[self._kernels[int(arguments[0])]] += 1
        return result

    def ran(self) -> Ran:
        ran: Ran = {}
        for (name, _), launches in sorted(self._launches.items()):
            variants, before = ran.get(name, (0, 0))
            ran[name] = variants + 1, before + launches
        return ran


def run_kernels(driver: Driver, compiler: Compiler | None = None) -> list[str]:
    """Runs every kernel; returns what was wrong."""
    nodes = read_host().nodes
    work.IN_KERNEL_LOOPS = 1  # one launch for all loops, whatever the size
    problems = []
    for pieces in (None, *(Pieces(4096, 8, payload) for payload in (128, 256, 512))):
        engines = EngineSettings(tuned=False, pieces=pieces)
        backend = CudaBackend(driver, nodes, engines, compiler)
        try:
            problems += _copies(backend, (None,)) if pieces else _all_but_pieces(backend)
        except LinkgaugeError as error:
            problems.append(str(error))
        finally:
            backend.close()
    return problems


def _all_but_pieces(backend: CudaBackend) -> Iterator[str]:
    yield from _gate(backend)
    yield from _patterns(backend)
    yield from _copies(backend, (*PLAIN, *BULK))
    for settings in PLAIN:
        for size in (1024, LARGE):
            yield from _copy(backend, BOTH, size, settings)
            yield from _copy(backend, BOTH, size, settings, tracked=True)
    for settings in (*PLAIN, *BULK):
        try:
            yield from _copy(backend, LOCAL, LARGE, settings, tracked=True)
        except Unsupported as reason:
            yield str(reason)
    for size in (*SMALL, LARGE):
        yield from _copy(backend, "null -> cuda:0 by sm", size)
        yield from _copy(backend, "cuda:0 -> null by sm", size)
    for settings in ARRAY_SHAPES:
        for operation in (name for name, of in ARRAYS.items() if of.mode == "peak"):
            yield from _arrays(backend, operation, settings)
    yield from _products(backend)
    yield from _contents(backend)
    yield from _chase(backend)
    _flags(backend)
    _load(backend)
    yield from _concurrent_kernel(backend)


def _contents(backend: CudaBackend) -> Iterator[str]:
    """What collectives send, of each type, and what a rank receives of two."""
    transfer = parse_transfer(LOCAL)
    device = backend.device_of(transfer.source)
    for number in NUMBERS.values():
        count = LARGE // number.bytes
        buffer = backend.allocate(transfer.source, count * number.bytes, transfer.engine)
        content = RankData(Collective("all_gather", number.name), 2, 7)
        content.fill(device, address_in(buffer), count, 1)
        wrong, _ = content.wrong(device, address_in(buffer), count, ElementOrigin(1))
        buffer.free()
        if wrong:
            yield f"{wrong} elements of {number.name}"


def _gate(backend: CudaBackend) -> Iterator[str]:
    """A gate that is never opened gives up, and the next holds fewer loops. From then on no gate is
    closed: under the tool a launch may return only when it is done."""
    group.GATE_SECONDS = 0.01
    transfer = parse_transfer("cuda:0 -> cuda:0 by ce")
    ends = [backend.allocate(transfer.source, 64, transfer.engine) for _ in range(2)]
    prepared = backend.prepare([Copy(transfer, *ends, 64, 1)])
    assert isinstance(prepared, group.CudaGroup)
    held = prepared.most_loops
    try:
        prepared.arm(1)
        time.sleep(2 * group.GATE_SECONDS)
        prepared.wait()
        if prepared.most_loops == held:
            yield "the gate did not give up"
    except BackendError as error:
        if error.call != "gate":
            raise
    finally:
        prepared.close()
        _keep_gates_open()
        for end in ends:
            end.free()


def _keep_gates_open() -> None:
    shut = group.StartGate.shut

    def shut_and_open(gate: group.StartGate) -> None:
        shut(gate)
        gate.open()

    group.StartGate.shut = shut_and_open


def _patterns(backend: CudaBackend) -> Iterator[str]:
    engine = parse_transfer(LOCAL).engine
    for size in (*SMALL, LARGE):
        buffer = backend.allocate(engine.owner, size, engine)
        for pattern in Pattern:
            for inverted, expected in ((False, None), (True, 0)):
                backend.fill(buffer, size, pattern, 5, inverted)
                if backend.first_mismatch(buffer, size, pattern, 5) != expected:
                    yield f"{pattern.name} of {size} bytes, inverted: {inverted}"
        buffer.free()


def _copies(backend: CudaBackend, variants: tuple[CopySettings | None, ...]) -> Iterator[str]:
    for settings in variants:
        try:
            for size in (*SMALL, LARGE):
                yield from _copy(backend, LOCAL, size, settings)
            for text in CROSSING:
                yield from _copy(backend, text, LARGE, settings)
        except Unsupported as reason:  # bulk copies on an older GPU
            yield str(reason)


def _copy(
    backend: CudaBackend,
    text: str,
    size: int,
    settings: CopySettings | None = None,
    *,
    tracked: bool = False,
) -> Iterator[str]:
    """One copy (or read, or write), whose every byte is compared."""
    transfer = parse_transfer(text)
    source, destination = _ends(backend, transfer, size)
    pattern = Pattern.SPLIT if transfer.both_ways else Pattern.WORDS
    pattern = Pattern.CONSTANT if source is None else pattern
    if source is not None:
        backend.fill(source, size, Pattern.WORDS, 7, inverted=False)
    if destination is not None:
        backend.fill(destination, size, Pattern.WORDS, 7, inverted=True)
    copy = Copy(transfer, source, destination, size, 7, tracked=tracked)
    prepared = backend.prepare_with([copy], settings)
    (checksum,) = _run(prepared)
    compared = [destination, source] if transfer.both_ways else [destination]
    wrong = any(b and backend.first_mismatch(b, size, pattern, 7) is not None for b in compared)
    if wrong or (source and checksum not in (None, backend.checksum(source, size))):
        yield f"{text}, {size} bytes, {settings}"
    _free(source, destination)


def _ends(backend: CudaBackend, transfer: Transfer, size: int) -> tuple[Buffer | None, ...]:
    """Buffers of this size at the source and the destination."""
    return tuple(
        None if memory.is_null else backend.allocate(memory, size, transfer.engine)
        for memory in (transfer.source, transfer.destination)
    )


def _free(*buffers: Buffer | None) -> None:
    for buffer in filter(None, buffers):
        buffer.free()


def _arrays(backend: CudaBackend, operation: Any, settings: CopySettings) -> Iterator[str]:
    """One operation on arrays, whose every byte is compared."""
    does, size = ARRAYS[operation], LARGE // 16 * 16
    ends = ("cuda:0" if does.read else "null", "cuda:0" if does.written else "null")
    transfer = parse_transfer(" -> ".join(ends) + " by cuda:0.sm")
    source, destination = (
        None if memory.is_null else backend.allocate(memory, size * arrays, transfer.engine)
        for memory, arrays in (
            (transfer.source, named(operation).source_arrays),
            (transfer.destination, 1),
        )
    )
    moved = Pattern.WORDS if does.read else Pattern.CONSTANT
    if source is not None:
        given = Pattern.NUMBERS if does.computes else moved
        backend.fill(source, source.size, given, 7, inverted=False)
    if destination is not None:
        backend.fill(destination, size, moved, 7, inverted=True)
    copy = Copy(transfer, source, destination, size, 7)
    (checksum,) = _run(backend.prepare_with([copy], settings, operation))
    made = RESULTS.get(does.kind, moved)
    if destination is not None:
        wrong = backend.first_mismatch(destination, size, made, 7) is not None
    else:
        wrong = source is not None and checksum != backend.checksum(source, size)
    if wrong:
        yield f"{operation}, {size} bytes, {settings}"
    _free(source, destination)


class NoBlas:
    """Multiplies nothing: cuBLAS is not what is looked at."""

    def __init__(self, *_: object) -> None:
        """Is made as a handle of cuBLAS is."""

    def bind(self, stream: object) -> None: ...
    def multiply(self, *_: object) -> None: ...
    def close(self) -> None: ...


def _products(backend: CudaBackend) -> Iterator[str]:
    """Draws matrices, and finds that nobody multiplied them."""
    matmul.BlasHandle = NoBlas
    matmul.open_cublas = lambda driver: None
    transfer = parse_transfer(IDLE)
    for operation in ("matmul-fp32", "matmul-bf16", "matmul-fp16"):
        copy = Copy(transfer, None, None, size_of(100), 7)
        try:
            prepared = backend.prepare([copy], operation)
        except Unsupported as reason:  # an older GPU
            yield str(reason)
            continue
        run(prepared, 1)
        if isinstance(prepared, CheckedGroup) and prepared.mismatch() is None:
            yield f"{operation}: what was never multiplied is right"
        prepared.close()


def _chase(backend: CudaBackend) -> Iterator[str]:
    transfer = parse_transfer("cuda:0 -> null by sm")
    buffer = backend.allocate(transfer.source, 64 << 10, transfer.engine)
    operations: tuple[OperationName, ...] = ("chase", "bulk-chase")
    for operation in operations:
        try:
            _run(backend.prepare([Copy(transfer, buffer, None, buffer.size, 1)], operation))
        except Unsupported as reason:
            yield str(reason)
    buffer.free()


def _flags(backend: CudaBackend) -> None:
    """Under the tool, two kernels may not run at the same time as each other: flags need not come
    back."""
    flags.LIMIT = 0.01
    operations: tuple[OperationName, ...] = ("flag-ping-pong", "launch", "doorbell")
    for operation, place in zip(operations, ("cuda:0", "null", "null"), strict=True):
        transfer = parse_transfer(f"{place} -> {place} by cuda:0.sm")
        ends = _ends(backend, transfer, flags.BYTES)
        with suppress(TookTooLong):
            _run(backend.prepare([Copy(transfer, *ends, flags.BYTES, 1)], operation))
        _free(*ends)


def _load(backend: CudaBackend) -> None:
    """Beside a launch. Under the tool, one may return only when it is done: its limit ends it."""
    load.LIMIT = 0.01
    copies = [Copy(parse_transfer(IDLE), None, None, 1, 1)]
    ends = _ends(backend, parse_transfer(LOCAL), 3 * load.TILE)
    copies += [Copy(parse_transfer(f"{LOCAL} at 50%"), *ends, 3 * load.TILE, 1)]
    with suppress(BackendError):  # of its rate, which there is none
        backend.prepare(copies, "launch").close()
    _free(*ends)


def _concurrent_kernel(backend: CudaBackend) -> Iterator[str]:
    """A kernel that computes, and a copy beside it."""
    transfer = parse_transfer("host:0 -> cuda:0 by ce")
    ends = _ends(backend, transfer, LARGE)
    copies = [
        Copy(parse_transfer(IDLE), None, None, LARGE, 1),
        Copy(transfer, *ends, LARGE, 1),
    ]
    prepared = backend.prepare(copies, "overlap")
    run(prepared, LOOPS)
    if isinstance(prepared, CheckedGroup) and (wrong := prepared.mismatch()) is not None:
        yield wrong
    prepared.close()
    _free(*ends)


def _run(prepared: Group) -> tuple[int | None, ...]:
    """Checksums of a group that ran with an open gate."""
    try:
        return run(prepared, LOOPS).checksums
    finally:
        prepared.close()
