"""A run goes on only on its own machine."""

import json

import pytest

from command_kit import called
from linkgauge.engine.kept.journal import JOURNAL_FILE


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """That of a run that ended before it measured anything."""
    out = tmp_path_factory.mktemp("out")
    done = called("run", "device_local_copy", "--machine", "dgx-h200-8", "--size", "1M",
                  "--samples", "2", "--out", out)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = out.rglob(JOURNAL_FILE)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    return path


@pytest.fixture
def opened(journal):
    """What it begins with, to be changed."""
    before = journal.read_bytes()
    yield json.loads(before)
    journal.write_bytes(before)


@pytest.mark.parametrize(
    ("of", "name", "value", "says"),
    [
        ("device", "driver", "570.1", "driver of sim:0 was 570.1, is now "),
        ("device", "model", "Other Card", "sim:0 was Other Card, is now NVIDIA H200"),
        ("device", "pci", "0000:1b:00.1", "PCI address of sim:0 was 0000:1b:00.1, is now "),
        ("device", "uuid", "GPU-1", "UUID of sim:0 was GPU-1, is now "),
        ("device", "memory", "sim:9", "sim:9 was NVIDIA H200, is now absent"),
        ("host", "cpu_model", "Old CPU", "CPU was Old CPU, is now "),
        ("host", "architecture", "riscv64", "architecture was riscv64, is now "),
        ("host", "hostname", "crate", "host name was crate, is now "),
        ("host", "nodes", [], "NUMA nodes was absent, is now 0, 1"),
    ],
)
def test_another_machine_is_refused_with_what_differs(journal, opened, of, name, value, says):
    machine = opened["machine"]
    changed = machine["host"] if of == "host" else machine["devices"]["sim"][0]
    changed[name] = value
    journal.write_text(json.dumps(opened) + "\n")
    done = called("run", "--resume", journal.parent)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, says in line) == (2, True), line
