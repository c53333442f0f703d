"""The Python API, and the examples of docs/api.md."""

import gc
import inspect
import json
import re
import signal
import subprocess
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click
import pytest

import linkgauge
from command_kit import called
from linkgauge.api.calling import FOR_SCREEN, RENAMED
from linkgauge.cli.main import COMMANDS, command
from linkgauge.engine.kept.journal import JOURNAL_FILE
from linkgauge.report.files import write_run
from linkgauge.report.formats import formats
from report.samples import RUN

DOCS = Path(__file__).parents[1] / "docs" / "api.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
ENDLESS = """
import sys, linkgauge
try:
    linkgauge.measure(
        "host:0 -> sim:0 by ce", "1M", machine="dgx-h200-8", faults=["hang sim:0"], out=sys.argv[1]
    )
except linkgauge.Interrupted as error:
    print(error)
    print(error.measured)
"""
SIMULATED = {"size": "64M", "samples": 6, "machine": "dgx-h200-8"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED, out=out), out


def test_the_examples_of_the_docs_run(capsys, tmp_path, monkeypatch):
    """In their order: later ones use names of earlier ones."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in EXAMPLES:
        exec(compile(example, str(DOCS), "exec"), names)
    shown = capsys.readouterr().out
    assert shown.startswith("<linkgauge run 2")
    assert "dgx-h200-8 SIMULATED, 1 benchmark, 8 cells, ok>\n0 0 5" in shown
    assert "\n0 0 0.25\n1 {" in shown, "the slow link is a loss"
    assert "'regression'" in shown
    assert list(tmp_path.iterdir()) == [], "all of them say where runs are kept"
    assert "256M 13" in shown
    assert "['after', 'before'] dgx-h200-8" in shown


@pytest.mark.parametrize(
    "call",
    [
        "__all__",
        "measure('host:0 -> sim:0 by ce', '1M', samples=3, machine='dgx-h200-8')",
        "run('device_local_copy', size='1M', samples=3, machine='dgx-h200-8', out=None)",
        "doctor(machine='dgx-h200-8')",
        "devices(machine='dgx-h200-8')",
        "expect('8 x H100 SXM')",
    ],
)
def test_the_command_line_is_not_loaded(call, tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import linkgauge; linkgauge.{call}"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "linkgauge" in loaded
    assert loaded & {"click", "rich"} == set()


def test_docs_name_all_that_is_exported():
    text = DOCS.read_text()
    assert [name for name in linkgauge.__all__ if name not in text and name != "__version__"] == []
    parameters = list(inspect.signature(linkgauge.measure).parameters)
    assert [name for name in parameters if f"`{name}`" not in text and name != "transfers"] == []
    fields = (*linkgauge.CellRow.__struct_fields__, "value", "transfer", "sample")
    assert [name for name in fields if f"`{name}`" not in text] == []


def test_no_function_has_the_name_of_a_module():
    """Importing such a module would put it in the function's place."""
    modules = {module.name for module in iter_modules(linkgauge.__path__)}
    assert modules.isdisjoint(linkgauge.__all__)
    import_module("linkgauge.cli.run")
    import_module("linkgauge.rooms.gate.command")
    assert inspect.isfunction(linkgauge.run)
    assert inspect.isfunction(linkgauge.compare)


@pytest.mark.parametrize(
    ("name", "function", "apart"),
    [
        ("run", "run", ()),
        ("copy", "measure", ("transfers",)),
        ("scale", "scale", ()),
        ("vary", "vary", ()),
        ("check", "check", ()),
        ("devices", "devices", ()),
        ("doctor", "doctor", ()),
        ("judge", "judge_files", ()),
        ("compare", "compare", ()),
        ("gate", "gate", ("current",)),
    ],
)
def test_a_function_takes_the_options_of_its_command(name, function, apart):
    """So no option is forgotten, and none is invented."""
    options = {one.name for one in command(name, COMMANDS[name]).params
               if isinstance(one, click.Option) and one.expose_value}  # fmt: skip
    renamed = {option: argument for argument, option in RENAMED.items()}
    shown = {*FOR_SCREEN, *formats()}
    wanted = {renamed.get(one, one.removeprefix("no_")) for one in options - shown}
    given = inspect.signature(getattr(linkgauge, function)).parameters
    taken = {one.name for one in given.values() if one.kind is one.KEYWORD_ONLY} | (
        {"size"} & given.keys()
    )
    assert taken - {"say"} == wanted - {*apart}


def test_all_that_is_exported_is_there_and_nothing_else():
    assert {name for name in linkgauge.__all__ if getattr(linkgauge, name, None) is None} == set()
    assert set(linkgauge.__all__) <= set(dir(linkgauge))
    with pytest.raises(AttributeError, match="has no attribute 'measured'"):
        _ = linkgauge.measured


