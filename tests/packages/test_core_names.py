"""The names of the core (tools/core-names.yml): what plug-ins and rooms use is found, and a room
that keeps to the list works as a package of its own."""

import copy
import importlib
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import linkgauge
from command_kit import linkgauge as command
from linkgauge.rooms import ROOMS

ROOT = Path(__file__).parents[2]
FOLDERS = ROOT / "src/linkgauge/rooms"
NAMES = SimpleNamespace(**runpy.run_path(str(ROOT / "tools/core-names")))
KEEPING = sorted({room.name for room in ROOMS} - NAMES.contract()["inner"].keys())
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "apart"
version = "1.0"
[project.entry-points."linkgauge.rooms"]
{0}-apart = "{0}_apart_room:ROOM"
[tool.hatch.build.targets.wheel]
only-include = ["{0}_apart", "{0}_apart_room.py"]
"""


def test_the_list_is_kept():
    assert list(NAMES.complaints()) == []
    assert {name for module, name in NAMES.listed() if module == "linkgauge"} == {
        *linkgauge.__all__
    }


def test_more_than_the_list_is_refused(monkeypatch):
    contract = copy.deepcopy(NAMES.contract())
    (backends,) = (group for group in contract["core"] if group["title"] == "Backends")
    backends["modules"] |= {"linkgauge.backends.offering": "Lending"}
    contract["beyond"] -= 1
    del contract["inner"]["vm"]
    monkeypatch.setitem(NAMES.complaints.__globals__, "contract", lambda: contract)
    found = "\n".join(NAMES.complaints())
    assert "linkgauge.backends.offering has no Lending" in found
    assert "backend uses linkgauge.backends.offering.Holding, which is not listed" in found
    assert "vm uses linkgauge." in found
    assert "docs/core-names.md is old" in found
    contract["inner"]["vm"] = contract["inner"]["none-such"] = "It is another one."
    found = "\n".join(NAMES.complaints())
    assert "there is no room none-such" in found
    assert f"names beyond the list, {contract['beyond']} before" in found


def test_each_way_to_take_a_name_is_found(tmp_path):
    file = tmp_path / "code.py"
    file.write_text(
        "import linkgauge, os.path\n"
        "import linkgauge.judge.verdict as verdict\n"
        "from linkgauge.cli import common\n"
        "from linkgauge.model.units import count_of as counted\n"
        "from ...engine.plan import Plan\n"
        "from .own import thing\n"
        "def later():\n"
        "    from linkgauge.report import blocks, files as written\n"
        "    return blocks.line, written.json_document, os.path.join\n"
        "value = linkgauge.run(common.ROOT, verdict.judge)\n"
        "places = 'linkgauge.report.tables:CELLS', 'linkgauge.engine.locks', 'linkgauge.run/1'\n"
        "own = 'linkgauge.rooms.soak.section:blocks'\n"
    )
    assert NAMES.used(file, "linkgauge.rooms.soak") == {
        ("linkgauge", "run"),
        ("linkgauge.cli.common", "ROOT"),
        ("linkgauge.engine.locks", "*"),
        ("linkgauge.engine.plan", "Plan"),
        ("linkgauge.judge.verdict", "judge"),
        ("linkgauge.model.units", "count_of"),
        ("linkgauge.report.blocks", "line"),
        ("linkgauge.report.files", "json_document"),
        ("linkgauge.report.tables", "CELLS"),
    }
    assert ("linkgauge.rooms.soak.section", "blocks") in NAMES.used(file, "apart")


@pytest.mark.parametrize("plugin", ["backend", "benchmark", "check"])
def test_an_example_uses_only_listed_names(plugin):
    names = NAMES.used_below(ROOT / "examples/plugins" / plugin, "")
    assert names
    assert names - NAMES.listed() == set()


@pytest.mark.parametrize("room", KEEPING)
def test_a_room_loads_from_a_package_of_its_own(room, tmp_path, monkeypatch):
    package = f"{room}_moved"
    folder = tmp_path / package
    shutil.copytree(FOLDERS / room, folder)
    assert NAMES.used_below(folder, package) - NAMES.listed() == set()
    monkeypatch.syspath_prepend(tmp_path)
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(tmp_path).with_suffix("").parts
        importlib.import_module(".".join(parts).removesuffix(".__init__"))


def record_of(room):
    """The room's record with the places in its package. What it adds has names of its own."""
    made = {}
    for kind in ("commands", "tools"):
        for name, place in getattr(room, kind).items():
            moved = place.replace(f"linkgauge.rooms.{room.name}", f"{room.name}_apart")
            made.setdefault(kind, {})[f"{name}-apart"] = moved
    return f"from linkgauge.rooms import Room\nROOM = Room('{room.name}-apart', **{made})\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the room `traffic`, installed from the wheel of a package of its own."""
    (room,) = (one for one in ROOMS if one.name == "traffic")
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shutil.copytree(FOLDERS / room.name, source / f"{room.name}_apart")
    (source / f"{room.name}_apart_room.py").write_text(record_of(room))
    (source / "pyproject.toml").write_text(PROJECT.format(room.name))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--target", folder]
    subprocess.run([*pip, *offline, source], check=True)
    return folder


def test_a_room_works_from_a_package_of_its_own(site, tmp_path):
    listed = command("--version", "-v", PYTHONPATH=site)
    assert listed.stdout.splitlines()[1:] == [
        "apart 1.0: commands traffic-apart, tools gc-hosttraffictest-apart"
    ]
    few = ("--machine", "ipu-m2000", "--samples", "3", "--out", tmp_path)
    ours, theirs = (command(name, *few, PYTHONPATH=site) for name in ("traffic", "traffic-apart"))
    assert (theirs.returncode, theirs.stderr) == (ours.returncode, ours.stderr)
    shown, own = (done.stdout.partition("\nresults:")[0] for done in (theirs, ours))
    assert shown == own
    assert "verdict: " in shown
    told = command("as", "gc-hosttraffictest-apart", "--help", PYTHONPATH=site)
    assert "Number of tiles" in told.stdout, told.stderr
