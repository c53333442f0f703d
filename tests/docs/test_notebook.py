"""notebooks/ and docs/notebook.md: the notebooks run and show what their text says, the page's
picture is what one draws, and nothing but their source is kept."""

import ast
import re
import runpy
import subprocess
import sys
import warnings
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import pytest

from command_kit import called
from worker_threads import worker_threads

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("altair")  # as pandas and vl-convert, not on RISC-V

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "analysis.ipynb"
PICTURE = ROOT / "docs" / "images" / "notebook-latency.svg"
CHARTS = {"latency", "concurrency", "scaling", "comparison-chart"}


def command(words, **how):
    """In place of `subprocess.run`: a process takes longer than most commands."""
    program = [sys.executable, "-m", "linkgauge"]
    assert words[:3] == program
    return called(*words[3:])


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What each cell shows, by its id, and with which kind of file."""
    tool = runpy.run_path(str(ROOT / "tools" / "notebook"))
    with (
        chdir(tmp_path_factory.mktemp("shown")),
        warnings.catch_warnings(),
        worker_threads(),
        patch.object(subprocess, "run", command),
    ):
        warnings.simplefilter("error")
        return dict(tool["files"](NOTEBOOK))


def numbers(line):
    return [float(word) for word in re.findall(r"\d+\.\d+", line)]


@pytest.mark.parametrize("path", sorted(NOTEBOOK.parent.glob("*.ipynb")), ids=lambda p: p.stem)
def test_is_a_valid_notebook_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.id for cell in code if cell.outputs or cell.execution_count is not None] == []
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_fifteen_lines_run_plot_compare_and_gate(tmp_path, monkeypatch):
    """A kernel of Jupyter carries them out, and what it shows is a notebook with outputs."""
    client = pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOK.parent / "gate.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(map(bool, "\n".join(cell.source for cell in code).split("\n"))) == 15
    own = tmp_path / "own"
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(own))
    work = tmp_path / "work"
    work.mkdir()
    client.execute(notebook, cwd=work, timeout=300, kernel_name="python3")
    nbformat.validate(notebook)
    progress, *_ = (one.text for one in code[0].outputs if one.output_type == "stream")
    assert "1 of 100: host_to_device_memcpy_ce host:0 -> sim:0" in progress
    shown = {cell.id: cell.outputs[-1].data for cell in code}
    line = shown["run"]["text/plain"]
    assert "\n" not in line
    assert line.endswith(": numbers 9-17>"), line
    page = shown["run"]["text/html"]
    assert "fabric-links" in page
    assert "device_to_device_memcpy_read_ce".replace("_", "_&lt;wbr&gt;") in page
    assert "SIMULATED</text>" in shown["plot"]["image/svg+xml"]
    worse = ast.literal_eval(shown["compare"]["text/plain"])
    assert len(worse) == 14, "all to and from GPU 2"
    assert all("2" in name.partition("[")[2] for name in worse)
    assert shown["gate"]["text/plain"] == "1"
    assert list(work.iterdir()) == []


def test_shows_charts_as_pictures_that_say_that_they_are_simulated(shown):
    pictures = {name.removesuffix(".svg") for name in shown if name.endswith(".svg")}
    assert pictures == CHARTS
    for name in pictures:
        drawn = shown[f"{name}.svg"]
        assert drawn.startswith("<svg ")
        assert "SIMULATED</text>" in drawn
        assert set(re.findall(r"https?://[^\"' )]+", drawn)) == {"http://www.w3.org/2000/svg"}


def test_the_slow_link_is_the_only_proven_change(shown):
    kinds, _, *lines = [line.split() for line in shown["comparison.txt"].splitlines()]
    assert kinds == ["kind", "noise", "worse"]
    assert [line[1:] for line in lines] == [["4", "0"], ["42", "14"]]
    assert shown["findings.txt"].splitlines()[1].split()[:3] == ["0", "fail", "sim:2-nvswitch"]


def test_the_picture_of_the_page_is_what_the_notebook_draws(shown):
    assert PICTURE.read_text("utf-8") == shown["latency.svg"], "make screens draws it anew"


def test_the_example_of_the_page_draws_a_chart():
    page = (ROOT / "docs" / "notebook.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    before, call, last = example.rpartition("charts.titled")
    names = {}
    with worker_threads():
        exec(f"{before}made = {call}{last}", names)
    drawn = names["made"]._repr_mimebundle_()["image/svg+xml"]
    assert drawn.startswith("<svg ")
    assert "64 MiB</text>" in drawn
