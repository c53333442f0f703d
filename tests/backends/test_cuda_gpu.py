"""The cuda backend on a GPU, and on two: every byte copied, checked, refused or timed out."""

import time

import pytest

from linkgauge.backends.cuda import driver as cuda_driver
from linkgauge.backends.cuda import group as cuda_group
from linkgauge.backends.cuda.settings import DEFAULT, SPLIT_DEFAULT, CopySettings
from linkgauge.backends.protocol import Copy, Pattern, run
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.notation import parse_transfer, parse_transfers

MiB = 1 << 20


class Bench:
    """Buffers of one cell, freed at the end."""

    def __init__(self, backend, text, size):
        self.backend = backend
        self.buffers = []
        self.copies = [self._copy(transfer, size) for transfer in parse_transfers(text)]

    def _copy(self, transfer, size):
        for memory in transfer.memories:
            self.buffers.append(self.backend.allocate(memory, size, transfer.engine))
        ends = iter(self.buffers[-len(transfer.memories) :])
        source = None if transfer.source.is_null else next(ends)
        destination = None if transfer.destination.is_null else next(ends)
        copy = Copy(transfer, source, destination, size, seed=len(self.buffers))
        if source is not None:
            self.backend.fill(source, size, Pattern.WORDS, copy.seed, inverted=False)
        if destination is not None:
            self.backend.fill(destination, size, Pattern.WORDS, copy.seed, inverted=True)
        return copy

    def run(self, loops=3, settings=None):
        group = self.backend.prepare_with(self.copies, settings)
        try:
            return run(group, loops)
        finally:
            group.close()

    def mismatches(self):
        found = []
        for copy in self.copies:
            pattern = Pattern.SPLIT if copy.transfer.both_ways else Pattern.WORDS
            pattern = Pattern.CONSTANT if copy.source is None else pattern
            checked = [copy.destination] + [copy.source] * copy.transfer.both_ways
            found.extend(
                self.backend.first_mismatch(buffer, copy.size, pattern, copy.seed)
                for buffer in checked
            )
        return found

    def free(self):
        for buffer in self.buffers:
            buffer.free()


@pytest.fixture
def bench(backend):
    made = []

    def make(text, size):
        made.append(Bench(backend, text, size))
        return made[-1]

    yield make
    for each in made:
        each.free()


SIZES = [1, 15, 16, 17, 511, 513, 4097, MiB + 5, 65 * MiB + 13]
KERNELS = [
    DEFAULT,
    SPLIT_DEFAULT,
    CopySettings(blocks=200, threads=128, unroll=16, streaming=True),
    CopySettings(blocks=528, threads=256, unroll=4, spread=True),
    *(CopySettings(kernel="bulk", unroll=ahead) for ahead in (1, 2, 3)),
]
ONE = ["host:0 -> cuda:0", "cuda:0 -> host:0", "cuda:0 -> cuda:0", "host:0 <-> cuda:0"]
TWO = ["cuda:0 -> cuda:1", "cuda:1 -> cuda:0", "cuda:0 <-> cuda:1"]


def copy_by_every_kernel(bench, path, size):
    for settings in KERNELS:
        if settings.kernel == "bulk" and "<->" in path:
            continue
        cell = bench(f"{path} by cuda:0.sm", size)
        try:
            cell.run(settings=settings)
        except Unsupported as reason:  # bulk copies on an older GPU
            assert settings.kernel == "bulk", reason
            continue
        assert not any(m is not None for m in cell.mismatches()), settings