def test_measuring_loads_no_command_line():
    """Neither that nor what shows colours: a program that measures shows nothing."""
    code = (
        "import linkgauge, sys; call = linkgauge.measure, linkgauge.compare, linkgauge.doctor;"
        " print({'click', 'rich'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_importing_the_package_loads_nothing_of_it():
    code = "import linkgauge, sys; print([m for m in sys.modules if m.startswith('linkgauge.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class TestMeasure:
    def test_returns_the_cell_with_its_figures(self, measured):
        run, _ = measured
        (cell,) = run.cells
        assert (cell.transfers, cell.status, cell.n) == ("host:0 -> sim:0 by ce", "pass", 6)
        assert (cell.size, cell.unit, cell.better) == (64 << 20, "B/s", "higher")
        assert cell.min <= cell.median == cell.figure <= cell.max
        assert (cell.low, cell.high) == (None, None), "one repetition tells nothing of another run"
        assert cell.share == pytest.approx(cell.figure / cell.expected)
        assert [sample.value for sample in run.samples] == list(run.run.results[0].cells[0].samples)
        assert (run.exit_code, run.findings, cell.simulated) == (0, (), True)

    def test_keeps_the_run_as_the_command_does(self, measured):
        run, out = measured
        (folder,) = out.glob("*/copy/*")
        names = {path.name for path in folder.iterdir()}
        assert names == {"run.json", "samples.bin", "samples.csv", JOURNAL_FILE}
        assert linkgauge.load(folder).run == run.run
        assert linkgauge.load(folder).cells == run.cells
        (again,) = linkgauge.load_all(out)
        assert again.run == run.run

    def test_says_how_it_differs_from_earlier_runs(self, monkeypatch, tmp_path):
        monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "history.db"))
        for fault in [[]] * 3 + [["slow sim:0 rate=70%"]]:
            said = []
            linkgauge.measure(
                "host:0 -> sim:0 by ce", **SIMULATED, faults=fault, out=tmp_path, say=said.append
            )
        assert said[-1].startswith("against 3 earlier runs: worse: -")

    def test_a_size_may_be_a_number_and_several_are_several_cells(self):
        assert (
            linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED | {"size": 4096}).cells[0].size
            == 4096
        )
        both = linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED | {"size": "4K,8K"})
        assert [cell.size for cell in both.cells] == [4096, 8192]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"samples": 0}, "^samples 0 is too few"),
            ({"samples": "six"}, "^samples six: give a number"),
            ({"max_time": float("nan")}, "^max_time"),
            ({"size": "many"}, "size 'many' is not understood"),
            ({"precision": "2"}, "precision"),
            ({"profile": "fast"}, "unknown profile 'fast'"),
            ({"machine": "none-such"}, "none-such"),
            (
                {"machine": None, "faults": ["slow sim:0 rate=25%"]},
                "^faults needs a simulated machine: give machine, too",
            ),
            ({"transfers": "host:0 -> sim:99 by ce"}, "sim:99"),
            ({"transfers": "host:0 => sim:0"}, "host:0 => sim:0"),
            ({"out": "/proc/none"}, "/proc/none"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, given, message):
        with pytest.raises(linkgauge.InputError, match=message):
            linkgauge.measure(**{"transfers": "host:0 -> sim:0 by ce", **SIMULATED, **given})

    def test_is_interrupted_by_ctrl_c_and_keeps_the_journal(self, tmp_path):
        with subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as running:
            while not (found := list(tmp_path.glob(f"*/copy/*/{JOURNAL_FILE}"))):
                time.sleep(0.01)
                assert running.poll() is None
            running.send_signal(signal.SIGINT)
            said, _ = running.communicate(timeout=60)
        first, second = said.splitlines()
        assert first == f"interrupted; measured cells are kept in {found[0].parent}"
        assert second.startswith(f"<linkgauge run {found[0].parent.name}: dgx-h200-8 SIMULATED, ")
        assert linkgauge.load(found[0].parent).run.finished is None

    def test_leaves_the_callers_garbage_to_the_collector(self):
        class Model:
            def __init__(self):
                self.itself = self

        model, before = Model(), gc.get_threshold()
        known = weakref.ref(model)
        linkgauge.run("device_local_copy", **SIMULATED)
        del model
        gc.collect()
        assert (known(), gc.get_threshold()) == (None, before)


class Sizes(Enum):
    SMALL = "1M"


