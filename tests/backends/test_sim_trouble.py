"""What a fault does to a simulated machine's figures and bytes, seen as a run sees it."""

import signal

import pytest

from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.transfer import Report
from repetition_kit import whole
from sim_kit import MACHINE, SIZE, planned, settings

PEER = "sim:0 -> sim:1 by sm"


def worker(*faults, machine=MACHINE):
    made = LocalWorker(settings(*faults, machine=machine, samples=20))
    made.survey(["sim"])
    return made


def measure(*transfers, faults=(), number=0, report=Report.SUM):
    (result,) = worker(*faults).measure((planned(*transfers, number=number, report=report),), SIZE)
    return whole(result)


@pytest.mark.parametrize(
    ("phase", "words"),
    [("allocate", "while allocating"), ("warm-up", "while warming up"),
     ("fill", "while filling"), ("measure", "while measuring"), ("verify", "while verifying")],
)  # fmt: skip
def test_it_strikes_in_its_phase(phase, words):
    struck = measure(PEER, faults=[f"lost sim:1 phase={phase}"])
    assert (struck.status, words in struck.reason) == ("error", True), struck.reason


def test_rates_multiply_and_drift_from_the_first_cell_on():
    faults = [
        "slow sim:0 rate=0.5", "slow * rate=0.5 cells=4", "drift sim:1 per_cell=-1% cells=2..",
    ]  # fmt: skip
    quiet, *struck = (
        SIZE / measure(PEER, faults=some, number=number).summary.median
        for some, number in (((), 0), (faults, 0), (faults, 2), (faults, 4))
    )
    start = quiet - SIZE / 50e9
    taken = [(seconds - start) / (quiet - start) for seconds in struck]
    assert taken == pytest.approx([2, 2, 4 / 0.99**2], rel=1e-6)


def test_a_stall_comes_every_so_many_samples():
    quiet, struck = (
        measure(PEER, faults=faults).samples for faults in ((), ["stall sim:0 every=3 for=0.25"])
    )
    pairs = enumerate(zip(quiet, struck, strict=True))
    assert all((one != other) == (n % 3 == 2) for n, (one, other) in pairs)


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
