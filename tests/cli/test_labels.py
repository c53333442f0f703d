"""A label is kept as it was typed, or refused: never changed without a word."""

import json

import pytest

import linkgauge as api
from command_kit import called
from linkgauge.model.errors import InputError

RUN = ("--machine", "riscv-2gpu", "--size", "1M", "--samples", "2")
COMMANDS = {
    "run": ("device_local_copy", *RUN),
    "copy": ("sim:0 -> sim:1 by ce", *RUN),
    "vary": ("device_local_copy", *RUN, "--env", "NAME=1,2", "--rounds", "8"),
    "latency": (*RUN[:2], "--iterations", "20"),
    "scale": (*RUN[:2], "--samples", "2"),
    "traffic": (*RUN[:2], "--samples", "2"),
    "watch": ("device_local_copy", *RUN, "--every", "1s", "--probes", "1"),
    "check": (*RUN[:2], "--under", "20s"),
}
BAD = (
    "",
    " ",
    "../../etc",
    "..",
    "a/../b",
    "a\nb",
    "a\tb",
    "\x1b[31m",
    "\u202ex",
    "x" * 65,
    "\udcff",
)


@pytest.mark.parametrize("label", ["feature/x", "Übung 1", "前", "a..b", "/", "=1", "x" * 64])
def test_a_label_is_kept_as_typed_and_its_folder_is_below_its_accelerator(tmp_path, label):
    done = called("run", *COMMANDS["run"], "--label", label, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("simulated-riscv-2gpu/*/*/run.json")
    assert json.loads(path.read_text())["label"] == label


@pytest.mark.parametrize("label", BAD)
def test_another_is_refused_in_one_line_before_anything_is_measured(tmp_path, label):
    done = called("run", *COMMANDS["run"], "--label", label, "--out", tmp_path / "results")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.isprintable()
    assert line.endswith("is no label: give 1 to 64 printable characters, and no part '..'")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_takes_one_refuses_it(tmp_path, command):
    done = called(command, *COMMANDS[command], "--label", "../../etc", cwd=tmp_path)
    assert done.returncode == 2
    assert "'../../etc' is no label" in done.stderr
    assert not any(tmp_path.iterdir())


def test_the_api_refuses_it_too():
    with pytest.raises(InputError, match="is no label"):
        api.measure("sim:0 -> sim:1 by ce", machine="riscv-2gpu", label="a\nb")


@pytest.mark.parametrize("label", [*BAD[:-1], "y" * 300])
def test_runs_of_earlier_versions_with_any_label_still_load(tmp_path, label):
    assert called("run", *COMMANDS["run"], "--out", tmp_path).returncode == 0
    (path,) = tmp_path.glob("*/*/*/run.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "label": label}))
    assert called("show", path).returncode == 0
    assert json.loads(called("show", path, "--json").stdout)["label"] == label
