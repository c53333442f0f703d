"""What comparisons say in words: a loss is at most 100 %, a time is so many times as long, and a
size is that of the message, or none."""

import random
import re

import pytest
from msgspec.structs import replace

from gate_kit import cell, run
from linkgauge.judge.compare.baseline import baseline_of
from linkgauge.judge.compare.gate import hold
from linkgauge.judge.compare.run_comparison import compare_runs
from linkgauge.judge.compare.side_tests import Sides
from linkgauge.model.cell_id import bytes_of
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.collective import Collective
from linkgauge.model.stats.changes import Aim
from linkgauge.model.transfer import Cell, Report
from linkgauge.report.render.markdown import as_markdown
from linkgauge.report.words.figures import difference, loss_below, may_have_lost, signed
from linkgauge.rooms.gate import sections, words

PERCENT = re.compile(r"(?<![±\d.])(\d+(?:\.\d+)?) ?%")
NO_SIZE = re.compile(r"(?<![\d.])[01] B\b")


def drawn(seed):
    """Two sides of runs of which each cell's figures scatter and change by any factor. Each cell is
    of work without memory, as a launch is."""
    made = random.Random(f"compared {seed}")
    better = [made.choice(("higher", "lower")) for _ in range(8)]
    scatter = [10.0 ** made.uniform(-4, 1.5) for _ in better]
    shift = [made.choice((0.0, made.gauss(0.0, 3.0))) for _ in better]
    counts = made.choice((1, 1, 2, 3)), made.choice((1, 1, 2, 3))

    def one(name, side):
        figures = []
        for number, kind in enumerate(better):
            middle = 1e-6 * 2.718 ** (side * shift[number] + made.gauss(0.0, scatter[number]))
            half = 2.718 ** scatter[number]
            known = {"low": middle / half, "high": middle * half, "coverage": 0.95, "degrees": 4}
            more = known if made.random() < 0.7 else {}
            figures.append(cell(number, middle, better=kind, size=made.choice((0, 1)), **more))
        return run(name, *(replace(each, size=number % 2) for number, each in enumerate(figures)))

    return [[one(f"{side}{n}", side) for n in range(count)] for side, count in enumerate(counts)]


def everything(before, after):
    """All texts for people of a comparison of two sides, and of the gate."""
    gate = hold(before, after, [], Aim())
    compared = compare_runs(Sides(("before", "after"), (before, after), []), Aim())
    yield as_markdown("gate", sections.gate(gate))
    yield from map(words.why, (one for one in gate.cells if one.verdict != "ok"))
    yield words.gate_junit(gate)
    yield from words.gate_annotations(gate)
    yield as_markdown("compared", sections.every_cell(compared))
    yield as_markdown("compared", sections.few_cells(compared))
    yield as_markdown("baseline", sections.baseline(baseline_of(before, "now")))


@pytest.mark.parametrize("seed", range(40))
def test_no_loss_is_above_100_percent_and_nothing_without_a_size_has_one(seed):
    for text in everything(*drawn(seed)):
        varies = re.sub(r"runs vary by \S+ .*", "", text)  # a scatter, which may be of any size
        assert all(float(found) <= 100 for found in PERCENT.findall(varies)), text
        assert not NO_SIZE.search(text), text


@pytest.mark.parametrize("seed", range(200))
def test_the_words_of_a_loss_say_what_it_is(seed):
    made = random.Random(seed)
    ratio, better = 2.718 ** made.gauss(0.0, 4.0), made.choice(("higher", "lower"))
    loss = 1 - ratio if better == "higher" else ratio - 1
    said = [signed(ratio), difference(ratio, better), difference(ratio, better, "before")]
    if loss > 0:
        said += [loss_below(loss, better), may_have_lost(loss, better)]
    for text in said:
        assert all(float(found) <= 100 for found in PERCENT.findall(text)), (ratio, better, text)
        times = re.search(r"([\d.e+]+) times|×([\d.e+]+)", text)
        assert not times or float(times[1] or times[2]) == pytest.approx(ratio, rel=0.01)


def test_examples():
    assert difference(0.949, "higher") == "5.1% less"
    assert difference(2.53, "lower", "the baseline") == "2.53 times as long as the baseline"
    assert may_have_lost(1.02, "lower") == "it may take 2.02 times as long"
    nothing = "the two differ too much by themselves to exclude a loss of half"
    assert may_have_lost(1.0, "higher") == may_have_lost(50.0, "lower") == nothing
    assert loss_below(1.5, "lower") == "a time below 2.5 times as long"


@pytest.mark.parametrize(
    ("operation", "size", "known"),
    [
        ("copy", 1 << 20, 1 << 20), ("launch", 1, None), ("copy-ping-pong", 1, 4096),
        (Collective("all_reduce"), 1, 4096), ("chase", 2048, 4096 * 2048), ("primes", 0, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_cell_is_of_the_bytes_of_its_message_or_of_none(operation, size, known):
    transfer = parse_transfer("sim:0 -> sim:1 by ce x4096")
    report = Report.LATENCY if operation != "copy" else Report.SUM
    assert bytes_of(Cell("0", "1", (transfer,), report, operation=operation), size) == known


def test_older_figures_are_of_their_tables_size():
    """Files of earlier versions do not have the bytes of a figure."""
    before, after = ([run(name, cell(0, 1.0), cell(4, 1.0, size=1))] for name in "ab")
    compared = compare_runs(Sides(("a", "b"), (before, after), []), Aim())
    assert [one.bytes for one in compared.cells] == [1 << 20, None]
