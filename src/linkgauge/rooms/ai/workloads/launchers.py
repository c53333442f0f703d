"""What torchrun or mpiexec says of this process, as torch.distributed's own names have it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple


class Joined(NamedTuple):
    """This process is number `rank` of `size`, and `local_rank` of those of its machine, by what
    torchrun or mpiexec says."""

    rank: int
    size: int
    local_rank: int


_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)
PORT = "29511"
"""Where ranks of mpiexec meet, unless MASTER_ADDR and MASTER_PORT say otherwise."""


def joined(environment: Mapping[str, str] = os.environ) -> Joined | None:
    """How torchrun or mpiexec started this process; None if it is alone."""
    for names in _LAUNCHERS:
        told = [environment.get(name, "") for name in names]
        if all(text.isdecimal() for text in told[:2]) and int(told[1]) > 1:
            local = int(told[2]) if told[2].isdecimal() else int(told[0])
            return Joined(int(told[0]), int(told[1]), local)
    return None
