"""Help texts as people see them: grouped, no wider than the terminal, with examples that work."""

import inspect
import re
import shlex
import subprocess
import sys
from itertools import pairwise, takewhile

import pytest
from msgspec.structs import replace

from configurations_kit import THREE, here
from linkgauge.backends.sim.description import shipped
from linkgauge.backends.sim.faults import FAULTS
from linkgauge.cli.help_text import HEADINGS, OTHER, examples_of
from linkgauge.cli.main import COMMANDS, app, command
from linkgauge.cli.options import OPTIONS
from linkgauge.compat import TOOLS
from linkgauge.judge.baseline import baseline_of
from linkgauge.judge.run_figures import figures_of
from linkgauge.report.files import write_document, write_run
from report.test_output import compare
from vm_kit import domain

WIDTHS = (60, 80, 120, 200)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
EVERY = ("", *COMMANDS)
SIMULATED = "full-8"
SMALL = "riscv-2gpu"
"""For what measures in rounds, or each pair at many sizes."""
MANY = ("vary", "latency", "traffic")
NVIDIA = tuple(("nvidia-h200", run) for run in THREE)


@pytest.fixture
def shown(monkeypatch, capsys):
    """The help of a command at a width."""

    def show(name, width=80, **environment):
        monkeypatch.setenv("COLUMNS", str(width))
        for variable in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(variable, raising=False)
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        app([*name.split(), "--help"], standalone_mode=False, prog_name="linkgauge")
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["", "run", "doctor"])
def test_help_as_it_was_looked_at(name, width, shown):
    compare(f"help/{name or 'linkgauge'}-{width}.txt", shown(name, width))


@pytest.mark.parametrize("name", EVERY)
def test_colour_adds_no_more_than_colour(name, shown):
    plain, coloured = shown(name), shown(name, FORCE_COLOR="1")
    assert COLOUR.search(coloured)
    assert COLOUR.sub("", coloured) == plain
    assert shown(name, FORCE_COLOR="1", NO_COLOR="1") == plain


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EVERY)
def test_no_line_is_too_long_or_ends_in_blanks(name, width, shown):
    for line in shown(name, width).splitlines():
        assert len(line) <= width, line
        assert line == line.rstrip()
        assert "\N{NO-BREAK SPACE}" not in line


@pytest.mark.parametrize("name", EVERY)
def test_no_word_and_no_figure_is_broken(name, shown):
    """At any width the words are those of a wide page."""
    words = shown(name, 200).split()
    assert shown(name, 60).split() == words
    for number, unit in pairwise(words):
        if re.fullmatch(r"(\(|.)?\d+", number) and re.match(r"([KMG]i)?B\b|m?s\b", unit):
            assert f"{number} {unit}" in shown(name, 60)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_one_line_of_the_overview(name, shown):
    summary = inspect.getdoc(command(name)[0]).partition("\n\n")[0]
    (line,) = (one for one in shown("").splitlines() if one.startswith(f"  {name} "))
    assert line.split(maxsplit=1)[1] == summary
    assert summary.endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_end_the_help_each_on_a_line_of_its_own(name, shown):
    examples = examples_of(command(name)[0])
    assert 2 <= len(examples) <= 3
    for width in WIDTHS:
        lines = shown(name, width).splitlines()
        assert lines[-len(examples) - 1 :] == ["Examples:", *(f"  {one}" for one in examples)]


def test_options_stand_under_their_headings(shown):
    text = shown("run")
    headings = [line[:-1] for line in text.splitlines() if re.fullmatch(r"[A-Z].*:", line)]
    own = [name for name in HEADINGS if name not in ("Settings to compare", "Which runs", "When")]
    assert headings == ["Arguments", *own, "Examples"]
    *_, last = (part for part in text.split("\n\n") if part.startswith(f"{OTHER}:"))
    assert re.findall(r"^  (-.*?)  ", last, re.MULTILINE) == ["-h, --help"]


def test_every_shared_option_has_a_heading():
    assert {option.heading for option in OPTIONS.values()} <= set(HEADINGS) - {OTHER}