@pytest.mark.gpu
class TestOneGpu:
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("path", ONE)
    def test_kernels_copy_every_byte(self, bench, path, size):
        copy_by_every_kernel(bench, path, size)

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("streams", [1, 3])
    def test_copy_engines_copy_every_byte(self, bench, size, streams):
        for path in ONE[:3]:
            cell = bench(f"{path} by cuda:0.ce", size)
            cell.run(settings=CopySettings(streams=streams))
            assert cell.mismatches() == [None]

    @pytest.mark.parametrize("kind", ["pageable", "huge", "mapped", "wc", "managed"])
    def test_kinds_of_host_memory(self, bench, kind):
        try:
            cell = bench(
                f"host:0/{kind} -> cuda:0 by cuda:0.ce & cuda:0 -> host:0/{kind} by cuda:0.ce",
                3 * MiB + 1,
            )
        except Unsupported as reason:
            pytest.skip(str(reason))
        assert all(seconds > 0 for seconds in cell.run().seconds)
        assert cell.mismatches() == [None, None]
        assert not any(buffer.warnings for buffer in cell.buffers), "on another node"

    @pytest.mark.parametrize("size", [1, 4097, 65 * MiB + 13])
    def test_reads_and_writes_alone(self, backend, bench, size):
        written = bench("null -> cuda:0 by sm", size)
        written.run()
        assert written.mismatches() == [None]
        read = bench("cuda:0 -> null by sm", size)
        for loops in (1, 2):
            expected = backend.checksum(read.buffers[0], size)
            assert read.run(loops).checksums == (expected,)

    def test_a_flipped_bit_is_found_where_it_is(self, backend, bench):
        cell = bench("host:0 -> cuda:0 by cuda:0.ce", MiB)
        cell.run()
        address = cell.copies[0].destination.address + 54321
        driver, byte = cuda_driver.open_driver(), bytearray(1)
        driver.call("cuMemcpyDtoH", byte, address, 1)
        driver.call("cuMemcpyHtoD", address, bytes([byte[0] ^ 8]), 1)
        assert cell.mismatches() == [54321]

    def test_more_loops_than_the_queue_holds(self, bench):
        cell = bench("host:0 -> cuda:0 by cuda:0.ce & cuda:0 -> host:0 by cuda:0.sm", 4096)
        cell.run(loops=5000)
        assert cell.mismatches() == [None, None]

    def test_a_forgotten_gate_opens_by_itself(self, backend, bench, monkeypatch):
        monkeypatch.setattr(cuda_group, "GATE_SECONDS", 0.2)
        group = backend.prepare(bench("host:0 -> cuda:0 by cuda:0.ce", 4096).copies)
        group.arm(1)
        time.sleep(0.5)
        most = group.most_loops
        assert group.wait().seconds  # once more, with fewer loops behind the gate
        assert group.most_loops == most // 2
        group.most_loops = 1
        group.arm(1)
        time.sleep(0.5)
        with pytest.raises(BackendError, match="not opened"):
            group.wait()
        group.close()

    def test_memory_that_cannot_be_had(self, backend):
        engine = parse_transfer("cuda:0 -> cuda:0 by sm").engine
        with pytest.raises(AllocationError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            backend.allocate(engine.owner, 1 << 46, engine)

    def test_latency_of_host_memory_is_above_that_of_its_own(self, backend):
        figures = []
        for memory in ("host:0", "cuda:0"):
            transfer = parse_transfer(f"{memory} -> null by cuda:0.sm")
            buffer = backend.allocate(transfer.source, 2 * MiB, transfer.engine)
            group = backend.prepare([Copy(transfer, buffer, None, buffer.size, 1)], "chase")
            figures.append(run(group, 1).seconds[0] / group.policy.steps)
            group.close()
            buffer.free()
        assert 20e-9 < figures[1] < figures[0] < 1e-4

    @pytest.mark.parametrize("text", ["host:0 -> cuda:0 by ce", "cuda:0 -> cuda:0 by ce",
                                      "cuda:0 -> cuda:0 by sm"])  # fmt: skip
    def test_the_host_takes_microseconds_to_enqueue_copies_that_truly_run(
        self, backend, bench, text
    ):
        cell = bench(text, 4096)
        group = backend.prepare([cell.copies[0]], "enqueue")
        (seconds,) = run(group, 100).seconds
        group.close()
        assert 1e-7 < seconds / 100 < 1e-4
        assert cell.mismatches() == [None]

    def test_refuses_with_a_reason(self, backend):
        for text in (
            "cuda:0 -> cuda:99 by cuda:0.ce",
            "host:99 -> cuda:0 by ce",
            "cuda:0 -> null by ce",
            "cuda:0 <-> host:0 by ce",
            "opencl:0 -> cuda:0 by cuda:0.sm",
        ):
            assert backend.refusal(parse_transfer(text))


@pytest.mark.gpu_pairs
class TestTwoGpus:
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("path", TWO)
    def test_kernels_copy_every_byte(self, pair, bench, path, size):
        copy_by_every_kernel(bench, path, size)

    @pytest.mark.parametrize("engine", ["cuda:0.ce", "cuda:1.ce"])
    def test_copy_engines_of_either_side(self, pair, bench, engine):
        cell = bench(f"cuda:0 -> cuda:1 by {engine}", MiB + 3)
        cell.run()
        assert cell.mismatches() == [None]

    def test_both_directions_at_once(self, pair, bench):
        text = "cuda:0 -> cuda:1 by cuda:0.ce & cuda:1 -> cuda:0 by cuda:1.ce"
        cell = bench(text, 64 * MiB)
        timing = cell.run(loops=8)
        assert timing.span >= max(timing.seconds)
        # Each waits for the other's start: together they take less than one after the other.
        assert timing.span < sum(timing.seconds)
        assert cell.mismatches() == [None, None]
