"""What names a machine is its owner's alone, whatever the umask is."""

import os
import stat
import sys
from contextlib import contextmanager

import pytest

from command_kit import called

RUN = ("run", "device_local_copy", "--machine", "riscv-2gpu", "--size", "1M", "--samples", "2")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_captures_packs_and_histories_are_their_owners_alone(tmp_path, mask):
    data = tmp_path / "data" / "of" / "mine"
    environment = {"XDG_DATA_HOME": data, "LINKGAUGE_HISTORY": ""}
    machine, packed = tmp_path / "box.tgz", tmp_path / "run.tar.zst"
    with umask(mask):
        done = called("capture", machine, "--backend", "host", **environment)
        assert done.returncode == 0, done.stderr
        done = called(*RUN, cwd=tmp_path, **environment)
        assert (done.returncode, done.stderr) == (0, "")
        if sys.version_info >= (3, 14) or pytest.importorskip("zstandard"):
            done = called("pack", "default", "-o", packed, cwd=tmp_path, **environment)
            assert done.returncode == 0, done.stderr
    history = data / "linkgauge" / "history.db"
    assert history.stat().st_size > 0
    for path in (machine, packed, *history.parent.iterdir()):
        assert mode(path) == 0o600, path
    for folder in (data.parent.parent, data.parent, data, history.parent):
        assert mode(folder) == 0o700, folder
