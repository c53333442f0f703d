"""The command lines of the pages run: on a simulated machine where they measure, and beside kept
runs with the names that the pages use where they read. `UNTRIED` says what needs more than that."""

import re
import shutil
from pathlib import Path

import pytest

from command_kit import called
from docs_kit import PAGES, ROOT, in_blocks, words
from linkgauge.backends.sim.description import shipped
from worker_threads import worker_threads

MACHINE = "dgx-h200-8"
MEASURING = {
    "run": ("--dry-run",),
    "copy": ("--samples", "1", "--size", "1M"),
    "latency": ("--size", "64", "--iterations", "10"),
    "scale": ("--size", "64K", "--samples", "1"),
    "check": (),
}
"""The commands that measure, with options that shorten them."""
READING = (
    "baseline", "compare", "devices", "doctor", "export", "gate", "list", "pack", "report", "share",
    "show",
)  # fmt: skip
UNTRIED = {
    r"@|multinode|--backend mpi|nic_|rdma_|nodes_|\btorch\b": "several processes, other packages",
    r"--n(sys|cu)\b|--resume|--root|node\d\.tar|hosts?\.log": "profilers, files of other machines",
    r"\$[A-Z_]+|plugins|host_exchange|mine\.yml|topo\.txt": "a CI system, a plug-in, own texts",
    r"--numa-node|latency_doorbell|--tune|--github|/var/|--pdf": "this machine, other systems",
    r"--hwloc": "a run of host memory by node, as tests/report/test_hwloc.py has one",
}
"""What a command line needs that is not here, by pattern."""
FOLDER = re.compile(r"results/[\w.-]+(?:/[\w.-]+)*")
LABELS = (
    "before",
    "after",
    "default",
    "pinned",
    "host",
    "before-pinning",
    "nightly",
    "bad",
    "latency",
)


def lines():
    for page in PAGES:
        for line in dict.fromkeys(in_blocks(page.read_text("utf-8"))):
            typed = words(line)
            if {*shipped()} & {*typed} or any(re.search(one, line) for one in UNTRIED):
                continue
            if typed[0] in MEASURING or typed[0] in READING:
                yield pytest.param(typed, id=f"{page.stem}: {line}")


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder with runs below results/ as the pages name them, and with the files that they
    name."""
    root = tmp_path_factory.mktemp("pages")
    few = ("host_to_device_memcpy_ce", "--profile", "quick", "--no-report")
    made = called("run", *few, "--machine", MACHINE, cwd=root)
    own = called("run", "cpu_primes_single", "--backend", "host", "--samples", "1", cwd=root)
    assert (made.returncode, own.returncode) == (0, 0), made.stderr + own.stderr
    (simulated,) = (root / "results").glob("simulated-*/default/*")
    named = {one for page in PAGES for one in FOLDER.findall(page.read_text("utf-8"))}
    for number, place in enumerate(
        sorted({*named, *(f"results/nvidia-h200/{one}" for one in LABELS)})
    ):
        parts = Path(place).parts
        own_id = parts[3] if len(parts) == 4 else f"20261101T0000{number:02}Z"
        if len(parts) in (3, 4) and own_id.startswith("2026"):
            folder = root.joinpath(*parts[:3], own_id)
            shutil.copytree(simulated, folder)
            text = (simulated / "run.json").read_text()
            text = re.sub(r'"label": ?"default"', f'"label": "{parts[2]}"', text)
            (folder / "run.json").write_text(text.replace(simulated.name, own_id))
    (root / "ci/baselines").mkdir(parents=True)
    waivers = (ROOT / "docs/waivers.md").read_text().partition("```yaml\n")[2].partition("```")[0]
    (root / "waivers.yml").write_text(waivers)
    (root / "limits.yml").write_text('limits:\n  - {limit: "median >= 1 GB/s"}\n')
    called("check", "--machine", MACHINE, "--out", "results", "--label", "good", cwd=root)
    for label, file in (("before", "baseline.json"), ("good", "good.json")):
        called("baseline", label, "-o", file, cwd=root)
    return root


@pytest.mark.parametrize("typed", [*lines()])
def test_a_command_line_of_a_page_runs(typed, kept, tmp_path):
    """Nothing is refused, nothing is an error; 1 is what is found."""
    name, *arguments = typed
    arguments = [re.sub(r"\b(cuda|opencl):", "sim:", word) for word in arguments]
    if name in MEASURING and "--backend" in arguments:
        at = arguments.index("--backend")
        del arguments[at : at + 2]
    if name in MEASURING and "--list-faults" not in arguments:
        shortened = MEASURING[name]
        have = {word for word in arguments if word.startswith("--")}
        pairs = [shortened[at : at + 2] for at in range(0, len(shortened), 2)]
        arguments += [word for pair in pairs if pair[0] not in have for word in pair]
        if "--machine" in arguments:
            at = arguments.index("--machine")
            del arguments[at : at + 2]
        arguments += ["--machine", MACHINE]
    here = shutil.copytree(kept, tmp_path / "here", symlinks=True)
    arguments = [
        str(next(here.glob(word)).relative_to(here)) if "/*" in word else word for word in arguments
    ]
    with worker_threads():
        done = called(name, *arguments, cwd=here, LINKGAUGE_HISTORY=tmp_path / "history.db")
    assert done.returncode in (0, 1), f"{done.stderr}\n{' '.join([name, *arguments])}"
