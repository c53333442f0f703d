"""`linkgauge as`: a tool's own arguments reach it, and it measures where it is told to."""

import re
from pathlib import Path

import pytest

from command_kit import called
from compat_kit import ONE, MadeUp, as_rank, of_processes, rated, spoken
from linkgauge.uses import measuring


def test_machine_and_backend_may_stand_in_the_environment(tmp_path, monkeypatch):
    """And nothing is kept."""
    monkeypatch.chdir(tmp_path)
    words = "as", "nvbandwidth", "-t", "0", "-b", "1", "-i", "1"
    done = called(*words, LINKGAUGE_MACHINE="ppu-8")
    assert done.returncode == 0
    assert "Running host_to_device_memcpy_ce." in done.stdout
    assert ("SIMULATED ppu-8" in done.stderr, "SIMULATED" in done.stdout) == (True, False)
    assert list(tmp_path.iterdir()) == []
    refused = called(*words, LINKGAUGE_BACKEND="rocm")
    assert (refused.returncode, "unknown backend 'rocm'" in refused.stderr) == (2, True)
    both = called(*words, LINKGAUGE_BACKEND="cuda", LINKGAUGE_MACHINE="ppu-8")
    assert "backend 'cuda': a simulated machine has host, sim" in both.stderr


@pytest.mark.parametrize(("rank", "several"), [(0, True), (1, True), (0, False)])
def test_of_the_processes_that_mpirun_started_all_measure_and_one_prints(
    monkeypatch, rank, several
):
    """A session is of all where benchmarks between processes are meant."""
    asked = []
    as_rank(monkeypatch, rank, 2 if several else 1)
    MadeUp(rated()).install(monkeypatch, of_processes(2 if several else 1))
    opened = measuring.opened_by_launch
    monkeypatch.setattr(measuring, "opened_by_launch", lambda r: asked.append(r) or opened(r))
    done = spoken("nvbandwidth", "-t 0" if not several else "-t 47", on=None)
    assert bool(done.stdout) == (rank == 0)
    assert asked[0].what.is_across_ranks is several


def test_cells_are_numbered_through():
    """A fault strikes the cell of its number of all that a tool measures, and once."""
    for number, left in enumerate(("D2H", "H2D")):
        fault = f"flip sim:0 cells={number}"
        done = spoken("bandwidth_test", "--size 1M --iter 1", on=ONE, faults=[fault])
        assert done.returncode == 1
        assert done.stderr.count("is wrong at byte") == 1
        assert left in done.stdout


PAGES = sorted((Path(__file__).parents[2] / "docs").glob("as-*.md"))
SECTIONS = [text for page in PAGES for text in re.split(r"(?m)^## ", page.read_text())]
OPTION = re.compile(r"\s*\[?(--?[A-Za-z][\w-]*)(?:[, \[]+(--[\w-]+))?")


@pytest.mark.parametrize(
    "tool",
    "nvbandwidth sailbandwidth rblnBandwidthLatencyTest bandwidthTest p2pBandwidthLatencyTest"
    " gc-hosttraffictest all_reduce_perf".split(),
)
def test_the_page_has_every_option_of_the_help(tool):
    """Its short or its long name; `--tile…` stands for all names that begin so. sailbandwidth has
    nvbandwidth's options, too."""
    names = (tool, "nvbandwidth") if tool == "sailbandwidth" else (tool,)
    page = "--help\n" + "".join(text for text in SECTIONS if text.startswith(names))
    known = re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*…?", page)
    begins = tuple(name.rstrip("…") for name in known if name.endswith("…"))
    options = [found for line in spoken(tool, "-h", on=None).stdout.splitlines()
               if (found := OPTION.match(line))]  # fmt: skip
    missing = [
        found[0].strip()
        for found in options
        if not {found[1], found[2]} & {*known, "-h"}
        and not (found[2] or found[1]).startswith(begins)
    ]
    assert len(options) > 3
    assert missing == []
