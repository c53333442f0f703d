"""Whole profiles, from the command line to the last line shown: what each alone would not notice
is a result that measures well and cannot be shown."""

import json
import re

from cli.test_cli import linkgauge
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.plan import lay_out
from linkgauge.machine.host import read_host

BRIEF = ("--size", "1M", "--max-time", "0.02")


def measured_and_shown(profile, tmp_path, *arguments):
    """The run's names with their status, and what the terminal shows of it."""
    done = linkgauge("run", "--profile", profile, "--out", tmp_path, *BRIEF, *arguments)
    assert done.returncode in (0, 1), done.stderr  # 1: a figure is low, which says nothing here
    assert "Traceback" not in done.stderr
    (kept,) = tmp_path.glob("*/default/*")
    document = json.loads((kept / "run.json").read_text())
    assert document["finished"] is not None
    return {one["benchmark"]: one["status"] for one in document["results"]}, done.stdout


def test_the_quick_profile_of_the_host_ends_and_is_shown(tmp_path):
    statuses, shown = measured_and_shown("quick", tmp_path, "--backend", "host")
    of_host = lay_out(select((), (), profile="quick"), (), read_host().nodes)
    rows = [benchmark.name for benchmark in of_host]
    assert list(statuses) == rows
    assert not set(statuses.values()) & {"error", "timeout", "fail"}
    for name in rows:
        assert re.search(rf"^{name}\b", shown, re.MULTILINE)
    assert shown.splitlines()[-1].startswith("results: ")
