"""What measures copies by UCX between two processes of this machine: linkgauge, ucx_perftest, and a
plain program in C (ucx_references.c). All use the same library, of the wheel libucx if it is there.
Each gives bytes/s, and raises Failed with what it printed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

SOURCE = Path(__file__).with_name("ucx_references.c")
TIMEOUT = 60.0
"""Seconds after which a program hangs."""
WINDOW = "128"
"""Copies under way at once, as linkgauge has it."""
_MOST_SAID = 3000
_WARM_UPS = "5"


class Failed(Exception):
    """A program ended in another way than well."""


def libucx() -> Path | None:
    """The folder of the wheel's library and programs."""
    spec = importlib.util.find_spec("libucx")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def perftest() -> str | None:
    """The wheel's, of the same library; else the system's."""
    folder = libucx()
    found = folder / "bin" / "ucx_perftest" if folder else None
    if found is not None and os.access(found, os.X_OK):
        return str(found)
    return shutil.which("ucx_perftest")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as asked:
        return int(asked.getsockname()[1])


def together(
    commands: Sequence[Sequence[str]],
    environments: Sequence[Mapping[str, str]],
    timeout: float = TIMEOUT,
    *,
    apart: float = 0.0,
) -> list[str]:
    """Runs them at the same time, each a moment `apart`; what they print. Raises Failed if one of
    them fails, or runs too long."""
    deadline = time.monotonic() + timeout
    running: list[subprocess.Popen[str]] = []
    with ThreadPoolExecutor(len(commands)) as reading:
        said = []
        for command, more in zip(commands, environments, strict=True):
            one = subprocess.Popen(command, env={**os.environ, **more}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
            running.append(one)
            said.append(reading.submit(one.communicate))
            time.sleep(apart)
        late = bool(wait(said, max(0.1, deadline - time.monotonic())).not_done)
        for one in running:
            one.kill()
    codes = [one.returncode for one in running]
    if late or any(codes):
        why = f"still ran after {timeout:.0f} s" if late else f"exit codes {codes}"
        printed = [text.strip()[-_MOST_SAID:] for one in said for text in one.result()]
        raise Failed("\n".join([" ".join(commands[0]), why, *filter(None, printed)]))
    return [one.result()[0] for one in said]


def linkgauge(
    transfers: str,
    size: int,
    loops: int,
    seconds: float = 2.0,
    environment: Mapping[str, str] = {},
    timeout: float = TIMEOUT,
) -> float:
    """A copy between two ranks, of which every byte is verified: the median of the samples."""
    command = [sys.executable, "-m", "linkgauge", "copy", transfers, "--size", str(size),
               "--loops", str(loops), "--max-time", str(seconds), "--json"]  # fmt: skip
    said = ranks(command, environment, timeout)
    (cell,) = json.loads(said)["results"][0]["cells"]
    if not cell["verified"]:
        raise Failed(f"{transfers}: not verified: {cell}")
    return float(cell["summary"]["median"])


def ranks(
    command: Sequence[str], environment: Mapping[str, str] = {}, timeout: float = TIMEOUT
) -> str:
    """What rank 0 of two prints."""
    launch = {
        **environment, "LINKGAUGE_RANKS": "2", "LINKGAUGE_TOKEN": "bench-only",
        "LINKGAUGE_FIRST": f"127.0.0.1:{free_port()}", "LINKGAUGE_HISTORY": "none",
        "LINKGAUGE_NO_REPORT": "1",
    }  # fmt: skip
    of_ranks = [{**launch, "LINKGAUGE_RANK": str(rank)} for rank in (0, 1)]
    return together([command, command], of_ranks, timeout)[0]


def ucx_perftest(
    size: int,
    environment: Mapping[str, str] = {},
    test: str = "ucp_put_bw",
    memory: str = "host",
    moved: int = 2 << 30,
    timeout: float = TIMEOUT,
) -> float:
    """Its mean over so many bytes. What it keeps in memory of GPUs is of the server's first one and
    of the client's second: the latter moves."""
    tool = perftest()
    if tool is None:
        raise Failed("ucx_perftest is missing (Debian: ucx-utils)")
    loops = str(max(20, moved // size))
    common = [tool, "-t", test, "-s", str(size), "-n", loops, "-w", _WARM_UPS, "-O", WINDOW,
              "-m", memory, "-f"]  # fmt: skip
    folder = libucx()
    libraries = {"LD_LIBRARY_PATH": str(folder / "lib")} if folder and "libucx" in tool else {}
    variables = {**environment, **libraries}
    port = str(free_port())
    server, client = [*common, "-p", port], [*common[:1], "127.0.0.1", *common[1:], "-p", port]
    said = together([server, client], [variables, variables], timeout, apart=1.0)[1]
    # The last row: iterations, three times of one in us, two rates in MB/s (of 2^20 bytes).
    rows = [line.split() for line in said.splitlines() if line.split()[:1] == [loops]]
    if not rows:
        raise Failed(f"{' '.join(client)}: no result in: {said[-_MOST_SAID:]}")
    return float(rows[-1][5]) * (1 << 20)


def plain(
    program: Path,
    memory: str,
    size: int,
    loops: int,
    seconds: float = 2.0,
    environment: Mapping[str, str] = {},
    direction: str = "put",
    timeout: float = TIMEOUT,
) -> float:
    """The plain program's median, every byte checked."""
    command = [str(program), memory, str(size), str(loops), str(seconds), direction]
    return float(together([command], [environment], timeout)[0])


def compiled(folder: Path) -> Path:
    """The plain program, with the wheel's headers and library, or the system's (Debian:
    libucx-dev). Raises Failed."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise Failed("gcc is missing")
    wheel, program = libucx(), folder / "ucx_references"
    where = ["-lucp", "-lucs"]
    if wheel is not None:
        lib = wheel / "lib"
        where = ["-isystem", str(wheel / "include"), f"-L{lib}", "-l:libucp.so.0",
                 "-l:libucs.so.0", f"-Wl,-rpath,{lib}", f"-Wl,-rpath-link,{lib}"]  # fmt: skip
    together([[compiler, "-O2", str(SOURCE), "-o", str(program), *where, "-ldl"]], [{}])
    return program
