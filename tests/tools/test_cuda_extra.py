"""Which CUDA packages `make run` installs, by what the driver says of itself and of its devices."""

import ctypes
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "cuda-extra"


class Library:
    """libcuda as far as the script asks it: a version, and each device's compute capability."""

    def __init__(self, version, *capabilities):
        self.version, self.capabilities = version, capabilities

    def cuDriverGetVersion(self, out):  # noqa: N802
        out._obj.value = self.version
        return 0

    def cuInit(self, flags):  # noqa: N802
        return 0 if self.capabilities else 100

    def cuDeviceGetCount(self, out):  # noqa: N802
        out._obj.value = len(self.capabilities)
        return 0

    def cuDeviceGetAttribute(self, out, attribute, device):  # noqa: N802
        out._obj.value = divmod(self.capabilities[device], 10)[attribute - 75]
        return 0


@pytest.mark.parametrize(
    ("library", "extra"),
    [
        (Library(13000, 90, 90), "cuda13"), (Library(14010, 103), "cuda13"),
        (Library(13000, 90, 70), "cuda12"), (Library(12080, 90), "cuda12"),
        (Library(13000), "cuda13"), (Library(11080, 90), ""), (None, ""),
    ],
)  # fmt: skip
def test_the_extra_is_the_drivers_and_one_that_knows_its_devices(
    library, extra, monkeypatch, capsys
):
    def load(name):
        assert name == "libcuda.so.1"
        if library is None:
            raise OSError(name)
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    runpy.run_path(str(SCRIPT))
    assert capsys.readouterr().out.strip() == extra
