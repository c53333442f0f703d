"""A file that cannot be written where a person asked for it is bad input, for every command."""

import os

import pytest

from command_kit import called
from linkgauge.model.errors import InputError, ResultsError, unwritable

RUN = ("run", "host_to_device_memcpy_ce", "--machine", "ppu-8", "--samples", "1", "--no-report")
COMMANDS = [
    ("report", "default", "-o", "{}.html"),
    ("export", "default", "--csv", "-o", "{}.csv"),
    ("pack", "default", "-o", "{}.tar.zst"),
    ("capture", "{}.tgz", "--backend", "host"),
    ("baseline", "default", "-o", "{}.json"),
    ("baseline", "default", "-o", "b.json", "--write-limits", "{}.yml"),
    ("gate", "--baseline", "default", "--current", "default", "--json", "-o", "{}.json"),
    ("exporter", "--machine", "ppu-8", "--textfile", "{}.prom"),
    (*RUN, "--out", "{}"),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    assert called(*RUN, cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("place", ["gone/x", "file/x"])
def test_it_is_exit_2_and_names_the_file(kept, command, place):
    if command[0] == "exporter":
        pytest.importorskip("prometheus_client")
    if command[0] == "pack":
        pytest.importorskip("zstandard")
    (kept / "file").touch()
    base = "/proc/none/x" if command[0] == "run" else place
    done = called(*(word.format(base) for word in command), cwd=kept)
    assert done.returncode == 2, done.stdout + done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("linkgauge: cannot write ")
    assert base in line


@pytest.mark.parametrize(
    ("code", "kind"),
    [(2, InputError), (13, InputError), (21, InputError), (30, InputError), (28, ResultsError)],
)
def test_only_a_disk_that_is_full_or_fails_is_no_bad_input(code, kind):
    error = unwritable("x", OSError(code, os.strerror(code)))
    assert type(error) is kind
    assert str(error) == f"cannot write x: {os.strerror(code)}"
