"""The plug-ins of examples/plugins, each from its own wheel: what they add is listed, measured,
judged, reported and compared; one that cannot be loaded is named and harmless."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command_kit import folder_of, linkgauge
from compiled_kit import c_library_of

PLUGINS = Path(__file__).parents[2] / "examples/plugins"
BROKEN = "[linkgauge.rooms]\nbroken = broken_plugin:ROOM\n"


def add(site, name, version, entry_points, **modules):
    """Lays a package with these modules into a folder, as pip would."""
    about = site / f"{name}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n\nA plug-in.\n")
    (about / "entry_points.txt").write_text(entry_points)
    for module, text in modules.items():
        (site / f"{module}.py").write_text(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the three packages, installed from wheels, and a fourth that is broken."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    wheels = folder / "wheels"
    sources = [str(PLUGINS / name) for name in ("backend", "benchmark", "check")]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", wheels, *sources], check=True)
    made = sorted(map(str, wheels.glob("*.whl")))
    assert len(made) == 3
    subprocess.run([*pip, "install", *offline, "--target", folder, *made], check=True)
    add(folder, "broken", "3", BROKEN, broken_plugin="raise RuntimeError('no driver')")
    return folder


def with_plugins(site, *arguments, **more):
    library = c_library_of(PLUGINS / "backend/npu.c")
    return linkgauge(*arguments, PYTHONPATH=site, NPU_LIBRARY=library, **more)


def test_the_version_lists_them_and_names_the_broken_one_once(site):
    done = with_plugins(site, "--version", "-v")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == [
        "linkgauge-exchange 1.0: benchmarks Copies by host threads",
        "linkgauge-free-memory 1.0: checks linkgauge_free_memory:check_free_memory",
        "linkgauge-npu 1.0: backends npu",
    ]
    assert done.stderr == (
        "linkgauge: broken_plugin:ROOM of broken 3 is left out: RuntimeError: no driver\n"
    )
    assert "host_exchange_cpu" in with_plugins(site, "list").stdout


def test_figures_are_measured_judged_reported_and_compared_and_name_their_package(site, tmp_path):
    asked = ("run", "host_exchange_cpu", "host_to_device_memcpy_ce", "--backend", "host",
             "--backend", "npu")  # fmt: skip
    few = ("--size", "1M", "--samples", "6", "--loops", "2", "--no-verdict", "--matrix")
    first, second = tmp_path / "first", tmp_path / "second"
    done = with_plugins(site, *asked, *few, "--out", first)
    assert done.returncode == 0, done.stderr
    run = folder_of(first)
    results = json.loads((run / "run.json").read_text())["results"]
    measured = {one["benchmark"]: one for one in results if one["status"] == "pass"}
    assert measured["host_exchange_cpu"]["plugins"] == ["linkgauge-exchange 1.0"]
    assert measured["host_to_device_memcpy_ce"]["plugins"] == ["linkgauge-npu 1.0"]
    assert "host_exchange_cpu  host  1 MiB  of linkgauge-exchange 1.0" in done.stdout

    without = linkgauge("show", run, "--matrix", "--no-verdict")
    assert "of linkgauge-npu 1.0" in without.stdout, without.stderr
    assert with_plugins(site, *asked, *few, "--out", second).returncode == 0
    compared = with_plugins(site, "compare", run, folder_of(second))
    assert "host_exchange_cpu" in compared.stdout, compared.stderr
    page = tmp_path / "report.html"
    assert with_plugins(site, "report", run, "-o", page).returncode == 0
    assert "linkgauge-exchange 1.0" in page.read_text()


def test_the_devices_of_a_plug_in_are_found_without_being_named(site, tmp_path):
    listed = with_plugins(site, "devices", "--json")
    assert listed.returncode == 0, listed.stderr
    names = [one["memory"] for one in json.loads(listed.stdout)["devices"]["npu"]]
    assert names == ["npu:0", "npu:1"]
    first = with_plugins(site)
    assert "2 × Example NPU (npu:0-1)" in first.stdout, first.stdout
    few = ("--size", "1M", "--samples", "3", "--loops", "2", "--no-verdict", "--json")
    done = with_plugins(site, "run", "host_to_device_memcpy_ce", *few, "--out", tmp_path)
    backends = [one["backend"] for one in json.loads(done.stdout)["results"]]
    assert "npu" in backends, done.stderr


def test_a_plug_in_without_its_library_says_so(site):
    listed = linkgauge("devices", PYTHONPATH=site, NPU_LIBRARY="/nowhere.so")
    assert "npu: none: no /nowhere.so" in listed.stdout, listed.stdout
    simulated = linkgauge("devices", "--machine", "ring-8", PYTHONPATH=site)
    assert "npu" not in simulated.stdout


def test_a_backend_that_crashes_costs_only_itself(tmp_path):
    record = (
        "from linkgauge.rooms import Room\nROOM = Room('bad', backends={'bad': 'bad:create'})\n"
    )
    add(tmp_path, "bad", "1", "[linkgauge.rooms]\nbad = bad_room:ROOM\n",
        bad_room=record, bad="import os\nos.abort()\n")  # fmt: skip
    listed = linkgauge("devices", PYTHONPATH=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "host:0" in listed.stdout
    assert "bad: none: " in listed.stdout


def test_help_lists_the_backends_of_plug_ins_without_their_code(tmp_path):
    record = (
        "from linkgauge.rooms import Room\nROOM = Room('far', backends={'far': 'far:create'})\n"
    )
    add(tmp_path, "far", "1", "[linkgauge.rooms]\nfar = far_room:ROOM\n",
        far_room=record, far="raise RuntimeError('loaded')")  # fmt: skip
    for command in ("devices", "run"):
        done = linkgauge(command, "--help", PYTHONPATH=tmp_path)
        assert "host, cuda, opencl, far or torch" in " ".join(done.stdout.split())
        assert "loaded" not in done.stdout + done.stderr


def test_a_check_of_a_plug_in_judges_a_captured_machine(site, tmp_path):
    memory = tmp_path / "proc/meminfo"
    memory.parent.mkdir()
    memory.write_text("MemTotal: 1000000 kB\nMemAvailable: 10000 kB\n")
    found = with_plugins(site, "doctor", "--json", "--root", tmp_path).stdout
    (one,) = (one for one in json.loads(found)["findings"] if one["check"] == "free-memory")
    assert (one["severity"], one["found"]) == ("warn", "only 1.0% of the host's memory is free")


def test_names_that_clash_are_refused_with_both_origins(tmp_path):
    points = "[linkgauge.rooms]\n{0} = {0}_room:ROOM\n"
    record = "from linkgauge.rooms import Room\nROOM = Room('{0}', {1})\n"
    add(tmp_path, "one", "1", points.format("one"),
        one_room=record.format("one", "{'run': 'one:run', 'fly': 'one:fly'}"))  # fmt: skip
    add(tmp_path, "two", "2", points.format("two"),
        two_room=record.format("two", "{'fly': 'two:fly'}, {'Pages': 'two_rows:ROWS'}, "
                                      "{'host': 'two:host'}"),
        two_rows="from linkgauge.benchmarks.host_sweeps import SWEEPS as ROWS")  # fmt: skip
    add(tmp_path, "gate-two", "3", points.format("gate"), gate_room=record.format("gate", "{}"))
    complaints = linkgauge("list", PYTHONPATH=tmp_path).stderr
    for said in (
        "the room 'gate' of gate-two 3 is left out: linkgauge has one of this name",
        "the backend 'host' of two 2 is left out: linkgauge has one of this name",
        "the benchmark 'host_threads_memcpy_copy_cpu' of two 2 is left out: linkgauge has",
    ):
        assert complaints.count(said) == 1, complaints
    few = ("--size", "1M", "--samples", "3", "--loops", "1", "--no-verdict", "--json")
    done = linkgauge("run", "host_to_host_memcpy_copy_cpu", *few, "--out", tmp_path / "results",
                     PYTHONPATH=tmp_path)  # fmt: skip
    assert "plugins" not in json.loads(done.stdout)["results"][0]
    complaints = linkgauge("fly", PYTHONPATH=tmp_path).stderr
    assert "the command 'run' of one 1 is left out: linkgauge has one of this name" in complaints
    assert "the command 'fly' of two 2 is left out: one 1 has one of this name" in complaints


EVERY = {
    "every_room": """
