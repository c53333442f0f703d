"""What the exporter sends to an OpenTelemetry collector: the official library encodes it, and the
official messages of OTLP decode it."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from exporter_kit import PATIENT, RESULTS, nvml, page
from linkgauge.model.errors import InputError

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult
from opentelemetry.semconv._incubating.attributes import hw_attributes
from opentelemetry.semconv._incubating.metrics import hw_metrics

from linkgauge.rooms.exporter.otlp import CONVENTIONS, Collector, exporter_to

GPU = {"hw.id": "0000:1c:00.0", "hw.type": "gpu", "device": "1", "host.name": "box",
       "simulated": "false"}  # fmt: skip


class InMemory(MetricExporter):
    def __init__(self):
        super().__init__()
        self.taken = []

    def export(self, metrics_data, timeout_millis=10_000, **kwargs):
        self.taken.append(metrics_data)
        return MetricExportResult.SUCCESS

    def shutdown(self, timeout_millis=30_000, **kwargs):
        pass

    def force_flush(self, timeout_millis=10_000):
        return True


@pytest.fixture(scope="module")
def sent():
    """The metrics of a host with two GPUs and a few results, by name."""
    kept = InMemory()
    with nvml() as library:
        library.fields |= {"NVLINK_COUNT_XMIT_BYTES": 5, "NVLINK_COUNT_RCV_BYTES": 7}
        assert Collector(kept, "box").send(page(RESULTS).families(PATIENT))
    (data,) = kept.taken
    ((own,),) = (one.scope_metrics for one in data.resource_metrics)
    resource = data.resource_metrics[0].resource.attributes
    assert (resource["service.name"], resource["host.name"]) == ("linkgauge", "box")
    assert len({one.name for one in own.metrics}) == len(own.metrics)
    return {one.name: one for one in own.metrics}


def value(metric, **attributes):
    """That of the only point with these attributes, and no others."""
    (found,) = (one.value for one in metric.data.data_points if one.attributes == attributes)
    return found


def test_gpus_have_the_names_and_units_of_the_conventions(sent):
    assert value(sent["hw.temperature"], **GPU) == 41
    assert sent["hw.temperature"].unit == "Cel"
    assert value(sent["hw.power"], **GPU) == 118.25
    assert value(sent["hw.status"], **GPU, **{"hw.state": "ok"}) == 1
    assert value(sent["hw.status"], **GPU, **{"hw.state": "failed"}) == 0
    errors = sent["hw.errors"]
    assert (errors.unit, errors.data.is_monotonic) == ("{error}", True)
    assert value(errors, **GPU, **{"error.type": "ecc corrected"}) == 3
    assert value(errors, **GPU, **{"error.type": "pcie replay"}) == 7
    link = {**GPU, "kind": "nvlink", "link": "0"}
    ways = {"transmit": 5, "receive": 7}
    assert {
        way: value(sent["hw.gpu.io"], **link, **{"network.io.direction": way}) for way in ways
    } == ways


def test_the_conventions_know_these_names_units_and_attributes(sent):
    made = {"counter": "Sum", "gauge": "Gauge", "updowncounter": "Gauge"}
    source = Path(hw_metrics.__file__).read_text("utf-8")
    ours = {name: one for name, one in sent.items() if name.startswith("hw.")}
    assert ours.keys() == {one.name for one in CONVENTIONS.values()} | {"hw.status"}
    for name, one in ours.items():
        stated = source.split(f'"{name}"\n"""')[1].partition('"""')[0]
        assert f"Unit: {one.unit}\n" in stated
        instrument = stated.split("Instrument: ")[1].split()[0]
        assert type(one.data).__name__ == made[instrument]
        for point in one.data.data_points:
            known = {hw_attributes.HW_ID, hw_attributes.HW_TYPE}
            assert known <= point.attributes.keys()
            kinds = {kind.value for kind in hw_attributes.HwTypeValues}
            assert point.attributes["hw.type"] in kinds | {"bridge", "other"}


def test_other_metrics_keep_their_names_and_have_units_apart(sent):
    wanted = {
        "linkgauge.cell_bandwidth": "By/s", "linkgauge.cell_latency": "s",
        "linkgauge.cell_verdict": "1",
        "linkgauge.gpu_clock": "Hz", "linkgauge.pcie_link_speed": "{transfer}/s",
        "linkgauge.pcie_link_width": "{lane}", "linkgauge.last_run_started_timestamp": "s",
        "linkgauge.gpu_power_limit": "W",
    }  # fmt: skip
    assert {name: sent[name].unit for name in wanted} == wanted
    points = sent["linkgauge.cell_bandwidth"].data.data_points
    assert sorted((one.attributes["column"], one.value) for one in points) == [
        ("1", 50e9), ("2", 20e9),
    ]  # fmt: skip


@contextmanager
def collector(status=200):
    """Takes OTLP over HTTP, and what it took."""
    taken = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
            taken.append((self.path, request))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Takes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", taken
        server.shutdown()


def test_a_collector_takes_every_metric_of_the_page():
    with collector() as (url, taken), nvml():
        shown = page(RESULTS)
        parts = shown.families(PATIENT)
        assert Collector(exporter_to(url), "box").send(parts)
    ((path, request),) = taken
    assert path == "/v1/metrics"
    ((own,),) = (one.scope_metrics for one in request.resource_metrics)
    points = sum(len(one.gauge.data_points or one.sum.data_points) for one in own.metrics)
    samples = [one for part in parts for family in part.collect() for one in family.samples]
    up = sum(one.name == "linkgauge_gpu_up" for one in samples)
    assert points == len(samples) + up  # a state each


def test_a_collector_that_refuses_is_said():
    with collector(status=400) as (url, _), nvml():
        assert not Collector(OTLPMetricExporter(f"{url}/other"), "box").send(page().families())


@pytest.mark.parametrize("url", ["here", "ftp://host", "http://", "http://ho st/x"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InputError, match="--otlp"):
        exporter_to(url)
