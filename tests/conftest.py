"""Campaigns: `make test` runs a seeded subset of the fuzz cases, `make test-long` all of them."""

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

import campaigns

# Tests start hundreds of processes, which would all compile the same source anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Most tests of runs are not of their reports, which take as long as the runs.
os.environ["LINKGAUGE_NO_REPORT"] = "1"

# Set by whatever runs the tests: output that is no terminal would be as narrow.
os.environ.pop("COLUMNS", None)

# No test adds to the history of the person who runs it.
os.environ["LINKGAUGE_HISTORY"] = "none"

# A shell's background job ignores Ctrl-C, what nohup starts a terminal's end, and so would every
# process that tests interrupt.
for _signal, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _handler)

# No deadline: a loaded machine is slow, not wrong.
settings.register_profile(
    "calm", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
calm = settings.get_profile("calm")
settings.register_profile("subset", calm, derandomize=True, max_examples=10)
settings.register_profile("full", calm, max_examples=5000)
settings.load_profile(os.environ.get("LINKGAUGE_CAMPAIGN", "subset"))


gc.disable()  # there is next to no garbage before the first test


def pytest_collection_finish():
    """What all tests share outlives them: the collector need not look at it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def holds(record_property):
    """Says that a campaign's rate is within its bound (campaigns.yml)."""

    def check(name, happened, of, case="all"):
        rate = campaigns.Rate(name, happened, of, case)
        record_property(campaigns.KEY, str(rate))
        assert rate.holds, rate

    return check


def pytest_terminal_summary(terminalreporter):
    """The rates of the long campaigns, beside those that were measured before."""
    rows = [
        row
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, row in getattr(report, "user_properties", ())
        if name == campaigns.KEY and report.when == "call"
    ]
    if rows and campaigns.FULL:
        terminalreporter.write_line("\n".join((*campaigns.HEAD, *sorted(rows))))
