"""The ends of runs at several widths, with and without colour, against golden files
(UPDATE_GOLDEN=1 writes them anew)."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from command_kit import called
from linkgauge.engine.runs import read_run
from linkgauge.judge.outcome import outcome_of
from linkgauge.model.notes import NearCache, Remark
from linkgauge.model.ranks import LostRank
from linkgauge.report.formats import TERMINAL, formats
from linkgauge.report.live import Display, summary_lines
from linkgauge.report.outcome_text import results_line
from report.samples import RUN, result
from report.test_output import compare, text_console

WIDTHS = (60, 80, 120, 200)
FOLDER = Path("results/simulated/default/20261121T201500Z")
SIMULATED = {
    "healthy": ("--machine", "dgx-h200-8"),
    "slow-link": ("--machine", "dgx-h200-8", "--fault", "slow sim:3 rate=25%"),
    "degraded": ("--machine", "vm-degraded"),
}
KERNELS = ("read by plain-1-avx2", "write by rep", "copy by nt-1-avx2", "triad by nt-1-avx512")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each kind by its name."""
    found = {}
    for name, options in SIMULATED.items():
        folder = tmp_path_factory.mktemp(name)
        called("run", *options, "--profile", "quick", cwd=folder)
        (path,) = folder.rglob("run.json")
        found[name] = read_run(path)
    found["interrupted"] = replace(found["slow-link"], finished=None)
    lost = LostRank(1, "was ended by SIGKILL", "measuring", "node2", 4242, "cuda:0@1")
    found["lost"] = replace(found["healthy"], lost=lost)
    found["many-notes"] = without_gpu()
    return found


def without_gpu():
    """A run of a machine without a GPU: many notes, wide intervals, most benchmarks skipped."""
    wide = {"stopped": "max-time"}
    results = []
    for number, one in enumerate(RUN.results[:1] * 4):
        notes = (
            Remark("host:0 and opencl:0 share one DRAM"),
            Remark(f"host:0.cpu: {KERNELS[number]}, chosen on this machine"),
            NearCache(2 << 20, 32 << 20, 4),
        )
        cells = [
            replace(cell, notes=notes, summary=replace(cell.summary, ci95=(20e9, 90e9)), **wide)
            for cell in one.cells
        ]
        results.append(replace(one, benchmark=f"memory_stream_{number}", cells=tuple(cells)))
    needs = "needs two devices, opencl has 1 selected"
    pairs = [result(f"device_to_device_{n}", "", "skip", [], reason=needs) for n in range(17)]
    return replace(RUN, results=(*results, *pairs))


@pytest.fixture(scope="module")
def ends(runs):
    """What each comes to."""
    judged = {name: Display(formats()[TERMINAL]).judged(run) for name, run in runs.items()}
    return {name: (run, outcome_of(run)) for name, run in judged.items()}


def ending(end, width, monkeypatch, folder, **colour):
    """The lines of a run that its folder keeps."""
    monkeypatch.chdir(folder)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "journal.jsonl").touch()
    console = text_console(width=width, **colour)
    for line in summary_lines(*end, Display(formats()[TERMINAL]), FOLDER):
        console.print(line)
    console.print(results_line(FOLDER / "run.json"))
    return console.file.getvalue()


NAMES = (*SIMULATED, "interrupted", "lost", "many-notes")


@pytest.mark.parametrize("name", NAMES)
def test_an_end_at_each_width(name, ends, monkeypatch, tmp_path):
    shown = {width: ending(ends[name], width, monkeypatch, tmp_path) for width in WIDTHS}
    text = "".join(f"{f' {width} columns ':-^{width}}\n{end}\n" for width, end in shown.items())
    compare(f"ending-{name}.txt", text)


@pytest.mark.parametrize("name", NAMES)
def test_colours_change_nothing_else(name, ends, monkeypatch, tmp_path):
    colour = {"force_terminal": True, "color_system": "standard"}
    coloured = ending(ends[name], 80, monkeypatch, tmp_path, **colour)
    compare(f"ending-{name}.ansi", coloured)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == ending(ends[name], 80, monkeypatch, tmp_path)


@pytest.mark.parametrize("width", [20, *WIDTHS])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_too_wide_but_for_one_word(name, width, ends, monkeypatch, tmp_path):
    lines = ending(ends[name], width, monkeypatch, tmp_path).splitlines()
    for line in lines[:-1]:
        # A label, a comment's sign and a backslash are no words of their own.
        text = re.sub(r"^[a-z ]+: {2,}|^ *# |^[a-z ]+:  *# | \\$", "", line)
        words = re.sub(r"(\d) ((?:[KMGT]i?)?B\b)", r"\1\2", text).split()
        assert cell_len(line) <= width or len(words) == 1, line
    assert lines[-1] == f"results: {FOLDER}/run.json"


@pytest.mark.parametrize("name", ["slow-link", "degraded"])
def test_the_verdict_at_the_end_has_the_bad_news(name, ends, monkeypatch, tmp_path):
    lines = ending(ends[name], 80, monkeypatch, tmp_path).splitlines()
    last = lines[lines.index("") + 1 :]
    assert len(last) <= 24  # of a small terminal
    assert last[0].startswith("verdict:   fail ")
    assert "fail" in " ".join(last[-3:])


def test_if_nothing_is_wrong_one_line_says_so(ends, monkeypatch, tmp_path):
    lines = ending(ends["healthy"], 120, monkeypatch, tmp_path).splitlines()
    assert lines[lines.index("") + 1] == (
        "verdict:   ok: nothing wrong was found in the 622 of 780 figures that have a reference"
    )
    assert len(lines[lines.index("") + 1 :]) == 3


def test_a_run_that_nothing_keeps_shows_its_remedies_in_full(runs):
    display = Display(formats()[TERMINAL])
    run = display.judged(runs["degraded"])
    console = text_console(width=80)
    for line in summary_lines(run, outcome_of(run), display):
        console.print(line)
    text = console.file.getvalue()
    assert "#     [Unit]" in text
    assert "next:" not in text


def test_every_note_is_shown_to_who_asks(runs):
    display = Display(formats()[TERMINAL], verbose=True)
    run = runs["many-notes"]
    console = text_console(width=1000)
    for line in summary_lines(run, outcome_of(run), display, FOLDER):
        console.print(line)
    for kernel in KERNELS:
        assert kernel in console.file.getvalue()
