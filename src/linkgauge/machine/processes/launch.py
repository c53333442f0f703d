"""Reads the environment variables that a launcher sets (mpiexec, mpirun, srun)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import InputError


class Launch(NamedTuple):
    """The place of this process in a launch of several ranks. `local_rank` and `local_size` count
    only this machine's ranks. `job` identifies the launch. `mpi` is mpi4py's name of the MPI (None:
    any). Without MPI, ranks connect to `first` (HOST:PORT) with the secret `token`."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int | None = 1
    job: str = ""
    mpi: str | None = None
    first: str | None = None
    token: str = ""

    @property
    def on_one_machine(self) -> bool:
        return self.local_size == self.size

    @property
    def by_name(self) -> bool:
        """Whether ranks connect by a named socket: on one machine, and without a `first`."""
        return self.first is None and self.on_one_machine


class _Launcher(NamedTuple):
    """The names of a launcher's environment variables. `job` names the variables that identify a
    launch; without them, the launcher's process id does. `mpi` is mpi4py's name of the MPI."""

    rank: str
    size: str
    local_rank: str
    local_size: str | None = None
    nodes: str | None = None
    job: tuple[str, ...] = ()
    mpi: str | None = None
    first: str | None = None
    token: str | None = None


# Sources: Open MPI's mpirun(1), MPICH's src/pm/hydra, srun(1), Intel MPI's and MVAPICH's use Hydra.
# The first is linkgauge's own, for whatever starts processes without MPI.
# An inner launcher comes first: mpiexec may itself be a step of Slurm's.
_BY_MPI = (
    _Launcher("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
              "OMPI_COMM_WORLD_LOCAL_SIZE", job=("PMIX_NAMESPACE",), mpi="openmpi"),
    _Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)  # fmt: skip
_OF_TORCH = (_Launcher("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"), *_BY_MPI)
"""torchrun, and launchers that can take its place."""
_LAUNCHERS = (
    _Launcher("LINKGAUGE_RANK", "LINKGAUGE_RANKS", "LINKGAUGE_RANK",
              first="LINKGAUGE_FIRST", token="LINKGAUGE_TOKEN"),  # noqa: S106
    *_BY_MPI,
    _Launcher("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
              nodes="SLURM_STEP_NUM_NODES", job=("SLURM_JOB_ID", "SLURM_STEP_ID")),
)  # fmt: skip
_STARTERS = ("hydra_pmi_proxy", "mpiexec", "mpirun", "orted", "orterun", "prted", "prterun",
             "slurmstepd")  # fmt: skip
"""Names of processes that start ranks."""
_NAME = 15
_ADDRESS = re.compile(r"\S+:[0-9]{1,5}")
LEAST_TOKEN = 8
"""The smallest number of characters in a secret."""


def launched(
    environment: Mapping[str, str] = os.environ,
    root: Root = ROOT,
    parent: int | None = None,
    by_torch: bool = False,
) -> Launch:
    """Returns this process's place in a launch. Raises InputError if a variable is wrong."""
    launchers = _OF_TORCH if by_torch else _LAUNCHERS
    known = [one for one in launchers if {one.rank, one.size} <= environment.keys()]
    if by_torch:  # RANK may be a variable of something else
        known = [one for one in known if environment[one.rank].isdecimal()]
    # Slurm's PMI sets some variables of Hydra's, but not those of one machine.
    known.sort(key=lambda one: one.local_rank not in environment)
    if not known:
        return Launch()
    launch = _read(known[0], environment, root, os.getppid() if parent is None else parent)
    is_alone = by_torch and known[0].local_rank not in environment
    return launch._replace(local_rank=launch.rank) if is_alone else launch


def _read(launcher: _Launcher, environment: Mapping[str, str], root: Root, parent: int) -> Launch:
    def number(name: str | None) -> int | None:
        written = environment.get(name) if name else None
        if written is None:
            return None
        if not written.isdecimal():
            raise InputError(f"the launcher's {name} is {written!r}: expected a number")
        return int(written)

    rank, size = number(launcher.rank) or 0, number(launcher.size) or 1
    if rank >= size:
        raise InputError(f"the launcher's {launcher.rank} is {rank} of {size}")
    local_size = number(launcher.local_size)
    if number(launcher.nodes) == 1:
        local_size = size
    known = [environment[name] for name in launcher.job if name in environment]
    job = ".".join(known) if known else f"p{starter(root, parent) or parent}"
    local_rank = number(launcher.local_rank) or 0
    launch = Launch(rank, size, local_rank, local_size, job, launcher.mpi)
    if launcher.first is None or launcher.token is None or size == 1:
        return launch
    first, token = (environment.get(name, "") for name in (launcher.first, launcher.token))
    if not _ADDRESS.fullmatch(first):
        raise InputError(f"set {launcher.first} to rank 0's HOST:PORT, not {first!r}")
    if len(token) < LEAST_TOKEN:
        raise InputError(
            f"set {launcher.token} to a secret of {LEAST_TOKEN} characters or more, "
            "the same for all ranks"
        )
    return launch._replace(job=first, first=first, token=token)


def starter(root: Root, process: int) -> int | None:
    """Returns the id of the process that started the ranks: `process` or an ancestor, or None."""
    while process > 1:
        fields = status_of(root, process)
        if fields.get("Name") in {name[:_NAME] for name in _STARTERS}:
            return process
        process = parent_in(fields)
    return None


def status_of(root: Root, process: int) -> dict[str, str]:
    """Returns the fields of /proc/PID/status; empty if there is no such process."""
    status = root.text(f"proc/{process}/status") or ""
    pairs = (line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {name: value.strip() for name, value in pairs}


def parent_in(status: Mapping[str, str]) -> int:
    """Returns the parent's process id from a status file, or 0 if there is none."""
    above = status.get("PPid", "")
    return int(above) if above.isdecimal() else 0


def ranks_per_cpu(launch: Launch, root: Root = ROOT) -> float:
    """Returns the ranks on this machine ÷ the CPUs on which their launcher may run."""
    launcher = starter(root, parent_in(status_of(root, os.getpid())))
    try:
        cpus = len(os.sched_getaffinity(launcher or os.getppid()))
    except OSError:  # it has ended
        cpus = os.cpu_count() or 1
    return (launch.local_size or 1) / cpus


def host_name(environment: Mapping[str, str] = os.environ) -> str:
    """Returns LINKGAUGE_HOST or the machine's name. Ranks with equal names can share memory."""
    return environment.get("LINKGAUGE_HOST") or os.uname().nodename


_OF_SEVERAL = ("multinode", "_perf", "nic_", "nic:", "--resume")
"""Words in the arguments of commands that several processes run together."""


def is_heard(arguments: Sequence[str]) -> bool:
    """Whether this process reports errors: of ranks that run a command together, only rank 0."""
    try:
        rank = launched().rank
    except InputError:
        return True
    return not rank or not any(mark in word for word in arguments for mark in _OF_SEVERAL)
