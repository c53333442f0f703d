"""Consecutive logs are one log."""

from linkgauge.model.kernel_log import KernelLog, LogLine, joined

ONE, TWO = LogLine(1.0, "one", "xid"), LogLine(2.0, "two", "aer")


def test_logs_are_joined_in_their_order():
    logs = (KernelLog((ONE,), 3), KernelLog(), KernelLog((TWO,), 4, lost=True))
    assert joined(logs) == KernelLog((ONE, TWO), 7, lost=True)


def test_a_reason_is_given_once():
    logs = (KernelLog(unknown=("a: b",)), KernelLog(unknown=("a: b",)), KernelLog(unknown=("c",)))
    assert joined(logs).unknown == ("a: b", "c")


def test_without_any_nothing_is_known():
    assert joined(()) is None
    assert joined((KernelLog(),)) == KernelLog()