class TestOptions:
    def test_values_may_be_paths_enums_lists_and_numbers(self, tmp_path):
        limits = tmp_path / "limits.yml"
        limits.write_text("limits:\n- {benchmark: device_local_copy, limit: median >= 1 GB/s}\n")
        run = linkgauge.run(
            "device_local_copy", machine="dgx-h200-8", device=["sim:0", "sim:2"], size=Sizes.SMALL,
            samples=2, limits=limits, out=tmp_path / "out",
        )  # fmt: skip
        assert [(cell.column, cell.size) for cell in run.cells] == [("0", 1 << 20), ("2", 1 << 20)]
        assert {"--size=1M", "--device=sim:0", "--device=sim:2"} < {*run.run.command}

    def test_threads_measure_at_once(self):
        def median(machine):
            return linkgauge.run("device_local_copy", **SIMULATED | {"machine": machine})

        with ThreadPoolExecutor(2) as pool:
            found = [*pool.map(median, ("dgx-h200-8", "ppu-8"))]
        assert [one.run.machine.simulated for one in found] == ["dgx-h200-8", "ppu-8"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sample": 6}, "unexpected keyword argument 'sample', did you mean 'samples'"),
            ({"json": True}, "unexpected keyword argument 'json'"),
            ({"wait": 1}, "^wait is True or False"),
            ({"size": True}, "^size takes a value"),
            ({"verify": "no"}, "verify is True or False"),
        ],
    )
    def test_what_is_no_option_is_an_error_of_the_caller(self, options, message):
        with pytest.raises(TypeError, match=message):
            linkgauge.run("device_local_copy", **options)

    @pytest.mark.parametrize(
        "call",
        [
            lambda: linkgauge.run("device_local_cpy"),
            lambda: linkgauge.run("-v", machine="ppu-8"),
            lambda: linkgauge.run(blocks="many", machine="ppu-8"),
            lambda: linkgauge.run(label="../x", machine="ppu-8"),
            lambda: linkgauge.check(under=1),
            lambda: linkgauge.compare("none-such"),
            lambda: linkgauge.compare("none-such", "other"),
            lambda: linkgauge.gate(baseline="none-such"),
            lambda: linkgauge.doctor("none-such", machine="dgx-h200-8"),
            lambda: linkgauge.devices("none-such", machine="dgx-h200-8"),
            lambda: linkgauge.judge_files([]),
            lambda: linkgauge.judge_files("/proc/self/status"),
            lambda: linkgauge.scale("all_reduc"),
            lambda: linkgauge.vary(),
            lambda: linkgauge.vary(experiment="list"),
            lambda: linkgauge.run("device_local_copy", out="\0"),
            lambda: linkgauge.load("\0"),
            lambda: linkgauge.load_all("\0"),
            lambda: linkgauge.compare("\0", "x"),
            lambda: linkgauge.compare([], []),
            lambda: linkgauge.gate([], baseline=[]),
        ],
    )
    def test_what_a_command_refuses_is_an_input_error(self, call, tmp_path, monkeypatch, capfd):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(linkgauge.InputError):
            call()
        assert capfd.readouterr() == ("", "")

    def test_a_run_names_the_command_that_does_the_same(self, measured):
        run, out = measured
        own = ("--size=64M", "--samples=6", "--machine=dgx-h200-8", f"--out={out}")
        program, name, *words = run.run.command
        assert (program, name) == ("linkgauge", "copy")
        assert {*words} == {*own, "host:0 -> sim:0 by ce"}


class TestCommands:
    """Functions give what their commands show."""

    def test_devices_and_doctor(self, measured, capsys):
        _, out = measured
        (folder,) = out.glob("*/copy/*")
        assert linkgauge.devices(folder) == linkgauge.devices(linkgauge.load(folder))
        found = [finding.name for finding in linkgauge.doctor(machine="vm-degraded")]
        shown = json.loads(called("doctor", "--machine", "vm-degraded", "--json").stdout)
        assert found == [f"{one['check']} of {one['subject']}" for one in shown["findings"]]
        assert linkgauge.doctor(folder) == linkgauge.doctor(linkgauge.load(folder))

    def test_judge_files(self):
        log = Path(__file__).parent / "data/judge/logs/p2p-two-rtx-a6000-like.txt"
        run = linkgauge.judge_files(log, machine="2 x RTX A6000")
        shown = called("judge", log, "--machine", "2 x RTX A6000", "--json")
        assert run.exit_code == shown.returncode
        assert len(run.cells) == sum(
            len(one["cells"]) for one in json.loads(shown.stdout)["results"]
        )
        assert run.folder is None

    def test_sides_may_be_runs_paths_and_several(self, measured):
        run, out = measured
        (folder,) = out.glob("*/copy/*")
        for side in (folder, out, [run, run], [folder, run]):
            found = linkgauge.compare(run, side, history=False)
            assert found.cells[0].sides[0].figure == found.cells[0].sides[1].figure
            assert len({one.name for one in found.sides}) == 2

    def test_vary_by_a_named_experiment(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        how = {"size": "1M", "samples": 2, "rounds": 8, "machine": "ppu-8", "out": None}
        varied = linkgauge.vary("host_to_device_memcpy_ce", experiment="pinned", **how)
        assert [setting.values["--memory"] for setting in varied.settings] == ["pinned", "pageable"]
        assert {one.folder for one in varied.runs} == {None}
        assert list(tmp_path.iterdir()) == []


class TestLoad:
    def test_a_folder_of_several_is_not_one(self, measured, tmp_path):
        _, out = measured
        with pytest.raises(linkgauge.InputError, match="load_all"):
            linkgauge.load(out)
        with pytest.raises(linkgauge.InputError, match="no runs in"):
            linkgauge.load_all(tmp_path)

    def test_one_that_cannot_be_read_is_left_out_with_a_warning(self, tmp_path):
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        write_run(tmp_path / "a", RUN)
        (tmp_path / "b" / "run.json").write_text("{")
        with pytest.warns(UserWarning, match="left out: .*damaged"):
            (run,) = linkgauge.load_all(tmp_path)
        assert run.run.id == RUN.id
