"""Real launches: several processes of linkgauge under mpiexec, some of which come to harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from linkgauge.engine.kept.journal import JOURNAL_FILE, read_records
from linkgauge.engine.kept.runs import read_run

HERE = Path(sys.executable).parent
BELOW = Path(__file__).parents[1] / ".venv" / "bin"
"""Of the environment that .venv-ai lies upon."""
SECONDS = 240
"""A launch that takes longer hangs."""
_LAUNCHERS = ("PMI", "OMPI", "PMIX", "SLURM", "HYDI", "MPI_LOCAL", "LINKGAUGE_RANK")

HARMED = """
import os, signal, sys
from importlib import import_module
from linkgauge.__main__ import main
import linkgauge

how, at, count = {how!r}, {at!r}, {count}
names = "LINKGAUGE_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"
mine = {rank} == next((int(os.environ[name]) for name in names if name in os.environ), -1)
seen = []

def harmed(self, *given, **more):
    seen.append(given)
    if len(seen) == count:
        if how == "raise":
            raise RuntimeError("out of order")
        if how == "SIGSTOP":  # until all others have ended
            others = " && ".join(f"[ -e exit-{{n}} ]" for n in {others})
            until = f"until {{others}}; do sleep 0.1; done; kill -9 {{os.getpid()}}"
            os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", until)
            open("stopped", "w").close()
        os.kill(os.getpid(), getattr(signal, how))
    return own(self, *given, **more)

if mine and at == "start":
    os.kill(os.getpid(), getattr(signal, how))
if mine and at == "version":
    linkgauge.__version__ = "0.0.1"
    import linkgauge.engine.ranks.gathering as gathering
    gathering.__version__ = "0.0.1"
elif mine and at != "start":
    module, kind, name = at.split(".")
    owner = getattr(import_module("linkgauge.engine.ranks." + module), kind)
    own = getattr(owner, name)
    setattr(owner, name, harmed)
sys.argv[0] = "linkgauge"
main()
"""
"""A linkgauge whose rank does something to itself as it comes to do something."""
CALLS = {
    "Open": "member_loop.Agent.open",
    "Prepare": "spanning.SpanningBackend.prepare",
    "Begin": "spanning_group.SpanningGroup.wait",
    "Mismatch": "spanning.SpanningBackend.first_mismatch",
}


def mpich() -> list[str]:
    """Skips where the wheel has no build for this machine."""
    for folder in (HERE, BELOW):
        if (found := folder / "mpiexec.hydra").exists():
            return [str(found)]
    pytest.skip("no mpich in this environment")


def openmpi() -> list[str]:
    """Debian's. Skips where it is not installed."""
    found = shutil.which("mpirun.openmpi")
    if found is None:
        if "openmpi" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail("openmpi-bin is not installed")
        pytest.skip("Open MPI is not installed (Debian: openmpi-bin)")
    return [found, "--allow-run-as-root", "--oversubscribe"]


def by_variables() -> list[str]:
    """A launcher without MPI, which sets linkgauge's own variables."""
    return [sys.executable, str(Path(__file__).with_name("variables_launcher.py"))]


class Ended:
    """A launch that has ended, and the run that it kept, if any."""

    def __init__(self, code: int, stdout: str, stderr: str, out: Path) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.journals = sorted(out.rglob(JOURNAL_FILE))
        self.exits = {
            int(file.name.removeprefix("exit-")): int(text)
            for file in out.parent.glob("exit-*")
            if (text := file.read_text())  # empty if the launcher killed what writes it
        }

    @property
    def run(self):
        (journal,) = self.journals
        read_records(journal.read_bytes())
        return read_run(journal.parent)


def environment(**changed: str) -> dict[str, str]:
    """Without what a launcher around the tests may have set."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS)}
    return {**clean, "NO_COLOR": "1", **changed}


def launch(
    folder: Path,
    ranks: int,
    *arguments: str,
    launcher: list[str] | None = None,
    program: str | None = None,
    prefix: str = "",
    seconds: float = SECONDS,
    **variables: str,
) -> Ended:
    """`linkgauge ARGUMENTS` by so many ranks; `program` is Python to run in its place, and `prefix`
    comes before it in each rank's shell."""
    out = folder / "out"
    out.mkdir(parents=True, exist_ok=True)
    code = folder / "program.py"
    code.write_text(program or "from linkgauge.__main__ import main\nmain()\n")
    given = [*arguments, "--out", str(out)] if arguments[0] == "run" else [*arguments]
    number = "${LINKGAUGE_RANK:-${PMI_RANK:-$OMPI_COMM_WORLD_RANK}}"
    words = " ".join(f"'{word}'" for word in (sys.executable, str(code), *given))
    # The shell outlives the rank, and Hydra's word of another rank's end, to say how it ended.
    ends = f"code=$?; echo $code > {folder}/exit-{number}; exit $code"
    shell = f"trap '' USR1; {prefix}{words}; {ends}"
    started = subprocess.Popen(
        [*(launcher or mpich()), "-n", str(ranks), "sh", "-c", shell],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment(**variables),
        start_new_session=True,
        cwd=folder,
    )
    try:
        stdout, stderr = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, 9)
        subprocess.run(["pkill", "-9", "-f", str(code)], check=False)
        stdout, stderr = started.communicate()
        pytest.fail(f"the launch hangs: {stdout}{stderr}")
    return Ended(started.returncode, stdout, stderr, out)


def harmed(rank: int, how: str, at: str, count: int = 1, ranks: int = 3) -> str:
    """A program of which this rank (of so many) is sent a signal, or raises, at the `count`th call
    of a method (or of one in CALLS); or at its start; or it has another version."""
    others = [other for other in range(ranks) if other != rank]
    return HARMED.format(rank=rank, how=how, at=CALLS.get(at, at), count=count, others=others)
