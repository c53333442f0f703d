"""Nodes that should be equal: the faulty ones lead, healthy ones are not called odd."""

import json
import random
from csv import DictReader
from functools import cache
from io import StringIO

import pytest
from msgspec.structs import replace

from campaign_fleet import FAULTS, SETTINGS, fleet, node
from campaigns import FULL, trials
from command_kit import called
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.compare.fleet import FleetReader, names_of
from linkgauge.judge.verdict import judge
from linkgauge.report.files import write_run
from linkgauge.report.reading import node_of, page_of_fleets
from linkgauge.report.render.drawing import Drawer
from linkgauge.report.render.writing import write_page
from linkgauge.report.sections.fleet import fleet_blocks, fleet_csv, fleet_json, unlike


def test_the_campaign_of_twenty_nodes(holds):
    """Three of twenty are faulty: they lead on the screen, in JSON and in CSV."""
    draws = trials("fleet: the faulty nodes lead")
    led = odd = healthy = 0
    for draw in range(draws):
        found = fleet(draw, nodes=20 if FULL else 10)
        first = {one.name for one in found.nodes[:3]}
        (_, table) = fleet_blocks([found])
        assert {row[0].text for row in table.rows[1:4]} == first
        shown = json.loads(fleet_json([found]))["fleets"][0]["nodes"]
        listed = [one["name"] for one in DictReader(StringIO(fleet_csv([found])))]
        assert {one["name"] for one in shown[:3]} == {*list(dict.fromkeys(listed))[:3]} == first
        led += first == {*FAULTS} and all(one.is_odd for one in found.nodes[:3])
        odd += sum(one.is_odd for one in found.nodes if one.name not in FAULTS)
        healthy += len(found.nodes) - len(FAULTS)
    holds("fleet: the faulty nodes lead", led, draws)
    holds("fleet: a healthy node is odd", odd, healthy)


SMALL = replace(SETTINGS, samples=3)
NAMES = ("device_to_device_memcpy_write_ce", "host_to_device_memcpy_ce", "device_local_copy")


@cache
def base():
    return judge(run_of("dgx-h200-8", load("dgx-h200-8")[1], *NAMES, settings=SMALL))


def scaled(generator, scale=1.0, at="", noise=0.001, drop=0):
    """The run, with noise, and with the figures of cells that touch a device scaled."""

    def of(cell):
        if cell.summary is None:
            return cell
        by = generator.gauss(1.0, noise)
        by *= scale if at in [str(place) for place in cell.places] else 1.0
        own = {name: getattr(cell.summary, name) * by for name in ("median", "slow_p99")}
        return replace(cell, summary=replace(cell.summary, **own))

    run = base()
    results = [replace(one, cells=tuple(map(of, one.cells))) for one in run.results]
    results[0] = replace(results[0], cells=results[0].cells[drop:])
    return replace(run, results=tuple(results))


def made(runs):
    reader, node = FleetReader(len(runs)), node_of("", base())
    for name, run in runs.items():
        reader.add(replace(node, name=name), run)
    return reader.fleet("H200")


def nodes(count, **odd):
    """A fleet of so many nodes, with those that differ."""
    generator = random.Random(count)
    runs = {f"n{number}": scaled(generator) for number in range(count - len(odd))}
    return made(runs | {name: scaled(generator, **how) for name, how in odd.items()})


def test_nodes_with_one_fault_do_not_hide_each_other():
    found = nodes(12, a={"scale": 0.9, "at": "sim:4"}, b={"scale": 0.9, "at": "sim:4"})
    assert {one.name for one in found.nodes if one.is_odd} == {"a", "b"}
    assert unlike(found.nodes[0]).startswith("sim:4, ")


@pytest.mark.parametrize(("scale", "is_odd"), [(1.1, True), (0.99, False)])
def test_a_faster_node_is_odd_and_a_loss_below_two_percent_is_not(scale, is_odd):
    assert nodes(10, a={"scale": scale, "at": "sim:4"}).odd == is_odd


def test_a_node_that_lacks_figures_is_odd():
    first = nodes(6, a={"drop": 7}).nodes[0]
    assert (first.name, first.missing, unlike(first)) == ("a", 7, "7 figures missing")


def test_where_figures_are_far_off_by_chance_a_loss_is_as_well():
    """Each fourth figure of the host's copies is slowed by up to half, as on shared hosts."""
    generator = random.Random(5)

    def shaken(run):
        cells = tuple(
            replace(one, summary=replace(one.summary, median=one.summary.median * (
                1 - min(0.9, generator.expovariate(8.0)) * (generator.random() < 0.25)
            )))
            for one in run.results[1].cells
        )  # fmt: skip
        return replace(run, results=(replace(run.results[1], cells=cells),))

    for _ in range(8):
        assert not made({f"n{n}": shaken(scaled(generator)) for n in range(12)}).odd


def test_too_few_nodes_have_no_odd_one():
    found = nodes(3, a={"scale": 0.5, "at": "sim:4"})
    assert not found.odd
    assert "too few to say which is odd" in str(next(fleet_blocks([found])))


def test_a_node_is_named_by_what_tells_it_from_others():
    assert names_of([("dgx", "a"), ("dgx", "b")]) == ["a", "b"]
    assert names_of([("n1", "night"), ("n2", "night")]) == ["n1", "n2"]
    assert names_of([("n1", "a"), ("n1", "b"), ("n2", "b")]) == ["n1 a", "n1 b", "n2 b"]


def test_two_hundred_nodes_are_one_screen_and_two_thousand_a_page_of_three_megabytes(tmp_path):
    found = nodes(200, a={"scale": 0.9, "at": "sim:4"}, b={"drop": 3})
    (_, table) = fleet_blocks([found])
    assert [row[0].text for row in table.rows[: table.few]] == ["usual", "a", "b"]
    generator = random.Random(1)
    some = [scaled(generator) for _ in range(40)]
    many = made({f"n{number}": some[number % len(some)] for number in range(2000)})
    with Drawer() as drawer:
        write_page(tmp_path / "report.html", page_of_fleets([many]), drawer)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<tr") > 2000
    assert len(page) <= 3_000_000


def test_a_folder_of_nodes_is_shown_as_a_table_of_nodes(tmp_path):
    for number, name in enumerate(("n1", "n2", "n3", "slow")):
        run = node(number, [FAULTS["slow"]] if name == "slow" else [])
        folder = tmp_path / f"results/card/{name}/2026112{number}T000000Z"
        folder.mkdir(parents=True)
        write_run(folder, replace(run, label=name))
    shown = called("show", "results", cwd=tmp_path).stdout
    assert "card: 4 nodes, " in shown
    assert "1 odd" in shown
    first = shown.splitlines()[4]
    assert first.startswith("slow ")
    assert "low" in first
    assert called("report", "results", "-o", "r.html", cwd=tmp_path).returncode == 0
    assert "unlike the others" in (tmp_path / "r.html").read_text()
    other = ("--machine", "dgx-h200-8", "--size", "1M", "--samples", "1", "--out", "results")
    assert called("run", "device_local_copy", *other, cwd=tmp_path).returncode == 0
    assert "configurations" in called("show", "results", cwd=tmp_path).stdout, "of two sizes"
    compared = called("show", "results", "--against", "n1", cwd=tmp_path).stdout
    assert "4 configurations, compared with 'n1'" in compared
