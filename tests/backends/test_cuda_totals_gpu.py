"""Totals on GPUs: what kernels record of their progress, and what they mean together."""

import subprocess
import sys
from itertools import pairwise

import pytest

from cuda_kit import on_gpus
from linkgauge.backends.cuda.settings import BULK_DEFAULT, DEFAULT, SPLIT_DEFAULT
from linkgauge.backends.protocol import Copy, Pattern, run
from linkgauge.engine.measuring.measure import measure_together
from linkgauge.engine.measuring.measurement import Measurement
from linkgauge.engine.measuring.pool import BufferPool
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer, parse_transfers
from linkgauge.model.notes import Remark
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import whole

SIZE = 256 << 20
LOOPS, BATCHES = 2, 16


def recorded(backend, text, settings):
    """The timing of one tracked copy, and whether every byte is right."""
    transfer = parse_transfer(text)
    source, destination = (
        backend.allocate(memory, SIZE, transfer.engine) for memory in transfer.memories
    )
    try:
        backend.fill(source, SIZE, Pattern.WORDS, 3, inverted=False)
        backend.fill(destination, SIZE, Pattern.WORDS, 3, inverted=True)
        copy = Copy(transfer, source, destination, SIZE, 3, tracked=True)
        group = backend.prepare_with([copy], settings)
        try:
            timing = run(group, LOOPS, BATCHES)
        finally:
            group.close()
        pattern = Pattern.SPLIT if transfer.both_ways else Pattern.WORDS
        right = backend.first_mismatch(destination, SIZE, pattern, 3) is None
        return timing, right
    finally:
        source.free()
        destination.free()


def check_progress(backend, text, settings):
    timing, right = recorded(backend, text, settings)
    assert right
    (times,) = timing.progress
    assert len(times) == BATCHES + 1
    assert times[0] >= 0
    assert all(begin < end for begin, end in pairwise(times))
    # The events before and behind the launch see about the same.
    assert times[-1] - times[0] == pytest.approx(timing.seconds[0], rel=0.1)
    # Half of the steps take about half of the time.
    middle = (times[BATCHES // 2] - times[0]) / (times[-1] - times[0])
    assert 0.4 < middle < 0.6


def total(backend, text, report=Report.TOTAL, **how):
    """A cell's result."""
    settings = Settings((SIZE,), **({"samples": 6} | how))
    transfers = parse_transfers(text)
    planned = PlannedCell("0", "0", transfers, report)
    cell = Measurement(planned, SIZE, settings, [backend] * len(transfers))
    pool = BufferPool()
    try:
        (repeated,) = measure_together([cell], settings, pool).cells
        result = whole(repeated)
    finally:
        pool.take_back()
        pool.free_idle()
    assert result.status == "pass", result.reason
    return result


KERNELS = {"plain": DEFAULT, "bulk": BULK_DEFAULT}


def check_kernel(backend, text, kernel):
    try:
        check_progress(backend, text, KERNELS[kernel])
    except Unsupported as reason:
        pytest.skip(str(reason))


@pytest.mark.gpu
class TestOneGpu:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_a_kernel_records_its_batches(self, backend, kernel):
        check_kernel(backend, "cuda:0 -> cuda:0 by sm", kernel)

    def test_also_one_of_many_short_blocks_that_copies_both_ways(self, backend):
        check_progress(backend, "cuda:0 <-> host:0 by sm", SPLIT_DEFAULT)

    def test_copy_engines_both_ways_run_together(self, backend):
        text = "host:0 -> cuda:0 by ce & cuda:0 -> host:0 by ce"
        result = total(backend, text)
        assert result.definition == "sustained"
        parts = [part.summary.median for part in result.parts]
        assert result.summary.median == pytest.approx(sum(parts), rel=0.1)

    def test_kernels_of_one_device_share_it_whether_they_run_at_once_or_in_turn(self, backend):
        result = total(backend, "cuda:0 -> cuda:0 by sm & cuda:0 -> cuda:0 by sm")
        alone = total(backend, "cuda:0 -> cuda:0 by sm", Report.SUM)
        assert result.definition in ("serial", "sustained")
        assert result.summary.median == pytest.approx(alone.summary.median, rel=0.15)


@pytest.mark.gpu_pairs
class TestTwoGpus:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_a_kernel_records_its_batches_to_a_peer(self, pair, kernel):
        check_kernel(pair, "cuda:0 -> cuda:1 by sm", kernel)

    @pytest.mark.parametrize(
        "text",
        [
            "host:0 -> cuda:0 by ce & cuda:0 -> host:0 by ce & cuda:0 -> cuda:1 by sm",
            "cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce",
            "cuda:0 -> cuda:1 by sm & cuda:1 -> cuda:0 by sm",
        ],
    )
    def test_a_total_is_the_sum_of_its_parts_whatever_the_loops(self, pair, text):
        own, few, many = (total(pair, text, loops=loops) for loops in (None, 32, 64))
        assert {result.definition for result in (own, few, many)} == {"sustained"}
        assert few.summary.median == pytest.approx(many.summary.median, rel=0.03)
        assert own.summary.median == pytest.approx(many.summary.median, rel=0.05)
        parts = sum(part.summary.median for part in many.parts)
        assert many.summary.median == pytest.approx(parts, rel=0.15)

    def test_without_peer_access_the_driver_copies_every_byte(self, pair):
        closed = on_gpus(tuned=False, peer_access=False)
        try:
            for text in (
                "cuda:0 -> cuda:1 by ce",
                "cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce",
            ):
                result = total(closed, text, Report.SPAN, loops=5, samples=2)
                assert result.verified
                assert "without peer access" in "".join(
                    note.text for note in result.notes if isinstance(note, Remark)
                )
        finally:
            closed.close()

    def test_and_slower_than_with_it(self, pair):
        command = [sys.executable, "-m", "linkgauge", "as", "p2pBandwidthLatencyTest"]
        done = subprocess.run(
            [*command, "--numElems=10000000"],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        figures = [
            float(done.stdout.split(title)[1].splitlines()[2].split()[2])
            for title in (
                "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
                "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)",
            )
        ]
        assert 0 < figures[0] < figures[1]
