"""Help texts as people see them: no wider than the terminal, with examples that work."""

import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from command_kit import called
from configurations_kit import THREE, here
from linkgauge.backends.sim.description import shipped
from linkgauge.cli.main import COMMANDS
from linkgauge.report.files import write_run
from vm_kit import domain

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
EVERY = ("", *COMMANDS)
SIMULATED = "full-8"
SMALL = "riscv-2gpu"
"""For what measures in rounds, or each pair at many sizes."""
MANY = ("vary", "latency", "traffic")
FEWER = {
    "vary": ("--rounds", "4", "--significance", "20%"),
    "check": ("--machine", SMALL),
    "latency": ("--iterations", "20"),
    "scale": ("--samples", "2", "--size", "1M"),
}
"""Options with which a command takes less long."""
NVIDIA = tuple(("nvidia-h200", run) for run in THREE)


@cache
def shown(name, width=80, **environment):
    """The help of a command at a width."""
    done = called(*name.split(), "--help", COLUMNS=width, **environment)
    assert done.returncode == 0
    return done.stdout


@pytest.mark.parametrize("name", EVERY)
def test_each_width_shows_the_same_words_and_colour_adds_none(name):
    words = shown(name, 200).split()
    for width in (60, 80, 200):
        text = shown(name, width)
        assert max(map(len, text.splitlines())) <= width
        assert not re.search(r" $|\N{NO-BREAK SPACE}", text, re.MULTILINE)
        assert text.split() == words
    plain, coloured = shown(name, NO_COLOR=1), shown(name, FORCE_COLOR=1)
    assert COLOUR.search(coloured)
    assert COLOUR.sub("", coloured) == plain


def test_help_loads_neither_vendors_libraries_nor_what_takes_long():
    for arguments in ("--help", "run --help"):
        code = (
            f"import sys; sys.argv = ['linkgauge', *{arguments.split()!r}]\n"
            "from linkgauge.cli.main import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            "heavy = {'rich', 'numpy', 'scipy', 'msgspec', 'sqlalchemy', 'typer',\n"
            "         'pyopencl', 'cuda', 'torch', 'linkgauge._native'}\n"
            "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stderr.strip() == "[]", arguments


def test_the_page_of_all_commands_says_which_have_json_and_csv():
    page = (Path(__file__).parents[2] / "docs/commands.md").read_text()
    said = page[page.index("The commands\n") : page.index("Exit codes are [the same")]
    first, rest = said.split("have `--json` alone")
    alone, (_, *neither) = (re.findall("`([a-z]+)`", part) for part in (first, rest))
    has = {name: set(re.findall(r"--(json|csv)\b", options_of(name))) for name in COMMANDS}
    assert set(alone) == {name for name, its in has.items() if its == {"json"}} - {"watch"}
    assert set(neither) == {name for name, its in has.items() if not its}


def options_of(name):
    return "\n".join(re.findall(r"^  --.*", shown(name, 200), re.MULTILINE))


def lines_of(name):
    """What a shell would run, without what it would write the output to."""
    lines = shown(name, 200).partition("Examples:\n")[2].splitlines()
    return [line.strip().partition(" > ")[0] for line in lines]


CASES = [(name, line) for name in COMMANDS for line in lines_of(name)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the examples name."""
    folder = tmp_path_factory.mktemp("files")
    for accelerator, run in (("cpu", replace(THREE[0], label="default")), *NVIDIA):
        kept = folder / "results" / accelerator / run.label / "20261121T201500Z"
        kept.mkdir(parents=True)
        write_run(kept, here(run))
    for number, label in enumerate(("before", "after")):
        run = replace(here(THREE[0]), id=label, label=label, started=f"2026-11-22T20:1{number}:00Z")
        kept = folder / "results" / "nvidia-h200" / label / f"20261122T201{number}00Z"
        kept.mkdir(parents=True)
        write_run(kept, run)
    assert called("baseline", "after", cwd=folder).returncode == 0
    (folder / "NAME.xml").write_bytes(domain())
    logs = Path(__file__).parents[1] / "data/judge/questions"
    for name, log in (
        ("nccl.log", "06-h100-all-reduce/log.txt"), ("topo.txt", "08-h100-six-links/topo.txt"),
        ("nvbandwidth.log", "01-a6000-peers/log.txt"),
    ):  # fmt: skip
        (folder / name).write_text((logs / log).read_text())
    return folder


@pytest.mark.parametrize(("name", "line"), CASES)
def test_each_example_works(name, line, files, tmp_path, monkeypatch):
    """On a simulated machine, with its devices in place of CUDA's, and few samples."""
    tool, *words = shlex.split(line)
    if tool != "linkgauge":
        assert tool in ("virsh", "kubectl")
        return
    assert words[0] == name
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    history = {"LINKGAUGE_HISTORY": tmp_path / "history.db"} if name == "history" else {}
    if name == "history":
        called("history", "import", "results", cwd=tmp_path, **history)
    if name == "exporter":  # it would serve until it is ended, at one port for all
        monkeypatch.setattr("linkgauge.rooms.exporter.command._serve", lambda *_: 0)
        monkeypatch.setattr("linkgauge.rooms.exporter.otlp.send_all", lambda *_: None)
    if name == "mcp":  # it would wait for a client
        server = SimpleNamespace(run=lambda transport: None)
        monkeypatch.setattr("linkgauge.rooms.mcp.tools.make_server", lambda: server)
    words = [word.replace("cuda:", "sim:") for word in _simulated(name, words)]
    done = called(*words, cwd=tmp_path, **history)
    # 1: what is found of a machine; neither wrong usage nor an error. Nothing simulates torch,
    # without which `ai` measures nothing, or the server that it would ask (3).
    assert done.returncode in ((0, 3, 4) if name == "ai" else (0, 1)), done.stderr


@pytest.mark.parametrize("machine", shipped())
def test_each_example_of_a_fault_works_on_every_machine(machine):
    """As `--list-faults` prints them, in its second column."""
    lines = iter(called("run", "--list-faults", COLUMNS=200).stdout.splitlines())
    head = next(line for line in lines if line.startswith("kind "))
    column = slice(head.index("example"), head.index("what happens"))
    options = [word for line in takewhile(str.strip, lines) for word in ("--fault", line[column])]
    assert len(options) > 20
    words = ["run", "device_local_copy", "--machine", machine, "--size", "1M", "--dry-run"]
    assert called(*words, *options).returncode == 0


def _simulated(name, words):
    """The words of a command line, of a simulated machine if it names none."""
    measures = name in ("run", "copy", "latency", "traffic", "scale", "vary", "as")
    if measures and "--machine" not in words:
        words = [words[0], "--machine", SMALL if name in MANY else SIMULATED, *words[1:]]
    fewer = FEWER.get(name, ())
    words += () if "--machine" in fewer and "--machine" in words else fewer
    if name == "watch":
        return [*words, "--machine", SMALL, "--size", "1M", "--samples", "1", "--probes", "1"]
    return [*words, "--dry-run"] if name == "run" and "--dry-run" not in words else words
