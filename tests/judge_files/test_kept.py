"""`--machine mine` and `--machine RUN`: a machine described by what was read of it."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.cli.devices import survey
from linkgauge.engine.kept.runs import read_run
from linkgauge.judge.findings import Evidence, evidence_of
from linkgauge.rooms.judge_files.descriptions import describe, facts_of, given

RUN = Path(__file__).parents[1] / "data/runs-2xH100/06.json.gz"


def links_of(text):
    """How many links of which kind and rate each accelerator has, and where PCIe leads."""
    hardware = build(parse_description(text))
    found = Counter()
    for link in hardware.links:
        for end, other in ((link.a, link.b), (link.b, link.a)):
            if end.startswith("sim:"):
                far = other if other.startswith(("sim:", "host:")) else "switch"
                found[end, link.kind, far] += link.rate / 1e9
    return dict(found)


@pytest.mark.parametrize(
    "name", ["dgx-h200-8", "full-8", "ring-8", "islands-2x4", "pcie-tree-8", "rbln-32"]
)
def test_a_machine_is_described_by_what_is_read_of_it(name):
    read = describe(name, [facts_of(Evidence(survey((), name)))])
    expected = links_of(load(name)[1])
    assert links_of(read.text) == pytest.approx(expected, rel=1e-3)


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "h100.json"
    path.write_bytes(gzip.decompress(RUN.read_bytes()))
    return path


def test_a_kept_run_of_two_gpus_simulates_as_it_measured(kept, tmp_path):
    measured, names = (
        read_run(kept),
        ("host_to_device_memcpy_ce", "device_to_device_memcpy_read_ce"),
    )
    done = called("run", *names, "--machine", kept, "--out", tmp_path, "--csv")
    assert done.returncode == 0, done.stderr
    (own,) = tmp_path.rglob("run.json")
    for name in names:
        each = [
            [cell.headline for cell in result.cells if cell.headline]
            for run in (measured, read_run(own))
            for result in run.results
            if result.benchmark == name
        ]
        assert each[1] == pytest.approx(each[0], rel=0.03), name


def test_a_link_that_was_slow_under_load_stays_slow(tmp_path):
    called("run", "host_to_device_memcpy_ce", "--machine", "vm-degraded", "--out", tmp_path)
    (file,) = tmp_path.rglob("run.json")
    text = describe("x", [facts_of(evidence_of(read_run(file)))]).text
    assert links_of(text)["sim:0", "pcie", "host:0"] == pytest.approx(4.0)


def test_a_simulated_run_is_simulated_again_as_it_was(tmp_path):
    called("run", "cpu_primes_single", "--machine", "full-8", "--out", tmp_path, "--label", "x")
    assert load(str(tmp_path)) == load("full-8")


def test_what_is_no_machine_run_text_or_product_is_left_to_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert given("8 x nothing") is None
    assert given("nothing") is None
    assert given(str(tmp_path)) is None


def test_this_machine_is_simulated_and_a_product_is_added(tmp_path):
    done = called("run", "host_to_device_memcpy_ce", "--machine", "mine", "--change", "gpus=2xH100",
                  "--out", tmp_path)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "SIMULATED mine with gpus=2xH100: before and after" in done.stdout
    assert "2 figures new" in done.stdout
    refused = called("run", "host_to_device_memcpy_ce", "--change", "gpus=2")
    assert refused.returncode == 2
    assert refused.stderr.endswith(
        "needs a simulated machine (mine: this one): give --machine, too\n"
    )
