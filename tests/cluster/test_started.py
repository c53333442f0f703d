"""A rank that can be seen to have ended before it appeared is not waited for."""

import os

import pytest

from linkgauge.cluster import started as module
from linkgauge.cluster.launch import host_name, launched
from linkgauge.cluster.started import Processes
from linkgauge.machine.tree import Captured
from linkgauge.model.ranks import LostRank

LAUNCHER = 50
MINE = {"PMI_RANK": "0", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "4"}
OWN = {"LINKGAUGE_RANK": "0", "LINKGAUGE_RANKS": "4", "LINKGAUGE_FIRST": "node0:7711",
       "LINKGAUGE_TOKEN": "a-long-secret"}  # fmt: skip


def status(name, parent, state="S (sleeping)"):
    return f"Name:\t{name}\nState:\t{state}\nPPid:\t{parent}\n".encode()


class Machine:
    """A /proc that changes, of ranks 0 to 3 that one launcher has started; this is rank 0."""

    def __init__(self, variables=None, launcher="hydra_pmi_proxy"):
        self.variables = MINE if variables is None else variables
        self.files = {f"proc/{LAUNCHER}/status": status(launcher, 1)}
        self.add(os.getpid(), 0)
        for rank in (1, 2, 3):
            self.add(100 + rank, rank)

    def add(self, process, rank, parent=LAUNCHER, **changed):
        names = [name for name in self.variables if name.endswith(("RANK", "RANKID"))]
        found = {**self.variables, **dict.fromkeys(names, str(rank)), **changed}
        words = [f"{name}={value}".encode() for name, value in {"HOME": "/", **found}.items()]
        self.files[f"proc/{process}/environ"] = b"\0".join(words) + b"\0"
        self.files[f"proc/{process}/status"] = status("python3", parent)

    def end(self, process):
        for name in ("environ", "status"):
            self.files.pop(f"proc/{process}/{name}", None)

    def processes(self):
        found = Processes(launched(self.variables, Captured(self.files), LAUNCHER))
        return Looking(found, self)


class Looking:
    """Looks at the machine as it is now."""

    def __init__(self, processes, machine):
        self.of, self.machine = processes, machine

    def ended(self, *missing):
        assert self.looks(*missing) is None, "once may be too soon"
        return self.looks(*missing)

    def looks(self, *missing):
        self.of._root = Captured(dict(self.machine.files))
        return self.of.ended(missing)

    def living(self):
        self.of._root = Captured(dict(self.machine.files))
        return self.of.living()


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)


def ended(rank, process=None):
    return LostRank(rank, "ended", "joining", host_name(), process)


class TestWhoLives:
    def test_are_no_ranks_of_another_launch(self):
        machine = Machine()
        machine.end(103)
        machine.files["proc/60/status"] = status("hydra_pmi_proxy", 1)
        machine.add(203, 3, parent=60)
        machine.add(204, 3, MPI_LOCALNRANKS="two")
        assert set(machine.processes().living()) == {0, 1, 2}
        mine = Machine(OWN)
        mine.end(103)
        mine.add(203, 3, LINKGAUGE_TOKEN="another-secret")
        assert set(mine.processes().living()) == {0, 1, 2}


def test_a_process_is_known_to_be_of_a_rank():
    """Numbers may be those of another machine's processes."""
    machine = Machine()
    machine.files["proc/60/status"] = status("hydra_pmi_proxy", 1)
    machine.add(200, 0, parent=60)
    machine.files["proc/300/environ"] = b"HOME=/\0"
    processes = machine.processes().of
    processes._root = Captured(machine.files)
    assert [processes.rank_of(number) for number in (os.getpid(), 102, 200, 300, 400)] == [
        0, 2, None, None, None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "stopped"),
    [("T (stopped)", True), ("t (tracing stop)", True), ("S (sleeping)", False)],
)
def test_a_process_is_known_to_be_stopped(state, stopped):
    machine = Machine()
    machine.files["proc/102/status"] = status("python3", LAUNCHER, state)
    processes = machine.processes().of
    processes._root = Captured(machine.files)
    assert processes.is_stopped(102) == stopped
    assert not processes.is_stopped(400)


@pytest.mark.parametrize("variables", [MINE, OWN])
class TestSeenBefore:
    def test_it_ended(self, variables):
        machine = Machine(variables)
        found = machine.processes()
        assert found.ended(2, 3) is None
        machine.end(103)
        assert found.ended(2, 3) == ended(3, 103)

    def test_it_may_have_been_a_script_that_a_launcher_runs_before_the_rank(self, variables):
        machine = Machine(variables)
        found = machine.processes()
        assert found.looks(3) is None
        machine.end(103)
        assert found.looks(3) is None
        machine.add(203, 3)
        assert found.looks(3) is None
        machine.end(203)
        assert found.ended(3) == ended(3, 203)


class TestNeverSeen:
    @pytest.fixture(autouse=True)
    def _started(self, monkeypatch):
        monkeypatch.setattr(module, "STARTED_SECONDS", 0.0)

    def test_it_ended_if_the_launcher_has_a_process_fewer(self):
        machine = Machine()
        machine.end(102)
        assert machine.processes().ended(1, 2) == ended(2)

    @pytest.mark.parametrize("machine", [Machine(OWN), Machine(launcher="sh")])
    def test_nothing_is_known_of_ranks_that_are_started_one_by_one(self, machine):
        machine.end(102)
        assert machine.processes().ended(2) is None

    def test_nothing_is_known_of_those_that_may_be_on_another_machine(self):
        machine = Machine({**MINE, "PMI_SIZE": "8"})
        machine.end(102)
        assert machine.processes().ended(2, 5) is None