@pytest.mark.parametrize("name", EVERY)
def test_sentences_are_whole(name, shown):
    """A capital at the beginning, a full stop at the end, nothing cut off."""
    function = command(name)[0] if name else None
    texts = [option.help for option in getattr(function, "own", OPTIONS).values()]
    assert all(re.match(r"[A-Z]", text) and text.endswith((".", "…")) for text in texts), texts
    assert not re.search(r"[a-z]\.\.\.", shown(name))


def test_the_help_of_as_names_every_tool(shown):
    assert set(TOOLS) <= set(re.findall(r"[\w-]+", shown("as")))


def test_help_loads_neither_rich_nor_numpy():
    for arguments in ("--help", "run --help"):
        code = (
            f"import sys; sys.argv = ['linkgauge', *{arguments.split()!r}]\n"
            "from linkgauge.cli.main import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            "heavy = {'rich', 'numpy', 'scipy', 'msgspec', 'sqlalchemy', 'typer.rich_utils'}\n"
            "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stderr.strip() == "[]", arguments


def lines_of(name):
    """What a shell would run, without what it would write the output to."""
    return [line.partition(" > ")[0] for line in examples_of(command(name)[0])]


CASES = [(name, line) for name in COMMANDS for line in lines_of(name)]


@pytest.mark.parametrize(("name", "line"), CASES)
def test_each_example_works(name, line, tmp_path, monkeypatch):
    """On a simulated machine, with its devices in place of CUDA's, and few samples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    tool, *words = shlex.split(line)
    if tool != "linkgauge":
        assert tool == "virsh"
        return
    assert words[0] == name
    _leave_files(tmp_path)
    if name == "history":
        monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "history.db"))
        app(["history", "import", "results"], standalone_mode=False, prog_name="linkgauge")
    if name == "exporter":  # it would serve until it is ended, at one port for all
        monkeypatch.setattr("linkgauge.cli.exporter._serve", lambda page, listen: 0)
    words = [word.replace("cuda:", "sim:") for word in _simulated(name, words)]
    code = app(words, standalone_mode=False, prog_name="linkgauge")
    # 1: what is found of a machine; neither wrong usage nor an error. Nothing simulates torch,
    # without which `ai` measures nothing, or the server that it would ask (3).
    assert code in ((0, 3, 4) if name == "ai" else (0, 1))


def examples_of_faults(capsys):
    """As `--list-faults` prints them, in its last column."""
    app(["run", "--list-faults"], standalone_mode=False, prog_name="linkgauge")
    lines = iter(capsys.readouterr().out.splitlines())
    column = next(line.index("example") for line in lines if line.startswith("kind "))
    table = takewhile(lambda line: not line.startswith("parameter "), lines)
    return [line[column:].strip() for line in table]


@pytest.mark.parametrize("machine", shipped())
def test_each_example_of_a_fault_works_on_every_machine(machine, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    faults = examples_of_faults(capsys)
    assert len(faults) == len(FAULTS)
    options = [word for fault in faults for word in ("--fault", fault)]
    words = ["run", "device_local_copy", "--machine", machine, "--size", "1M", "--dry-run"]
    assert app([*words, *options], standalone_mode=False, prog_name="linkgauge") == 0


def _leave_files(folder):
    """What the examples name."""
    for accelerator, run in (("cpu", replace(THREE[0], label="default")), *NVIDIA):
        kept = folder / "results" / accelerator / run.label / "20261121T201500Z"
        kept.mkdir(parents=True)
        write_run(kept, here(run))
    for number, label in enumerate(("before", "after")):
        run = replace(here(THREE[0]), id=label, label=label, started=f"2026-11-22T20:1{number}:00Z")
        kept = folder / "results" / "nvidia-h200" / label / f"20261122T201{number}00Z"
        kept.mkdir(parents=True)
        write_run(kept, run)
    write_document(folder / "baseline.json", baseline_of([figures_of(run)], "now"))
    (folder / "NAME.xml").write_bytes(domain())


def _simulated(name, words):
    """The words of a command line, of a simulated machine if it names none."""
    measures = name in ("run", "copy", "latency", "traffic", "scale", "vary", "as")
    if measures and "--machine" not in words:
        words = [words[0], "--machine", SMALL if name in MANY else SIMULATED, *words[1:]]
    if name == "watch":
        return [*words, "--machine", SMALL, "--size", "1M", "--samples", "1", "--probes", "1"]
    return [*words, "--dry-run"] if name == "run" and "--dry-run" not in words else words
