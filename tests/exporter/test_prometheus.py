"""A Prometheus scrapes the exporter: every query of the dashboard returns data there, its variables
have values, and an alert fires."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

import prometheus_kit
from exporter_kit import RESULTS, RUN, nvml, page
from linkgauge.model.printable import printable
from linkgauge.rooms.exporter.results import Results
from linkgauge.rooms.exporter.server import LOOPBACK, Address, MetricsServer

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "contrib" / "grafana-dashboard.json"
HOSTILE = 'say "hi"\n\\n\u202eright to left ' + 10_000 * "x"
BOARD = json.loads(DASHBOARD.read_text("utf-8"))
QUERIES = [
    (one["title"], target["expr"]) for one in BOARD["panels"] for target in one.get("targets", ())
]
VARIABLES = [one for one in BOARD["templating"]["list"] if one["type"] == "query"]


def filled(query):
    """With all values of each variable, as Grafana fills them in."""
    for one in VARIABLES:
        query = query.replace(f"${one['name']}", one["allValue"])
    return query.replace("$__rate_interval", "10s")


def test_the_dashboard_is_what_its_tool_makes(tmp_path):
    made = tmp_path / "made.json"
    tool = [sys.executable, "-W", "error", ROOT / "tools" / "dashboard", made]
    subprocess.run(tool, check=True, timeout=60, cwd=tmp_path)
    assert made.read_text("utf-8") == DASHBOARD.read_text("utf-8"), "make screens makes it anew"


def test_the_dashboard_is_whole():
    assert len(QUERIES) >= 25
    assert [one["name"] for one in VARIABLES] == ["host", "label", "benchmark"]
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert "null" not in re.findall(r"\w+", DASHBOARD.read_text("utf-8"))
    assert all(f"${one['name']}" not in filled(query) for one in VARIABLES for _, query in QUERIES)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """Asks a Prometheus that scrapes the exporter of a host with a low cell and two GPUs."""
    with nvml():
        other = replace(RUN, id=HOSTILE, label="nightly", host="box", simulated=True)
        shown = page(Results((*RESULTS.runs, other), RESULTS.figures))
        with MetricsServer(Address(LOOPBACK, 0), lambda form: shown.text(form=form)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with prometheus_kit.prometheus(tmp_path_factory.mktemp("p"), server.at) as running:
                yield running
            server.shutdown()


def test_every_query_returns_data(prometheus):
    for title, query in QUERIES:
        found = prometheus("query", query=filled(query))
        assert found, f"{title}: {query}"
        assert all(one["value"][1] != "NaN" for one in found), title


def test_every_variable_has_values(prometheus):
    wanted = {
        "host": ["box"], "label": ["nightly"], "benchmark": ["host_to_device_memcpy_ce", "latency"]
    }  # fmt: skip
    for one in VARIABLES:
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", one["query"]).groups()
        found = prometheus(f"label/{label}/values", **{"match[]": filled(selector)})
        assert found == wanted[one["name"]]


def test_the_exporter_is_up_and_an_alert_fires(prometheus):
    assert prometheus("query", query='up{job="linkgauge"} == 1')
    firing = prometheus("query", query='ALERTS{alertstate="firing",alertname=~".*Below.*"}')
    assert [one["metric"]["column"] for one in firing] == ["2"]


def test_a_hostile_label_arrives_as_it_is_shown(prometheus):
    found = prometheus("query", query='linkgauge_last_run_info{run!="r1"}')
    assert [one["metric"]["run"] for one in found] == [printable(HOSTILE)]
