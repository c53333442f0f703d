"""A notebook's charts are those of a page, and altair's own."""

import pytest

from linkgauge.report import chart_specs, charts

alt = pytest.importorskip("altair", reason="no wheels for this machine")

ROWS = [{"x": 64 << n, "y": 1.0 + n, "series": "a", "says": "first" if not n else None}
        for n in range(8)]  # fmt: skip
FLAT = [{"x": 64, "x2": 1024, "y": 2.0, "series": "a", "says": "L1"}]
KNEE = [{"x": 256, "says": "knee"}]
BARS = [{"series": "a", "x": 1, "low": 0.9, "high": 1.1, "kind": "better", "says": "+1 %"}]
EACH = {
    "sizes": (charts.sizes(ROWS, "GB/s", marks=[64]), chart_specs.sizes("GB/s", marks=[64])),
    "counts": (charts.counts(ROWS, "copies", "GB/s"), chart_specs.counts("copies", "GB/s")),
    "cdf": (charts.cdf(ROWS, "ns"), chart_specs.cdf("ns")),
    "over_time": (charts.over_time(ROWS, "°C"), chart_specs.over_time("°C")),
    "levels": (charts.levels(ROWS, FLAT, "ns"), chart_specs.levels(FLAT, "ns")),
    "scaling": (charts.scaling(ROWS, KNEE), chart_specs.scaling(KNEE)),
    "bars": (charts.bars(BARS, "%"), chart_specs.bars("%")),
}  # fmt: skip


@pytest.mark.parametrize("name", EACH)
def test_a_chart_of_a_notebook_is_that_of_a_page(name):
    chart, spec = EACH[name]
    made = chart.to_dict()
    for layer in made["layer"]:
        if "data" in layer:  # altair may keep data beside the layers, by name
            name = layer["data"].get("name")
            layer["data"] = {"values": made["datasets"][name]} if name else layer["data"]
    assert {key: made[key] for key in spec} == spec


@pytest.mark.parametrize("name", EACH)
def test_a_chart_of_a_notebook_has_altairs_methods(name):
    chart, _ = EACH[name]
    assert chart.interactive().to_dict()["params"]
    assert all(isinstance(layer, alt.Chart) for layer in chart.layer)


@pytest.mark.parametrize("data", [alt.NamedData(name="rows"), alt.UrlData(url="rows.csv")])
def test_data_may_be_whatever_altair_takes(data):
    made = charts.levels(data, data, "ns").to_dict()
    assert {str(part["data"]) for part in (made, *made["layer"]) if "data" in part} == {
        str(data.to_dict())
    }
    assert charts.scaling(data, data).to_dict()["layer"]
