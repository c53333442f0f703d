"""What a plain copy on the host does not need is not loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MOST_MODULES = 190
PROGRAM = """
import json, sys
import linkgauge.cli.main as program
try:
    program.main()
except SystemExit:
    pass
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "linkgauge"]))
"""
NOT_NEEDED = (
    "linkgauge.api.",
    "linkgauge.backends.cuda",
    "linkgauge.backends.opencl",
    "linkgauge.backends.sim",
    "linkgauge.cli.completion",
    "linkgauge.history.",
    "linkgauge.judge.blame.unsteady",
    "linkgauge.judge.compare.",
    "linkgauge.judge.limit",
    "linkgauge.model.documents.history",
    "linkgauge.model.stats.change",
    "linkgauge.report.reading",
    "linkgauge.report.sections.machine",
    "linkgauge.report.sections.topology",
    "linkgauge.report.render.html",
    "linkgauge.report.render.markdown",
    "linkgauge.rooms.ai.section",
    "linkgauge.rooms.judge_files.checks",
    "linkgauge.uses.earlier_runs",
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    words = ("run", "host_to_host_memcpy_copy_cpu", "--samples", "3")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=tmp_path_factory.mktemp("spine"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


@pytest.mark.parametrize("name", NOT_NEEDED)
def test_a_host_copy_does_not_load(name, loaded):
    assert [one for one in loaded if one.startswith(name)] == []


@pytest.mark.skipif(
    any(map(Path.exists, map(Path, ("/dev/nvidiactl", "/dev/kfd", "/dev/infiniband")))),
    reason="checks of this machine's devices load, too",
)
def test_a_host_copy_loads_few_modules(loaded):
    assert len(loaded) <= MOST_MODULES
