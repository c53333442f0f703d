"""Commands to type next can be typed as they stand."""

import pytest

from linkgauge.report.program import program


@pytest.mark.parametrize(
    ("typed", "found", "expected"),
    [
        (".venv/bin/linkgauge", None, ".venv/bin/linkgauge"),
        (".venv/bin/linkgauge", "/usr/bin/linkgauge", "linkgauge"),
        ("/usr/lib/python3/pytest", None, "linkgauge"),
        ("", None, "linkgauge"),
    ],
)
def test_is_its_name_unless_only_its_path_leads_to_it(monkeypatch, typed, found, expected):
    monkeypatch.setattr("sys.argv", [typed])
    monkeypatch.setattr("shutil.which", lambda name: found)
    assert program() == expected
