"""A watch, its history, an exporter that reads it and a Prometheus that scrapes that: a link that
degrades fires the alerts of contrib/. LINKGAUGE_CAMPAIGN=full does so for ten real minutes."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime
from itertools import accumulate
from pathlib import Path

import pytest

from command_kit import called
from exporter_kit import exporting
from linkgauge.model.printable import printable
from prometheus_kit import DEADLINE, prometheus
from watch_kit import READ, StandingClock, watch

VARIABLE = "LINKGAUGE_HISTORY"
HOSTILE = 'say "hi"\n\\n {x="y"}\u202eright to left'
FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
DEGRADED = 'ALERTS{alertname="LinkgaugeBandwidthDegraded"}'
MEASURED = "max(linkgauge_cell_measured_timestamp_seconds)"


@contextmanager
def scraped(machine, folder, history, interval):
    """A Prometheus that scrapes an exporter of this history."""
    with exporting("--machine", machine, "--listen", "0", **{VARIABLE: str(history)}) as (_, line):
        (at,) = re.findall(r"^metrics at http://([\d.:]+)/metrics\n$", line)
        with prometheus(folder, at, interval) as running:
            yield running


class Scraped(StandingClock):
    """Passes once Prometheus knows what the last probe measured, however long that takes."""

    def __init__(self, known):
        super().__init__()
        self._known, self._last = known, "0"

    def sleep(self, seconds):
        super().sleep(seconds)
        newer = self._known("query", query=f"{MEASURED} > {self._last}")
        assert newer, f"no new figure reached Prometheus in {DEADLINE} s"
        self._last = newer[0]["value"][1]


def test_a_link_that_degrades_fires_the_alerts(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "h.db"))
    # The first probe takes one cell, to see how long one takes; each further one takes all six.
    fault = "slow sim:1-sim:2 rate=30% cells=13.."
    with scraped("ppu-8", tmp_path, tmp_path / "h.db", "500ms") as known:
        watch(
            monkeypatch, "ppu-8", fault, clock=Scraped(known), budget=0.9, probes=4,
            label=HOSTILE, devices=("0", "1", "2"),
        )  # fmt: skip
        # The verdict calls none of these figures low: what fires knows the history alone.
        alert = 'ALERTS{alertstate="firing"}'
        query = f"{alert} and on () count({alert}) == 2"  # not while only one is known
        found = [one["metric"] for one in known("query", query=query)]
        assert {one["alertname"] for one in found} == {"LinkgaugeBandwidthDegraded"}
        assert sorted((one["row"], one["column"]) for one in found) == [("1", "2"), ("2", "1")]
        assert {(one["simulated"], one["label"]) for one in found} == {("true", printable(HOSTILE))}


MINUTE = 60.0
CELLS = 56


@pytest.mark.skipif(not FULL, reason="takes ten minutes: LINKGAUGE_CAMPAIGN=full")
def test_ten_real_minutes(tmp_path):
    history = tmp_path / "h.db"
    environment = {**os.environ, VARIABLE: str(history)}
    command = [
        sys.executable, "-m", "linkgauge", "watch", READ, "--machine", "dgx-h200-8",
        "--every", "10s", "--budget", "5%", "--for", "10m", "--json",
        "--fault", f"slow sim:2-nvswitch rate=60% cells={30 * CELLS}..",
    ]  # fmt: skip
    with scraped("dgx-h200-8", tmp_path, history, "15s") as known:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment,
            timeout=13 * MINUTE,
        )  # fmt: skip
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 1, done.stderr
        began, ended = (seconds(events[at]["time"]) for at in (0, -1))
        states = known("query_range", query=DEGRADED, start=began, end=ended, step=1)
        up = known("query_range", query='up{job="linkgauge"}', start=began, end=ended, step=1)
    out = Path(os.environ.get("OUT", tmp_path))
    (out / "watch.jsonl").write_text(done.stdout)
    (out / "alerts.json").write_text(json.dumps([states, up]))
    probes = [event for event in events if event["event"] == "probe"]
    totals = accumulate(probe["cells"] for probe in probes)
    struck = next(p for p, so_far in zip(probes, totals, strict=True) if so_far > 30 * CELLS)
    found = [event for event in events if event["event"] == "degraded"]
    firing = [one for one in states if one["metric"]["alertstate"] == "firing"]
    first = min(float(at) for one in firing for at, _ in one["values"])
    trend = json.loads(called("history", "trend", READ, "--json", **environment).stdout)
    (change,) = trend["trends"][0]["changes"]
    runs = {run["number"]: run["started"] for run in trend["trends"][0]["runs"]}
    moment, strike = seconds(runs[change["since"]]), seconds(struck["time"])
    noticed = seconds(found[0]["time"])
    moments = {"struck": strike, "noticed": noticed, "history": moment, "firing": first}
    print({what: round(at - began, 1) for what, at in moments.items()}, events[-1])
    assert events[0]["cells"] == CELLS
    assert events[-1]["duty"] <= 0.05
    for places in (found, [{"cell": one["metric"]} for one in firing]):
        assert len(places) == 14
        assert all("2" in (one["cell"]["row"], one["cell"]["column"]) for one in places)
    assert (change["direction"], len(change["cells"])) == ("worse", 14)
    assert abs(moment - strike) < 20
    assert -5 <= first - strike < MINUTE
    assert {value for one in up for _, value in one["values"]} == {"1"}


def seconds(moment):
    return datetime.fromisoformat(moment).timestamp()
