"""What names a machine is its owner's alone, whatever the umask is."""

import os
import stat
import sys
from contextlib import contextmanager

import pytest

from command_kit import called
from linkgauge.machine.private import new_private, private_folder

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


def test_a_history_that_its_owner_has_shared_stays_shared(tmp_path):
    environment = {"LINKGAUGE_HISTORY": tmp_path / "h.db"}
    assert called(*RUN, cwd=tmp_path, **environment).returncode == 0
    (tmp_path / "h.db").chmod(0o664)
    assert called(*RUN, cwd=tmp_path, **environment).returncode == 0
    assert mode(tmp_path / "h.db") == 0o664


def test_the_umask_does_not_take_the_owners_own_rights(tmp_path):
    with umask(0o777):
        private_folder(tmp_path / "a" / "b")
        with new_private(tmp_path / "a" / "b" / "c") as file:
            file.write(b"x")
    assert [mode(tmp_path / at) for at in ("a", "a/b", "a/b/c")] == [0o700, 0o700, 0o600]
    with pytest.raises(FileExistsError):
        new_private(tmp_path / "a" / "b" / "c")
