"""A watch, its history, an exporter that reads it and a Prometheus that scrapes that: a link that
degrades fires the alerts of contrib/."""

import re
from contextlib import contextmanager

from exporter_kit import exporting
from linkgauge.model.printable import printable
from prometheus_kit import DEADLINE, prometheus
from watch_kit import StandingClock, watch

VARIABLE = "LINKGAUGE_HISTORY"
HOSTILE = 'say "hi"\n\\n {x="y"}\u202eright to left'
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
        # Figures that are low beside their peers fire an alert, too: this one knows the history.
        alert = 'ALERTS{alertstate="firing",alertname="LinkgaugeBandwidthDegraded"}'
        query = f"{alert} and on () count({alert}) == 2"  # not while only one is known
        found = [one["metric"] for one in known("query", query=query)]
        assert {one["alertname"] for one in found} == {"LinkgaugeBandwidthDegraded"}
        assert sorted((one["row"], one["column"]) for one in found) == [("1", "2"), ("2", "1")]
        assert {(one["simulated"], one["label"]) for one in found} == {("true", printable(HOSTILE))}
