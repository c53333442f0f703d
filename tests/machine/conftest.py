"""Captured machines that lie beside this project, as archives of some thousand files."""

import tarfile
from functools import cache
from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "shared/data/sysfs"


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """The root of the machine in the archive of a name, which no test may change."""

    @cache
    def root_of(name):
        archive = DATA / f"{name}.tar.bz2"
        if not archive.exists():
            pytest.skip(f"{archive} is absent: it is third-party data beside this project")
        folder = tmp_path_factory.mktemp("captured")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter=_inside)
        (root,) = folder.iterdir()
        return root

    return root_of


def _inside(member, path):
    """The data filter, but links that lead outside are left out."""
    try:
        return tarfile.data_filter(member, path)
    except tarfile.FilterError:
        return None
