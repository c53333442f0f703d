from importlib import import_module

import pytest

from linkgauge.judge import doctor
from linkgauge.judge.findings import checks_in


@pytest.fixture(autouse=True)
def _files_that_are_not_loaded_find_nothing(monkeypatch):
    """Holds for all evidence of these tests, whatever it is about."""
    chosen = doctor.checks_of

    def checks_of(evidence):
        checks = chosen(evidence)
        left = doctor.FILES.keys() - {check.__module__ for check in checks}
        for check in checks_in(*map(import_module, sorted(left))):
            assert not [*check(evidence)], f"{check.__module__} is needed"
        return checks

    monkeypatch.setattr(doctor, "checks_of", checks_of)
