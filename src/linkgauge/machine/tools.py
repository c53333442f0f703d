"""The output of vendors' own tools, as text for people: no reader depends on it."""

from __future__ import annotations

import os
import shutil
import subprocess

import msgspec

FOLDER = "linkgauge/tools"
COMMANDS = (
    ("nvidia-smi", "-q"),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", "nvlink", "-s"),
    ("rocm-smi",),
    ("rocm-smi", "--showtopo"),
    ("rbln-stat",),
    ("xpu-smi", "discovery"),
    ("xpu-smi", "topology", "-m"),
    ("lspci", "-vvv"),
    ("lscpu",),
    ("numactl", "--hardware"),
    ("ibstat",),
    ("uname", "-a"),
    ("dkms", "status"),
    ("ethtool", "--version"),
)
_OF_INTERFACES = ("", "-i", "-l", "-g", "-c", "-a", "-k")
"""What ethtool is asked of each interface: its link, driver and firmware, channels, rings,
coalescing, pause frames and offloads. Not its counters (-S): some adapters have thousands."""
_MOST_INTERFACES = 32
_SECONDS = 20.0


class ToolOutput(msgspec.Struct, frozen=True):
    """A command that was run. `exit` is its code, `problem` why there is none; `file` holds its
    output, `errors` what it wrote to stderr, if anything."""

    command: str
    exit: int | None = None
    problem: str | None = None
    file: str | None = None
    errors: str | None = None


def commands_for(interfaces: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """COMMANDS, and ethtool's about these network interfaces where it is installed."""
    asked = interfaces[:_MOST_INTERFACES] if shutil.which("ethtool") else ()
    about = (
        ("ethtool", *filter(None, (option,)), name) for name in asked for option in _OF_INTERFACES
    )
    return (*COMMANDS, *about)


def ask(
    commands: tuple[tuple[str, ...], ...] = COMMANDS, seconds: float = _SECONDS
) -> tuple[tuple[ToolOutput, ...], dict[str, bytes]]:
    """Runs the commands one after the other, each for at most `seconds`. Returns the result of
    each, and their texts by path. Never raises: a machine lacks most of them."""
    files: dict[str, bytes] = {}
    return tuple(_ask(command, seconds, files) for command in commands), files


def _ask(command: tuple[str, ...], seconds: float, files: dict[str, bytes]) -> ToolOutput:
    out = err = b""
    code, problem = None, None
    try:
        done = subprocess.run(  # noqa: S603 (commands of this file)
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        out, err, code = done.stdout, done.stderr, done.returncode
    except FileNotFoundError:
        problem = "not installed"
    except OSError as error:
        problem = f"cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired as late:
        out, err = late.stdout or b"", late.stderr or b""
        problem = f"still running after {seconds:g} s"
    stem = f"{FOLDER}/{'_'.join(command).replace('/', '_')}"
    names = {f"{stem}.txt": out, f"{stem}.err.txt": err}
    files |= {name: text for name, text in names.items() if text}
    kept = [name if text else None for name, text in names.items()]
    return ToolOutput(" ".join(command), code, problem, *kept)
