"""How MPI is loaded into this process at its first use."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from linkgauge.backends.offering import errors_of
from linkgauge.machine.processes.launch import Launch, ranks_per_cpu
from linkgauge.model.errors import BackendError, InputError, pip_install

GIVING_WAY: Mapping[str, str] = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "I_MPI_THREAD_YIELD": "2",
}
"""The variables with which MPI libraries (MPICH, Open MPI, Intel MPI) give up the CPU while they
wait. By default they spin, so that a rank on the same CPU has to wait for the end of their turn."""


@cache
def world(launch: Launch) -> Any:
    """Initializes MPI together with all other ranks. Only the calling thread may use MPI. Raises
    InputError without MPI, and BackendError if MPI and the launcher number ranks differently."""
    if launch.mpi is not None:  # of several that are installed, the launcher's own
        os.environ.setdefault("MPI4PY_MPIABI", launch.mpi)
    if ranks_per_cpu(launch) > 1:
        for name, value in GIVING_WAY.items():  # a site may have chosen otherwise
            os.environ.setdefault(name, value)
    try:
        import mpi4py

        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        said = str(error).splitlines()[0]
        raise InputError(
            f"no MPI for Python ({said}): {pip_install('linkgauge[mpi]')}, and a site's MPI or "
            "mpich"
        ) from error
    _call(MPI, "MPI_Init_thread", None, None, MPI.THREAD_FUNNELED, ctypes.byref(ctypes.c_int()))
    comm = MPI.COMM_WORLD
    with mpi_errors("MPI_Comm_set_errhandler"):
        comm.Set_errhandler(MPI.ERRORS_RETURN)
    if (comm.rank, comm.size) != (launch.rank, launch.size):
        has = f"MPI says rank {comm.rank} of {comm.size}"
        says = f"the launcher {launch.rank} of {launch.size}"
        raise BackendError("MPI_Init_thread", f"{has}, {says}: use the launcher of this MPI")
    return MPI


mpi_errors = partial(errors_of, "mpi4py")
"""Turns errors of MPI into BackendError."""


def leave(launch: Launch) -> None:
    """Finalizes MPI with all other ranks, if it was initialized. May raise BackendError."""
    if world.cache_info().currsize:
        _call(world(launch), "MPI_Finalize")


def library(mpi: Any) -> ctypes.CDLL:
    return ctypes.CDLL(mpi.__file__)


def _call(mpi: Any, name: str, *arguments: object) -> None:
    # Unlike mpi4py's functions, ctypes lets other threads run during the call.
    status = getattr(library(mpi), name)(*arguments)
    if status:
        raise BackendError(name, f"returned {status}")
