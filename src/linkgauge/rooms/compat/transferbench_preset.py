"""What TransferBench's presets have in common: their machine and their variables."""

from __future__ import annotations

from linkgauge.cli.tool import UsageError

from .transferbench_cases import Bench
from .transferbench_environment import Common, Variables
from .transferbench_notation import DEVICE_LETTERS

CPU_TYPES = {0: "C", 1: "B", 2: "D", 4: "H"}
GPU_TYPES = dict(enumerate(DEVICE_LETTERS))


def blocks(name: str, variables: Variables) -> int | None:
    """The blocks of the preset's kernels; null leaves them to the backend, or copy engines copy."""
    if name == "p2p":
        return (
            None if variables.switch("USE_GPU_DMA") else variables.number("NUM_GPU_SE", 0) or None
        )
    if name == "a2a":
        return None if variables.switch("USE_DMA_EXEC") else variables.number("NUM_SUB_EXEC", 8, 1)
    by_engine = variables.text("SWEEP_EXE", "G").upper() == "D"
    return None if by_engine else variables.number("NUM_GPU_SE", 4, 1)


class Preset:
    """What presets share: a machine, and the variables that all of them have."""

    def __init__(self, bench: Bench, common: Common, variables: Variables, size: int) -> None:
        self.bench = bench
        self.common = common
        self.variables = variables
        self.size = size
        self.gpus = variables.number("NUM_GPU_DEVICES", len(bench.devices))
        if self.gpus > len(bench.devices):
            known = len(bench.devices)
            raise UsageError(f"NUM_GPU_DEVICES={self.gpus}: there are {known} GPUs")
        self.reads = variables.switch("USE_REMOTE_READ")
        self.separator = "," if common.csv else " "

    def letter(self, name: str, known: dict[int, str], default: int = 0) -> str:
        """Of the memory that a variable names by its number. Raises UsageError."""
        number = self.variables.number(name, default)
        if number not in known:
            raise UsageError(f"{name}={number}: give one of {', '.join(map(str, known))}")
        return known[number]

    @property
    def reading(self) -> tuple[str, str]:
        """The value of USE_REMOTE_READ, and what it does."""
        return str(int(self.reads)), f"Using {'DST' if self.reads else 'SRC'} as executor"
