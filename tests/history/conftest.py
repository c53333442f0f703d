"""`url` is an empty history: in SQLite, and in PostgreSQL where it is installed."""

import tempfile
from itertools import count
from pathlib import Path

import pytest

from history_kit import cluster
from linkgauge.history.address import address

NUMBERS = count()


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


def database(server):
    """The address of a new database."""
    import psycopg

    name = f"h{next(NUMBERS)}"
    with psycopg.connect(f"host={server} user=linkgauge dbname=postgres", autocommit=True) as one:
        one.execute(f"CREATE DATABASE {name}")
    return f"postgresql://linkgauge:secret@/{name}?host={server}"
