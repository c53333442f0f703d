"""CPU time as the kernel reports it, and what follows for others than a run."""

import os

import pytest

from linkgauge.machine.cpu_time import CpuTime, ProcessTime, cpu_time, family_time, process_time
from linkgauge.machine.tree import Captured

TICK = os.sysconf("SC_CLK_TCK")
STAT = b"cpu  100 20 30 5000 40 5 6 70 9 0\ncpu0 100 20 30 5000 40 5 6 70 9 0\n"


def test_idle_time_is_none_and_a_guests_is_not_counted_twice():
    found = cpu_time(Captured({"proc/stat": STAT}))
    assert found == CpuTime(161 / TICK, 70 / TICK)
    assert cpu_time(Captured({})) is None
    for garbled in (b"cpu 1 2\n", STAT.replace(b"30", b"x"), STAT.replace(b"30", b"9" * 5000)):
        assert cpu_time(Captured({"proc/stat": garbled})) is None


def test_a_process_may_have_any_name():
    line = b"42 (a) b (c) S 7 " + b" ".join(str(n).encode() for n in range(5, 30))
    found = process_time(42, Captured({"proc/42/stat": line}))
    assert found == ProcessTime("a) b (c", 7, (14 + 15) / TICK, (16 + 17) / TICK)
    assert process_time(43, Captured({"proc/42/stat": line})) is None
    assert process_time(42, Captured({"proc/42/stat": line.replace(b" 7 ", b" x ")})) is None


def _stat(pid: int, parent: int, *ticks: int) -> dict[str, bytes]:
    """User and system time of a process, then of its children that have ended."""
    fields = (pid, "(a)", "S", parent, *[0] * 9, *ticks, *[0] * 20)
    return {f"proc/{pid}/stat": " ".join(map(str, fields)).encode()}


def test_the_workers_of_a_run_are_its_own_whether_they_run_or_have_ended():
    """Two workers take turns: what one does between repetitions of the other is no load beside
    it."""
    tree = Captured({
        **_stat(7, 1, 10, 20, 300, 400),
        **_stat(42, 7, 1000, 2000, 0, 0),
        **_stat(43, 7, 5000, 6000, 70, 80),
        **_stat(44, 1, 90_000, 90_000, 0, 0),
        "proc/7/task/7/children": b"42 ",
        "proc/7/task/8/children": b"43 99 ",
    })  # fmt: skip
    assert family_time(7, tree) == pytest.approx(14_880 / TICK)
    assert family_time(44, tree) == pytest.approx(180_000 / TICK)
    assert family_time(99, tree) == 0
