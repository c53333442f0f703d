"""The simulated backend as the engine meets it: the same figures whoever measures them."""

import pytest

from linkgauge.backends.protocol import Copy
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.pool import BufferPool
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import host
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from sim_machine import backend, copies
from visit_kit import whole


def test_the_host_takes_its_time_to_enqueue_a_copy():
    machine = backend({"host.call": "3 us"})
    group = machine.prepare(copies(machine, "sim:0 -> sim:1 by ce", 1 << 20), "enqueue")
    group.arm(10)
    group.open()
    assert group.wait().seconds == pytest.approx([30e-6])
    by_threads = copies(machine, "host:0 -> host:1 by cpu", 1 << 20)
    with pytest.raises(Unsupported):
        machine.prepare(by_threads, "enqueue")


@pytest.mark.parametrize(
    ("pair", "nanoseconds"),
    [("cpu:0 -> cpu:1", 50), ("cpu:0 -> cpu:8", 100), ("cpu:8 -> cpu:0", 100)],
)
def test_a_line_goes_from_cpu_to_cpu_as_far_as_their_nodes_are(pair, nanoseconds):
    machine = backend()
    ((transfer,), cpus) = parse_transfers(pair), machine.host().nodes[0].cpus
    assert (0 in cpus, 1 in cpus, 8 in cpus) == (True, True, False)
    group = machine.prepare([Copy(transfer, None, None, 64, 1)], "ping-pong")
    group.arm(5)
    group.open()
    assert group.wait().seconds[0] / 5 / 2 == pytest.approx(nanoseconds * 1e-9)


def overlapped(machine, engine):
    """A cell of a kernel and copies both ways, as the engine measures it."""
    text = "null -> null by sim:0.sm & host:0 -> sim:0 by sim:0.{0} & sim:0 -> host:0 by sim:0.{0}"
    transfers = parse_transfers(text.format(engine))
    planned = PlannedCell("both", "0", transfers, Report.HIDDEN, operation="overlap")
    settings = Settings((1 << 20,))
    cell = Measurement(planned, 1 << 20, settings, [machine] * 3)
    (result,) = measure_together([cell], settings, BufferPool()).cells
    return whole(result, settings=settings)


def test_a_kernel_hides_copies_by_copy_engines_whole():
    cell = overlapped(backend(), "ce")
    assert (cell.status, cell.verified, cell.stopped) == ("pass", True, "samples")
    assert cell.samples == pytest.approx([1.0] * 11)
    computing, *copying = (part.summary.median for part in cell.parts)
    assert max(copying) == pytest.approx(computing)
    assert [part.bytes for part in cell.parts] == [0, 1 << 20, 1 << 20]


def test_a_kernel_hides_nothing_of_copies_by_kernels_which_queue_behind_it():
    assert overlapped(backend(), "sm").headline == pytest.approx(0.0, abs=1e-9)


def measured(numbers, machine):
    """Samples of the cells of these numbers, measured in this order by one backend."""
    how = Settings((1,))
    text = "sim:0 -> sim:1 by ce & sim:2 -> host:0 by sm x2"
    transfers = parse_transfers(text)
    samples = {}
    for number in numbers:
        planned = PlannedCell("0", "1", transfers, Report.SUM, number=number)
        cell = Measurement(planned, 1 << 20, how, [machine, machine])
        (result,) = measure_together([cell], how, BufferPool()).cells
        result = whole(result)
        assert result.status == "pass"
        samples[number] = result.samples
    return samples


def test_figures_do_not_depend_on_what_was_measured_before():
    noisy = {"noise": "1%"}
    in_order = measured([0, 1, 2, 3], backend(noisy))
    assert measured([3], backend(noisy))[3] == in_order[3]
    assert measured([2, 0], backend(noisy))[0] == in_order[0]


def test_another_seed_gives_other_figures():
    one = measured([0], backend({"noise": "1%", "seed": 1}))
    assert one != measured([0], backend({"noise": "1%", "seed": 2}))


def test_jitter_of_links_is_noise_of_what_crosses_them():
    machine = backend({"link_kinds.pcie.jitter": "5%"})
    transfers = parse_transfers("sim:0 -> sim:1 by ce & sim:2 -> host:1 by ce")
    group = machine.prepare(copies(machine, " & ".join(map(str, transfers)), 1 << 20))
    drawn = set()
    for _ in range(5):
        group.arm(1)
        group.open()
        drawn.add(group.wait().seconds)
    assert len({steady for steady, _ in drawn}) == 1
    assert len({shaken for _, shaken in drawn}) == 5


def test_a_buffer_of_another_backend_is_an_error():
    from fakes import FakeBuffer

    with pytest.raises(BackendError):
        backend().fill(FakeBuffer(host(0), 8), 8, 0, 1, inverted=False)