from linkgauge.rooms import Room
ROOM = Room(
    "every",
    commands={"fly": "every_command:fly"},
    sections=("every_shown:SECTION", "every_shown:TAKEN"),
    formats=("every_shown:FORMAT", "every_shown:JSON"),
    tools={"everyperf": "every_command:perf"},
    machines={"every": "every_command:described"},
)
""",
    "every_command": """
import click
from linkgauge.backends.sim.description import load
from linkgauge.cli.help_text import OTHER
from linkgauge.cli.options import Options, option

class Fly(Options):
    high: bool = option(OTHER, "Fly high.")

def fly(asked: Fly) -> int:
    '''Fly.'''
    click.echo("high" if asked.high else "low")
    return 3

def perf(arguments, where) -> int:
    click.echo(f"{where.name} of {arguments}")
    return 5

def described(text):
    return ("mine", load("ppu-8")[1]) if text == "every:8" else None
""",
    "every_shown": """
from linkgauge.report.blocks import Prose, line
from linkgauge.report.formats import Format
from linkgauge.report.sections import Section

def of_run(one):
    yield Prose([line(f"every part of {one.run.id}")])

SECTION = Section("every", "Everything", 11, of_run, on_screen=True)
TAKEN = Section("verdict", "Mine", 11, of_run)
FORMAT = Format("loud", "In capitals.", "every_shown:loud")
JSON = Format("json", "Mine.", "every_shown:loud")

