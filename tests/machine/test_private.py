"""What names a machine is its owner's alone, whatever the umask is."""

import os
import stat

import pytest

from command_kit import called

RUN = ("run", "device_local_copy", "--machine", "riscv-2gpu", "--size", "1M", "--samples", "2")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_captures_packs_and_histories_are_their_owners_alone(tmp_path):
    data = tmp_path / "data" / "of" / "mine"
    environment = {"XDG_DATA_HOME": data, "LINKGAUGE_HISTORY": ""}
    machine, packed = tmp_path / "box.tgz", tmp_path / "run.tar.zst"
    done = called("capture", machine, "--backend", "host", **environment)
    assert done.returncode == 0, done.stderr
    done = called(*RUN, cwd=tmp_path, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    done = called("pack", "default", "-o", packed, cwd=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    history = data / "linkgauge" / "history.db"
    for path in (machine, packed, *history.parent.iterdir()):
        assert mode(path) == 0o600, path
    for folder in (data.parent.parent, data.parent, data, history.parent):
        assert mode(folder) == 0o700, folder
    history.chmod(0o664)  # one that its owner has shared stays shared
    assert called(*RUN, cwd=tmp_path, **environment).returncode == 0
    assert mode(history) == 0o664
