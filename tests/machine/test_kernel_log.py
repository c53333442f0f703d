"""What the kernel logs while it is followed is found, as far as the log may be read."""

import errno
import os
from pathlib import Path

import msgspec
import pytest

from fakes import machine
from linkgauge.machine import kernel_log
from linkgauge.machine.kernel_log import KMSG, MOST_OF_A_KIND, Follower, following
from linkgauge.model.hardware.inventory import Inventory, PciFunction
from linkgauge.model.kernel_log import KernelLog


class Log:
    """A kernel's log: `write` adds a record, or what a read of it raises."""

    def __init__(self, start=100.0):
        self.now = start
        self._records = []

    def write(self, *texts, at=None):
        for text in texts:
            ticks = int((self.now if at is None else at) * 1e6)
            known = isinstance(text, OSError)
            self._records.append(text if known else f"3,1,{ticks},-;{text}\n".encode())

    def read(self):
        if not self._records:
            raise BlockingIOError(errno.EAGAIN, "no more records")
        record = self._records.pop(0)
        if isinstance(record, OSError):
            raise record
        return record

    def followed(self, **more):
        return Follower(self.read, machine(), clock=lambda: self.now, **more)


XID = "NVRM: Xid (PCI:0000:01:00): 79, gone"


def texts(log):
    return [line.text for line in log.lines]


def test_only_what_is_new_and_concerns_devices_is_reported():
    log = Log()
    follower = log.followed()
    log.write("NVRM: one", "EXT4-fs: mounted", "NVRM: two")
    assert texts(follower.new()) == ["NVRM: one", "NVRM: two"]
    log.write("EXT4-fs: mounted")
    assert follower.new() is None
    log.write("NVRM: three")
    assert texts(follower.new()) == ["NVRM: three"]


def test_times_count_from_the_runs_start():
    log = Log(start=5000.0)
    follower = log.followed(since=60.0)
    log.now += 2.5
    log.write(XID)
    log.now += 1.0
    assert follower.new().lines[0].seconds == pytest.approx(62.5)


@pytest.mark.parametrize(("stamp", "seconds"), [(5004.0, 4.0), (4000.0, 3.0), (9000.0, 5.0)])
def test_a_kernels_clock_that_drifted_stays_between_two_readings(stamp, seconds):
    log = Log(start=5000.0)
    follower = log.followed()
    log.now += 3.0
    follower.new()
    log.now += 2.0
    log.write(XID, at=stamp)
    assert follower.new().lines[0].seconds == pytest.approx(seconds)


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EINVAL])
def test_records_that_were_overwritten_are_told_and_the_rest_is_read(number):
    log = Log()
    follower = log.followed()
    log.write("NVRM: one", OSError(number, "lost"), "NVRM: two")
    new = follower.new()
    assert (texts(new), new.lost) == (["NVRM: one", "NVRM: two"], True)
    log.write("NVRM: three")
    assert not follower.new().lost


def test_a_log_that_breaks_is_not_an_error():
    log = Log()
    log.write("NVRM: one", OSError(errno.EIO, "broken"), "NVRM: two")
    new = log.followed().new()
    assert (texts(new), new.lost) == (["NVRM: one"], True)


def test_of_a_flood_the_first_are_kept_and_the_rest_counted():
    log = Log()
    follower = log.followed()
    flood = ["pcieport 0000:00:1c.0: AER: Correctable error message received from 0000:01:00.0"]
    log.write(*flood * 50, XID, *flood * 7)
    new = follower.new()
    assert (len(new.lines), new.more) == (MOST_OF_A_KIND + 1, 57 - MOST_OF_A_KIND)
    assert texts(new)[-1] == XID
    log.write(*flood)
    assert follower.new() == KernelLog(more=1)


class TestALogThatCannotBeRead:
    def unknown(self, path):
        with following(machine(), path=path) as follower:
            first, second = follower.new(), follower.new()
        assert (first.lines, second) == ((), None)
        (why,) = first.unknown
        return why

    def test_is_not_there(self, tmp_path):
        path = tmp_path / "kmsg"
        assert self.unknown(path) == f"kernel log: {path} is missing (usual in containers)"

    def test_is_something_else(self, tmp_path):
        (tmp_path / "file").write_text("3,1,2,-;NVRM: x\n")
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path / "file", tmp_path / "pipe", tmp_path, Path("/dev/null")):
            assert self.unknown(path).startswith(f"kernel log: {path} is not the kernel's log")

    def test_is_for_root_alone(self, monkeypatch, tmp_path):
        why = kernel_log._why_closed
        denied = PermissionError(errno.EPERM, "Operation not permitted")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert why(KMSG, denied) == (
            "/dev/kmsg: Operation not permitted (kernel.dmesg_restrict): run as root"
        )
        monkeypatch.setattr(os, "geteuid", lambda: 0)  # a container's root
        assert why(KMSG, denied) == "/dev/kmsg: Operation not permitted"


def why_not_written():
    """Why this process cannot write to this machine's log and read it."""
    for flag, verb in ((os.O_RDONLY, "read"), (os.O_WRONLY, "written")):
        try:
            os.close(os.open(KMSG, flag | os.O_NONBLOCK))
        except OSError as error:
            return f"{KMSG} cannot be {verb} here: {error.strerror}"
    return None


@pytest.mark.skipif(why_not_written() is not None, reason=why_not_written() or "")
def test_a_line_of_this_machines_own_log_is_found():
    # Not an Xid: what watches the logs of a cluster would act on one.
    driver = f"linkgauge-test-{os.getpid()}"
    pci = (PciFunction(address="0000:01:00.0", class_code=0x120000, driver=driver),)
    here = msgspec.structs.replace(machine(), inventory=Inventory(pci=pci))
    KMSG.write_text(f"<4>{driver}: before the run, written by a test\n")
    with following(here) as follower:
        assert follower.new().lines == ()
        KMSG.write_text(f"<4>{driver}: written by a test: \\ \x1b\n")
        (line,) = follower.new().lines
    assert line.text == f"{driver}: written by a test: \\ \\x1b"
    assert (line.kind, line.level) == ("driver", 4)
    assert 0 <= line.seconds < 60
