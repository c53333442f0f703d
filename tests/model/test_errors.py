"""What errors say."""

import sys

from linkgauge.model.errors import MissingPackage


def test_a_package_is_installed_by_the_python_that_runs(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/my venv/bin/python")
    said = str(MissingPackage("zstandard", "pack"))
    assert "'/my venv/bin/python' -m pip install 'linkgauge[pack]'" in said