def loud(blocks) -> str:
    return f"{len([*blocks])} BLOCKS"
""",
}
"""A package that adds what the three of examples/plugins do not."""


def test_commands_sections_formats_tools_and_machines_of_a_plug_in_are_taken(tmp_path):
    add(tmp_path, "every", "1", "[linkgauge.rooms]\nevery = every_room:ROOM\n", **EVERY)

    def told(*words, code=0):
        done = linkgauge(*words, PYTHONPATH=tmp_path)
        assert done.returncode == code, done.stderr
        return done

    assert "Fly." in told("--help").stdout
    assert told("fly", "--high", code=3).stdout == "high\n"
    assert told("as", "everyperf", "-t", "0", code=5).stdout == "everyperf of ('-t', '0')\n"
    assert (
        json.loads(told("devices", "--machine", "every:8", "--json").stdout)["simulated"] == "mine"
    )
    loud = told("devices", "--machine", "every:8", "--loud")
    assert loud.stdout.endswith(" BLOCKS")
    assert "the format 'json' of every 1 is left out: linkgauge has one of this name" in loud.stderr
    few = ("--size", "1M", "--samples", "3", "--no-verdict", "--out", tmp_path / "results")
    done = told("copy", "host:0 -> sim:0", "--machine", "every:8", *few)
    run = folder_of(tmp_path / "results")
    assert f"every part of {run.name}" in done.stdout
    assert "the section 'verdict' of every 1 is left out: linkgauge has one of" in done.stderr
    page = tmp_path / "report.html"
    told("report", run, "-o", page)
    assert f"every part of {run.name}" in page.read_text()
    assert "Mine" not in page.read_text()


def test_ten_plug_ins_are_found_without_pythons_slow_look_up(tmp_path):
    """`importlib.metadata` takes 20 ms, more than all ten may."""
    record = "from linkgauge.rooms import Room\nROOM = Room('{0}', checks=('{0}:check',))\n"
    for name in map("plug{}".format, range(10)):
        modules = {name: record.format(name)}
        add(tmp_path, name, "1", f"[linkgauge.rooms]\n{name} = {name}:ROOM\n", **modules)
    code = (
        "import sys; sys.argv = ['linkgauge', '--version', '-v']\n"
        "from linkgauge.__main__ import main\n"
        "try: main()\n"
        "finally: assert 'importlib.metadata' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.count("plug") == 20
