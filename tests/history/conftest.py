"""`url` is an empty history: in SQLite, and in PostgreSQL where it is installed."""

import tempfile
from pathlib import Path

import pytest

from history_kit import cluster, database
from linkgauge.history.address import address


@pytest.fixture(scope="session")
def server():
    """A cluster for all tests of this process. Its folder's name is short: a socket's has to be."""
    with tempfile.TemporaryDirectory(prefix="lg-") as folder:
        Path(folder).chmod(0o755)
        with cluster(Path(folder)) as place:
            yield place


@pytest.fixture(params=["sqlite", "postgresql"])
def text(request, tmp_path):
    """The address as a person writes it."""
    if request.param == "sqlite":
        return str(tmp_path / "history.db")
    return database(request.getfixturevalue("server"))


@pytest.fixture
def url(text):
    return address(text)
