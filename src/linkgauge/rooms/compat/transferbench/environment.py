"""Reads the environment variables of TransferBench that have an effect in linkgauge."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence

import msgspec

from linkgauge.cli.tool_options import UsageError, whole
from linkgauge.model.settings import EngineSettings, Settings

from .cases import POWERS

TOOL = "TransferBench"
VARIABLES = {
    "FILL_PATTERN": "Hexadecimal digits of what sources hold: 1, 2, 4 or 8 bytes",
    "GFX_BLOCK_SIZE": "Threads of a kernel's block (cuda)",
    "HIDE_ENV": "Do not list these",
    "NUM_ITERATIONS": "Iterations; if negative, seconds",
    "NUM_SUBITERATIONS": "Copies of one iteration",
    "OUTPUT_TO_CSV": "Print CSV",
    "SAMPLING_FACTOR": "Sizes between two powers of 2, where the size is 0",
    "SHOW_BORDERS": "Draw the borders of tables",
    "SHOW_ITERATIONS": "Show each iteration",
}
"""The variables that have a meaning for each test."""
_WITHOUT_MEANING = (
    "ALWAYS_VALIDATE", "BLOCK_BYTES", "BYTE_OFFSET", "CU_MASK", "FILL_COMPRESS", "GFX_BLOCK_ORDER",
    "GFX_KERNEL", "GFX_SE_TYPE", "GFX_SINGLE_TEAM", "GFX_TEMPORAL", "GFX_UNROLL", "GFX_WAVE_ORDER",
    "GFX_WORD_SIZE", "MAX_VAR_SUBEXEC", "MIN_VAR_SUBEXEC", "NUM_WARMUPS",
    "USE_FINE_GRAIN", "USE_HIP_EVENTS", "USE_HSA_DMA", "USE_INTERACTIVE", "USE_SINGLE_STREAM",
    "VALIDATE_DIRECT", "VALIDATE_SOURCE",
    "XCC_PREF_TABLE",
)  # fmt: skip


class Variables:
    """Reads environment variables as the tool does, including those of presets. `listed` has the
    variables that the tool lists, each with its value and its effect."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.listed: dict[str, tuple[str, str]] = {}

    def number(
        self,
        name: str,
        default: int,
        least: int | None = 0,
        most: int = 1 << 31,
        says: str | Sequence[str] = "",
    ) -> int:
        """Reads a number; a suffix K, M or G multiplies it by a power of 1024. `says` describes the
        value in the list of variables, by one text for all values or one for each. Raises
        UsageError if the text is no number, or if the number is out of bounds."""
        written = self._environment.get(name, "")
        power = POWERS.get(written[-1:].upper(), 0)
        try:
            value = whole(written[:-1] if power else written) << power if written else default
        except ValueError:
            raise UsageError(f"{name}={written}: give a number") from None
        if written and ((least is not None and value < least) or value > most):
            bounds = f"{least} to {most}" if most < 1 << 31 else f"{least} or more"
            raise UsageError(f"{name}={written}: give {bounds}")
        self._list(name, value, says)
        return value

    def switch(self, name: str, default: bool = False, says: str | Sequence[str] = "") -> bool:
        value = bool(self.number(name, int(default), None))
        self._list(name, value, says)
        return value

    def _list(self, name: str, value: int, says: str | Sequence[str]) -> None:
        if says:
            text = says if isinstance(says, str) else says[value]
            self.listed[name] = str(int(value)), text.format(value)

    def text(self, name: str, default: str) -> str:
        return self._environment.get(name) or default

    def tell_ignored(self) -> None:
        """Prints on stderr which variables have no effect in linkgauge although they are set."""
        for name in _WITHOUT_MEANING:
            if self._environment.get(name):
                print(f"{TOOL}: {name} has no meaning here: ignored", file=sys.stderr)


class Common(msgspec.Struct, frozen=True):
    """The variables that apply to all tests. Negative `iterations` are seconds. `pattern` is the
    64-bit word with which sources are filled, or None. `threads` is the number of threads in a
    kernel's block."""

    iterations: int
    loops: int
    pattern: int | None
    threads: int
    hide: bool
    csv: bool
    factor: int
    borders: bool
    each: bool
    listed: Mapping[str, tuple[str, str]]

    @classmethod
    def read(cls, variables: Variables) -> Common:
        """Reads the variables that apply to all tests. Raises UsageError for invalid values."""
        iterations = variables.number("NUM_ITERATIONS", 10, -86_400, 1_000_000)
        if not iterations:
            raise UsageError("NUM_ITERATIONS=0 would run without end: give a number")
        threads = variables.number("GFX_BLOCK_SIZE", 256, 64, 1024, "Threadblock size of {}")
        if threads % 64:
            raise UsageError(f"GFX_BLOCK_SIZE={threads}: give a multiple of 64")
        loops = variables.number("NUM_SUBITERATIONS", 1, 1, 1_000_000, "Running {} subiterations")
        pattern = _pattern(variables.text("FILL_PATTERN", ""))
        own = "every 8-byte word differs" if pattern is None else f"{pattern:#018x}"
        timed = f"{abs(iterations)} {'timed iteration(s)' if iterations > 0 else 's'}"
        variables.listed |= {
            "ALWAYS_VALIDATE": ("0", "Validating after all iterations"),
            "FILL_PATTERN": (str(int(pattern is not None)), own),
            "NUM_ITERATIONS": (str(iterations), f"Running {timed} per Test"),
        }
        return cls(
            iterations,
            loops,
            pattern,
            threads,
            variables.switch("HIDE_ENV"),
            variables.switch("OUTPUT_TO_CSV"),
            variables.number("SAMPLING_FACTOR", 1, 1, 1 << 10),
            variables.switch("SHOW_BORDERS", True, "Borders of tables"),
            variables.switch("SHOW_ITERATIONS", False, "Per-iteration timing"),
            variables.listed,
        )

    def settings(self, blocks: int | None, size: int) -> Settings:
        """Returns the settings for kernels with this many blocks. None lets the backend choose the
        number."""
        seconds = -self.iterations if self.iterations < 0 else None
        return Settings(
            sizes=(size,),
            samples=None if seconds else self.iterations,
            loops=self.loops,
            precision=0.0 if seconds else 0.01,
            max_time=float(seconds or 2),
            pattern=self.pattern,
            engines=EngineSettings(
                kernel=None if blocks is None else "plain",
                blocks=blocks,
                threads=None if blocks is None else self.threads,
                streams=1,
                tuned=blocks is None,
            ),
        )


def _pattern(written: str) -> int | None:
    """Returns the 64-bit word that repeats these hexadecimal digits, or None without digits. The
    last two digits are the first byte in memory."""
    if not written:
        return None
    if not re.fullmatch("[0-9a-fA-F]+", written) or len(written) not in (2, 4, 8, 16):
        raise UsageError(f"FILL_PATTERN={written}: give 2, 4, 8 or 16 hexadecimal digits")
    return int(written * (16 // len(written)), 16)
