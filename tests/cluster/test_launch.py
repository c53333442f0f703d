"""Each launcher says in its own variables which process this is, of how many."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.processes.launch import is_heard, launched, ranks_per_cpu
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import InputError

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "PMIX_NAMESPACE": "prterun-node7-1234@1",
}
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "3", "MPI_LOCALNRANKS": "4"}
SLURM = {
    "SLURM_PROCID": "2",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_LOCALID": "0",
    "SLURM_STEP_NUM_NODES": "3",
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_ID": "1",
}


def tree(*ancestors):
    """A /proc of processes and their names, the nearest ancestor of this one first."""
    files = {}
    process = os.getppid()
    numbers = [process, *(9_000_000 + n for n in range(1, len(ancestors)))]
    above = [*numbers[1:], 1]
    for number, parent, name in zip(numbers, above, ancestors, strict=False):
        files[f"proc/{number}/status"] = f"Name:\t{name}\nUmask:\t0022\nPPid:\t{parent}\n".encode()
    return Captured(files), numbers


def job_below(*ancestors):
    root, numbers = tree(*ancestors)
    return launched(HYDRA, root).job, [f"p{number}" for number in numbers]


OWN = {"LINKGAUGE_RANK": "1", "LINKGAUGE_RANKS": "4", "LINKGAUGE_FIRST": "node0:7711",
       "LINKGAUGE_TOKEN": "a-long-secret"}  # fmt: skip


class TestWithoutMpi:
    """linkgauge's own variables, for whatever starts processes."""

    def test_they_come_before_a_launcher_s(self):
        found = launched({**OWN, **HYDRA})
        assert (found.rank, found.size) == (1, 4)
        assert (found.first, found.token) == ("node0:7711", "a-long-secret")
        assert found.job == "node0:7711", "whatever started each of them"
        assert not found.on_one_machine

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"LINKGAUGE_FIRST": "node0"}, "set LINKGAUGE_FIRST to rank 0's HOST:PORT"),
            ({"LINKGAUGE_FIRST": ""}, "set LINKGAUGE_FIRST to rank 0's HOST:PORT"),
            ({"LINKGAUGE_TOKEN": "short"}, "set LINKGAUGE_TOKEN to a secret of 8 characters"),
            ({"LINKGAUGE_RANK": "4"}, "the launcher's LINKGAUGE_RANK is 4 of 4"),
        ],
    )
    def test_what_is_missing_is_named(self, changed, words):
        with pytest.raises(InputError, match=words):
            launched({**OWN, **changed})


def test_a_step_on_one_node_is_on_one_machine():
    found = launched({**SLURM, "SLURM_STEP_NUM_NODES": "1"})
    assert found.local_size == 6
    assert found.on_one_machine


class TestNesting:
    def test_mpiexec_inside_a_step_is_the_launcher(self):
        found = launched({**SLURM, **HYDRA}, tree("hydra_pmi_proxy")[0])
        assert (found.rank, found.size, found.local_rank) == (3, 4, 3)
        assert launched({**SLURM, **OPEN_MPI}).rank == 5


class TestBadValues:
    @pytest.mark.parametrize("name", [n for n in (*OPEN_MPI, *HYDRA, *SLURM) if "JOB" not in n])
    def test_are_named(self, name):
        for variables in (OPEN_MPI, HYDRA, SLURM):
            if name in variables and name not in ("PMIX_NAMESPACE", "SLURM_STEP_ID"):
                with pytest.raises(InputError, match=f"{name} is 'two': expected a number"):
                    launched({**variables, name: "two"})

    @pytest.mark.parametrize("written", ["", "-1", "1.0", " 1", "0x1", "²", "1_0"])
    def test_are_all_that_is_no_number(self, written):
        with pytest.raises(InputError, match="PMI_RANK"):
            launched({**HYDRA, "PMI_RANK": written})


class TestJob:
    @pytest.mark.parametrize("starter", ["mpirun", "prterun", "orted", "slurmstepd"])
    def test_knows_what_starts_ranks(self, starter):
        job, above = job_below("sh", starter, "bash")
        assert job == above[1]

    @pytest.mark.parametrize(
        "status", [b"", b"\xff\xfe", b"Name:\tbash\n", b"Name:\tbash\nPPid:\tnone\n"]
    )
    def test_is_of_the_parent_if_the_tree_cannot_be_read(self, status):
        parent = os.getppid()
        root = Captured({f"proc/{parent}/status": status})
        assert launched(HYDRA, root).job == f"p{parent}"


def test_ranks_share_the_cpus_of_their_launcher():
    """Which may bind each rank to one of them. Without a launcher, they are those of the parent."""
    parent, above = os.getppid(), ["sleep", "600"]
    with subprocess.Popen(above) as launcher:
        os.sched_setaffinity(launcher.pid, {min(os.sched_getaffinity(0))})
        files = {
            f"proc/{os.getpid()}/status": f"Name:\tpython\nPPid:\t{launcher.pid}\n".encode(),
            f"proc/{launcher.pid}/status": f"Name:\thydra_pmi_proxy\nPPid:\t{parent}\n".encode(),
        }
        assert ranks_per_cpu(launched(HYDRA), Captured(files)) == 4.0
        launcher.kill()
    shared = 4 / len(os.sched_getaffinity(parent))
    assert ranks_per_cpu(launched(HYDRA), Captured({})) == shared


numbers = st.integers(0, 10_000)


@given(size=numbers, rank=numbers, local_size=numbers, local_rank=numbers, data=st.data())
def test_every_launcher_says_the_same_in_its_own_words(size, rank, local_size, local_rank, data):
    """Ranks below the size are understood, all others refused."""
    words = {
        "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": local_rank, "OMPI_COMM_WORLD_LOCAL_SIZE": local_size,
    }  # fmt: skip
    names = data.draw(st.sampled_from([list(OPEN_MPI)[:4], list(HYDRA)]))
    environment = {name: str(value) for name, value in zip(names, words.values(), strict=True)}
    if rank >= max(size, 1):
        with pytest.raises(InputError):
            launched(environment)
        return
    found = launched(environment, tree("mpiexec")[0])
    assert (found.rank, found.size) == (rank, max(size, 1))
    assert (found.local_rank, found.local_size) == (local_rank, local_size)


@given(st.dictionaries(st.sampled_from([*OPEN_MPI, *HYDRA, *SLURM]), st.text(max_size=8)))
def test_any_environment_is_understood_or_refused(environment):
    try:
        found = launched(environment, Captured({}))
    except InputError:
        return
    assert 0 <= found.rank < found.size


def test_of_the_ranks_of_one_run_the_first_says_what_is_wrong_with_its_arguments(monkeypatch):
    for name, number in (("LINKGAUGE_RANK", 1), ("LINKGAUGE_RANKS", 2)):
        monkeypatch.setenv(name, str(number))
    monkeypatch.setenv("LINKGAUGE_FIRST", "node0:7711")
    monkeypatch.setenv("LINKGAUGE_TOKEN", "a-long-secret")
    assert not is_heard(["run", "nic_tcp", "--no-such"])
    assert not is_heard(["run", "--resume=results/x", "--no-such"])
    assert is_heard(["run", "host_to_host_memcpy_read_cpu", "--no-such"])
    monkeypatch.setenv("LINKGAUGE_RANK", "0")
    assert is_heard(["run", "--resume", "results/x"])
