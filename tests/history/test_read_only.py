"""A history on a medium that cannot be written to is read all the same."""

import os
from pathlib import Path

import pytest

from history_kit import run_at
from linkgauge.history.address import address
from linkgauge.history.reading import Filter, runs_of
from linkgauge.history.store import StoreError, opened
from linkgauge.history.writing import add


@pytest.fixture
def frozen(tmp_path, monkeypatch):
    path = tmp_path / "history.db"
    with opened(address(str(path))) as store:
        add(store, run_at(0), Path("/kept"))
    real = os.access

    def access(place, mode):
        return real(place, mode) and not (mode == os.W_OK and tmp_path in (place, place.parent))

    monkeypatch.setattr(os, "access", access)
    return path


def test_it_is_read_and_left_as_it_is(frozen):
    before = sorted((one.name, one.stat().st_mtime_ns) for one in frozen.parent.iterdir())
    with opened(address(str(frozen)), must_exist=True) as store:
        assert len(runs_of(store, Filter())) == 1
        during = sorted((one.name, one.stat().st_mtime_ns) for one in frozen.parent.iterdir())
    assert during == before


def test_writing_says_why_it_cannot(frozen):
    with (
        opened(address(str(frozen))) as store,
        pytest.raises(StoreError, match=f"{frozen.parent} cannot be written to"),
    ):
        add(store, run_at(1), Path("/kept"))
