"""How profilers are called, and the files that they leave."""

import re
from pathlib import Path

import pytest

import linkgauge.kernels
from linkgauge.engine.profilers import ASIDE, WAITING, Reports, command_of
from profiler_kit import install

KERNELS = Path(linkgauge.kernels.__file__).parent
_KERNEL = re.compile(r"__global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\(([^)]*)\)")


def kernels():
    """The parameters of each kernel that there is."""
    found = {}
    for file in KERNELS.glob("*.cu"):
        text = re.sub(r"#if PROGRESS.*?#endif", "", file.read_text(), flags=re.DOTALL)
        found |= dict(_KERNEL.findall(text))
    return found


class TestKernelsThatNcuLeavesOut:
    @pytest.fixture
    def wanted(self):
        command = command_of("ncu", "ncu", Path("x"))
        name = command[command.index("--kernel-name") + 1]
        return re.compile(name.removeprefix("regex:"))

    def test_are_kernels_that_there_are(self):
        assert {*WAITING, *ASIDE} <= kernels().keys()

    def test_are_all_that_others_see_at_work(self):
        """What a kernel shares with somebody who watches it is volatile."""
        sharing = {name for name, parameters in kernels().items() if "volatile" in parameters}
        assert sharing
        assert sharing <= {*WAITING}

    def test_are_not_those_that_are_measured(self, wanted):
        profiled = {name for name in kernels() if wanted.search(name)}
        assert profiled == {"arrays", "copy", "chase", "multiply_add", "read", "write"}
        assert wanted.search("filler_of_a_library")


class TestReports:
    @pytest.fixture
    def reports(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", install(tmp_path / "bin", "nsys"))
        (tmp_path / "run").mkdir()
        return Reports("nsys", tmp_path / "run")

    def test_go_on_behind_those_of_a_run_that_broke_off(self, tmp_path, reports):
        for name in ("nsys-2.nsys-rep", "nsys-10.log", "ncu-77.log", "nsys-odd"):
            (tmp_path / "run" / name).touch()
        assert Reports("nsys", tmp_path / "run").begin().path.name == "nsys-11"

    def test_name_all_that_was_left_and_what_was_not(self, reports, tmp_path):
        there, lost, silent = (reports.begin() for _ in range(3))
        there.path.with_name("nsys-1.nsys-rep").touch()
        there.log.write_text("Generated\n")
        lost.log.write_text("Collecting\nImporter error status: 1\n\n")
        (tmp_path / "run" / "run.json").touch()
        assert reports.files() == ("nsys-1.log", "nsys-1.nsys-rep", "nsys-2.log")
        assert reports.missing() == [
            f"nsys left no report: Importer error status: 1 ({lost.log})",
            f"nsys left no report: no output ({silent.log})",
        ]
