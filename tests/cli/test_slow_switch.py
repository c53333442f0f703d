"""All-reduces of eight GPUs on a switch that is slow although all links to it are active, and on
one that does not reduce: what is low, and by which part."""

import json

import pytest
import yaml

from command_kit import called
from linkgauge.backends.sim.description import load

REDUCES = yaml.safe_load(load("dgx-h200-8")[1])
RINGS = {name: value for name, value in REDUCES.items() if name != "collectives"}
AT = {180: 37.2, 240: 49.6, 300: 62, 360: 74.4, 430: 89, 476: 98.5}
"""The bus bandwidth in GB/s, and what is left of the switch's rate in percent."""


def asked(command, folder, *words):
    name = () if command == "scale" else ("all_reduce",)
    gpus = ("--gpus", 8) if command == "scale" else ()
    done = called(command, *name, *words, *gpus, "--size", "512M", "--no-report", "--json",
                  "--out", folder)  # fmt: skip
    document = json.loads(done.stdout)
    if command == "scale":
        found = document["counts"][-1]
        return found["plateau"] / 1e9, found["verdict"], document
    cell = document["results"][0]["cells"][0]
    return cell["bytes"] / cell["summary"]["median"] * 1.75 / 1e9, cell["verdict"], document


@pytest.mark.parametrize("command", ["run", "scale"])
@pytest.mark.parametrize("busbw", AT)
def test_a_slow_switch_is_low_and_named(busbw, command, tmp_path):
    fault = f"slow nvswitch rate={AT[busbw]}%"
    figure, verdict, document = asked(
        command, tmp_path, "--machine", "dgx-h200-8", "--fault", fault
    )
    assert figure == pytest.approx(busbw, rel=0.01)
    if busbw > 400:
        assert verdict in ("ok", "perhaps low")
        assert (document["verdict"], document["exit_code"]) == ("ok", 0)
        return
    assert (verdict, document["exit_code"]) == ("low", 1)
    found = {(one["check"], one["subject"].split()[-1]) for one in document["findings"]}
    assert found == {("slow", "nvswitch")}


@pytest.mark.parametrize("command", ["run", "scale"])
def test_rings_in_place_of_reductions_are_perhaps_low(command, tmp_path):
    (tmp_path / "rings.yml").write_text(yaml.safe_dump(RINGS))
    figure, verdict, document = asked(command, tmp_path, "--machine", tmp_path / "rings.yml")
    assert figure == pytest.approx(360, rel=0.02)
    assert (verdict, document["verdict"], document["exit_code"]) == ("perhaps low", "warn", 0)
    assert [one["check"] for one in document["findings"]] == ["in-switch"]
