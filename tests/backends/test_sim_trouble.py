"""What a fault does to a simulated machine's figures and bytes, seen as a run sees it."""

import signal

import pytest

from linkgauge.engine.worker import LocalWorker
from linkgauge.model.notation import parse_transfer
from linkgauge.model.result import PlannedCell
from linkgauge.model.transfer import Report
from sim_kit import MACHINE, SIZE, planned, settings
from visit_kit import whole

PEER = "sim:0 -> sim:1 by sm"


def worker(*faults, machine=MACHINE):
    made = LocalWorker(settings(*faults, machine=machine, samples=20))
    made.survey(["sim"])
    return made


def measure(*transfers, faults=(), number=0, report=Report.SUM):
    (result,) = worker(*faults).measure((planned(*transfers, number=number, report=report),), SIZE)
    return whole(result)


def median(*transfers, faults=(), number=0):
    return measure(*transfers, faults=faults, number=number).summary.median


@pytest.mark.parametrize(
    ("transfer", "target"),
    [
        (PEER, "sim:0-sim:1"),
        (PEER, "sim:1-sim:0"),
        (PEER, "sim:0"),
        (PEER, "sim:1"),
        (PEER, "*"),
        ("host:0 -> sim:2 by ce", "host:0-sim:2"),
        ("host:1 -> sim:2 by ce", "host:0"),
        ("host:1 -> host:0 by cpu", "bridge"),
        ("host:0 -> host:0 by cpu*1", "host:0"),
    ],
)
def test_what_is_slow_takes_so_much_longer(transfer, target):
    slow = median(transfer, faults=[f"slow {target} rate=10%"])
    # What a copy takes to start stays as it is.
    assert 0.1 <= slow / median(transfer) < 0.13


def test_a_fault_of_other_cells_changes_nothing():
    faults = [
        f"{kind} * cells=3..4" for kind in ("slow", "jitter", "stall", "flip", "hang", "nomem")
    ]
    for number in (2, 5):
        assert measure(PEER, faults=faults, number=number) == measure(PEER, number=number)


def test_faults_of_latencies():
    chase = "host:0 -> null by sim:0.sm"
    quiet = measure(chase, report=Report.LATENCY)
    faults = ["stall sim:0 every=20 for=1", "flip sim:0"]
    struck = measure(chase, report=Report.LATENCY, faults=faults)
    assert (struck.status, struck.verified) == ("pass", None)
    assert struck.samples[:19] == quiet.samples[:19]
    assert struck.samples[19] > quiet.samples[19]


@pytest.mark.parametrize(
    ("target", "is_struck"), [("host:0", True), ("host:1", True), ("sim:0", False)]
)
def test_faults_of_a_node_strike_lines_that_bounce_between_its_cpus(target, is_struck):
    line = f"cpu:0 -> cpu:{worker().survey([]).host.nodes[1].cpus[0]} by cpu"
    cell = PlannedCell("0", "1", (parse_transfer(line),), Report.LATENCY, operation="ping-pong")
    ((quiet,), (struck,)) = (
        worker(*faults).measure((cell,), 64) for faults in ((), (f"stall {target} every=20 for=1",))
    )
    assert (quiet.status, struck.status, struck.verified) == ("pass", "pass", True)
    assert struck.samples[:19] == quiet.samples[:19]
    assert (struck.samples[19] > 2 * quiet.samples[19]) == is_struck


@pytest.mark.parametrize("offset", [0, 1000, 4095, 4096, 54321, SIZE - 1])
@pytest.mark.parametrize(
    "transfers",
    [
        (PEER,),
        ("null -> sim:1 by sm",),
        ("sim:0 <-> sim:1 by sm",),
        ("host:1 -> sim:1 by ce", "sim:1 -> host:1 by ce"),
    ],
)
def test_a_flipped_bit_fails_the_cell_at_its_offset(transfers, offset):
    struck = measure(*transfers, faults=[f"flip sim:1 offset={offset} bit=5"])
    assert (struck.status, struck.verified) == ("fail", False)
    assert f"is wrong at byte {offset} of {SIZE}" in struck.reason


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            "nomem sim:1",
            "while allocating (sim:0, sim:1): allocate: out of memory (SIMULATED: nomem sim:1)",
        ),
        ("lost sim:1", "while measuring (sim:0, sim:1): copy: device lost (SIMULATED: lost sim:1)"),
        (
            "lost sim:1 phase=warm-up",
            (
                "while warming up (sim:0, sim:1): copy: device lost"
                " (SIMULATED: lost sim:1 phase=warm-up)"
            ),
        ),
    ],
)
def test_what_fails_says_the_phase_the_call_and_the_fault(fault, reason):
    struck = measure(PEER, faults=[fault])
    assert (struck.status, struck.reason) == ("error", reason)


def test_allocation_fails_although_buffers_of_an_earlier_cell_are_idle():
    one = worker("nomem sim:1 cells=1")
    statuses = [one.measure((planned(PEER, number=n),), SIZE)[0].status for n in range(3)]
    assert statuses == ["pass", "error", "pass"]


def test_a_crash_is_a_real_signal_to_this_very_process(monkeypatch):
    sent = []

    def kill(pid, number):
        sent.append((pid, number))
        raise SystemExit

    monkeypatch.setattr("os.kill", kill)
    monkeypatch.setattr("os.getpid", lambda: 4711)
    with pytest.raises(SystemExit):
        measure(PEER, faults=["crash sim:1 signal=KILL"])
    assert sent == [(4711, signal.SIGKILL)]


def test_a_hang_does_not_come_back(monkeypatch):
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            raise SystemExit

    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(SystemExit):
        measure(PEER, faults=["hang sim:1"])
    assert len(naps) == 3


ALL_AT_ONCE = (
    "slow sim:0-sim:1 rate=70%",
    "drift sim:1 per_cell=-1%",
    "jitter host:0 sigma=3%",
    "stall * every=4 for=0.02",
    "flip sim:1 offset=77 cells=4..",
    "nomem sim:2 cells=5",
    "lost sim:2 cells=7",
)
CELLS = [
    planned(*transfers, number=number)
    for number, transfers in enumerate(
        [(PEER,), ("host:0 -> sim:1 by ce",), ("sim:1 -> sim:2 by sm", "sim:2 -> sim:0 by sm")] * 4
    )
]


def test_a_worker_started_anew_before_any_cell_meets_the_same_faults():
    one = worker(*ALL_AT_ONCE)
    unbroken = [one.measure((one_cell,), SIZE) for one_cell in CELLS]
    assert unbroken == [worker(*ALL_AT_ONCE).measure((one_cell,), SIZE) for one_cell in CELLS]
    assert {result.status for (result,) in unbroken} == {"pass", "fail", "error"}


def test_faults_of_the_description_and_of_the_command_both_strike():
    described = f"{MACHINE}\nfaults: ['flip * cells=0']\n"
    one = worker("flip * cells=2", machine=described)
    statuses = [one.measure((planned(PEER, number=n),), SIZE)[0].status for n in range(3)]
    assert statuses == ["fail", "pass", "fail"]
