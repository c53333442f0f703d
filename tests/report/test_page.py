"""The report of a run as blocks and as HTML: what it says, and what it never does."""

import re
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from command_kit import called
from linkgauge.engine.kept.runs import run_of
from linkgauge.judge.outcome import Outcome, outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.report.blocks import text_of
from linkgauge.report.reading import OneRun, page_of_run
from linkgauge.report.render.drawing import Drawer
from linkgauge.report.render.html import html_of
from page_kit import HOSTILE, cell, files, hostile, result, whole, whole_run


class Undrawn(Drawer):
    """Where vl-convert is not installed."""

    def __init__(self):
        self._process = None
        self.missing = "Tables stand in place of charts: vl-convert is not installed."


class Tags(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def page(one=None):
    return html_of(page_of_run(one or whole()), Undrawn())


def blocks(one, kind):
    return [b for part in page_of_run(one).parts for b in part.blocks if type(b).__name__ == kind]


def of(*results):
    """A run of these alone, that is not judged."""
    return OneRun(replace(whole_run(), results=results), Outcome(0))


def heat_of(cells):
    matrix = result("device_to_device_memcpy_read_ce", "device(row) <- device(column)", cells)
    return blocks(of(matrix), "Heat")[0]


def test_a_run_without_references_is_not_judged_and_not_green():
    bare = result("copy_ce", "t", [replace(cell("0", "0", 55e9), verdict="not judged")])
    first = page_of_run(of(bare)).parts[0].blocks[0]
    assert (first.severity, first.tone) == ("", "dim")
    assert text_of(first.found) == "not judged: there is nothing to compare the figures with"


def test_a_benchmark_is_not_ok_where_a_cell_is_not_judged():
    """The slow one, of which nothing is expected, is marked here and in its matrix."""
    cells = [replace(c, column=str(n), row="0", verdict="ok")
             for n, c in enumerate(whole_run().results[0].cells[:7])]  # fmt: skip
    slow = replace(cells[0], column="7", verdict="not judged", peers=4 * cells[0].headline)
    one = of(result("all_to_host", "device(column)", [*cells, slow]))
    tables = blocks(one, "Table")
    (table,) = [each for each in tables if each.says.startswith("The column `of expected`")]
    ((_, verdict, *_),) = table.rows
    assert (verdict.text, verdict.tone) == ("1 of 8 not judged ▽", "warn")
    (heat,) = blocks(one, "Heat")
    assert heat.shades[0][7].sign == "▽"
    assert text_of(heat.lines[0]) == "▽ far below its peers"


def test_what_links_at_their_best_would_carry_is_what_a_share_is_of():
    cells = []
    for each in whole_run().results[0].cells:
        expected = replace(each.expected, achievable=each.headline, nominal=2 * each.headline)
        cells.append(replace(each, verdict="degraded", expected=expected))
    heat = heat_of(cells)
    shades = [shade for line in heat.shades for shade in line if shade is not None]
    assert {(one.tone, one.share, one.sign) for one in shades} == {("warn", "50%", "↓")}
    assert "degraded: links on the way run below their best" in text_of(heat.lines[0])


def test_a_page_stays_small_however_many_samples_there_are():
    """Half a million samples that nothing compresses, and a line that says what is left out."""
    many = tuple(1e-6 * (1 + (k * 2654435761 % 4294967296) / 4294967296) for k in range(2048))
    noisy = replace(cell("0", "1", 1e-6, samples=many), operation="flag-ping-pong")
    cells = [replace(noisy, row=str(n)) for n in range(250)]
    long = result("latency_flag_pingpong", "path(row)", cells, unit="s", sweep=True)
    text = page(of(*whole_run().results, long))
    assert len(text) < 2_000_000
    assert "A page has no room for all samples" in text
    kept = run_of(files(text)["run.json"], Path("run.json"))
    assert [len(c.samples) for c in kept.results[-1].cells] == [0] * 250
    assert [len(c.samples) for c in kept.results[0].cells] == [5] * 12


@pytest.mark.parametrize(("matrices", "shown"), [(9, 9), (10, 0)])
def test_a_page_of_many_devices_stays_small(matrices, shown):
    """72 of them, of which one is slow: matrices, as far as there is room, and every figure."""
    usual, slow = cell("0", "1", 400e9), cell("0", "1", 200e9)
    both = list(product(map(str, range(72)), repeat=2))
    cells = [replace(slow if "5" in at else usual, row=at[0], column=at[1]) for at in both]
    text = page(of(*(result(f"copy_{n}", "device(row)", cells) for n in range(matrices))))
    assert len(text) < 3_000_000
    assert (text.count('<table class="heat dense"'), "reduced to their ends" in text) == (
        shown, not shown)  # fmt: skip
    assert len(files(text)["cells.csv"].splitlines()) == 1 + 72 * 72 * matrices
    assert "no room for run.json and samples.csv" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text(text):
    """No element, attribute or control character comes from what a run holds, and no direction."""
    shown = page(hostile(text))
    assert not re.search("[\x00\x1b\u202e]", shown)
    plain, harmed = Tags(page()), Tags(shown)
    assert [tag for tag, _ in harmed.found if tag in ("script", "img", "style", "b", "meta")] == [
        tag for tag, _ in plain.found if tag in ("script", "img", "style", "b", "meta")
    ]
    known = {name for _, attributes in plain.found for name in attributes}
    assert {name for _, attributes in harmed.found for name in attributes} <= known
    for attributes in harmed.named("a"):
        assert attributes["href"].startswith("#")


def test_nothing_is_fetched_and_only_the_own_script_runs():
    text = page()
    (policy,) = (a for a in Tags(text).named("meta") if "http-equiv" in a)
    assert policy["content"].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy["content"]
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert " style=" not in text


def test_a_run_attaches_the_samples_that_it_has_written(tmp_path):
    """They are those that `report` formats anew."""
    called("run", "--machine", "riscv-2gpu", "--samples", "5", "--prefix", "host_to_device",
           "--prefix", "device_to_device", "--out", tmp_path, LINKGAUGE_NO_REPORT="")  # fmt: skip
    (folder,) = (path.parent for path in tmp_path.rglob("run.json"))
    written = (folder / "samples.csv").read_bytes()
    attached = files((folder / "report.html").read_text())["samples.csv"]
    assert written == attached
    assert called("report", folder, "-o", tmp_path / "new.html").returncode == 0
    assert files((tmp_path / "new.html").read_text())["samples.csv"] == written


@pytest.mark.parametrize("early", [True, False])
def test_charts_are_drawn_or_tables_and_a_line_stand_in_their_place(early):
    bare = page()
    assert bare.count("<svg ") == 1, "that of the machine, which needs neither"
    assert "vl-convert is not installed" in bare
    pytest.importorskip("vl_convert", reason="no wheels for this machine")
    with Drawer(early=early) as drawer:
        assert drawer.draw([]) == []
        assert (drawer._process is not None) is early
        text = html_of(page_of_run(whole()), drawer)
    assert text.count("<svg ") == bare.count("<figure ") == len(blocks(whole(), "ChartFigure")) + 1
    assert 'data-tip="0 base, 128 KiB: 9 ns"' in text
    assert "stand in place of charts" not in text
    assert len(text) < 400_000
    inside = "".join(re.findall(r"<svg .*?</svg>", text, re.DOTALL))
    assert not re.search(r"<script|<a |\bon\w+=|https?://(?!www\.w3\.org)", inside)


def test_a_picture_has_the_figures_of_the_run_and_marks_what_is_wrong(tmp_path):
    called("run", "--machine", "dgx-h200-8", "--samples", "1", "--out", tmp_path, "--fault",
           "slow sim:3-nvswitch rate=30%", "--prefix", "host_to_device_memcpy_ce",
           "--prefix", "device_to_device_memcpy")  # fmt: skip
    (path,) = tmp_path.rglob("run.json")
    run = judge(run_of(path.read_bytes(), path))
    (picture,) = blocks(one := OneRun(run, outcome_of(run)), "Picture")
    best = {}
    for each in (c for r in run.results for c in r.cells if not c.transfers[0].both_ways):
        ends = {str(memory) for memory in each.transfers[0].memories}
        for end in (f"{e} {'host' if 'host' in str(ends) else 'nvswitch'}" for e in ends):
            best[end] = max(best.get(end, 0), each.headline / 1e9)
    for number in range(8):
        fabric, host = (j for j in picture.links if j.a == f"sim:{number}")
        assert host.texts == [f"{best[f'{host.a} host']:.2f}"]
        assert (fabric.b, fabric.texts) == ("nvswitch", [f"{best[f'{host.a} nvswitch']:.1f}"])
    marked = [(j.a, j.b, j.tone, j.word) for j in picture.links if j.word]
    assert marked == [("sim:3", "nvswitch", "bad", "fabric-links")]
    (svg,) = re.findall('<svg .*class="machine" role="img".*?</svg>', page(one), re.DOTALL)
    assert (svg.count(" marked"), "SIMULATED</tspan>" in svg, len(svg) < 9000) == (1, True, True)


RING = 500


def ring(slow=()):
    """Each node to the next one on two rails, of which those that touch a slow end are slow."""
    return result(
        "nodes_rails", "node -> the next one(row) on each rail(column)",
        [
            cell(
                f"{one}->{other}", rail, 10e9 if {one, other} & own else 40e9,
                f"x:{one} -> x:{other} by ce", round=0,
            )
            for one, other in ((one, (one + 1) % RING) for one in range(RING))
            for rail, own in (("rail0", set(slow)), ("rail1", set()))
        ],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("slow", "shown", "lowest"),
    [((), 1, []), ((7,), 3, ["6->7, rail0", "7->8, rail0"]), (range(100, 200), 3, None)],
)
def test_of_so_many_pairs_that_nobody_reads_each_the_lowest_are_shown(slow, shown, lowest):
    """Figures are counted by classes, and no cell has a row."""
    one = whole()
    page = page_of_run(replace(one, run=replace(one.run, results=(ring(slow),))))
    (part,) = (part for part in page.parts if part.title == "All figures")
    kinds = [type(block).__name__ for block in part.blocks]
    assert ("Heat" in kinds, kinds.count("Table")) == (False, shown)
    tables = [block for block in part.blocks if hasattr(block, "rows")]
    classes = [[entry.text for entry in row] for row in tables[0].rows]
    assert (classes[-1][0], classes[-1][1]) == ("all" if slow else "nodes_rails", "1,000")
    if lowest:
        assert [row[0].text for row in tables[-1].rows] == lowest
        assert [entry.text for entry in tables[1].rows[0]] == ["7, rail0", "2", "2", "25%", "25%"]
    if lowest is None:
        assert len(tables[-1].rows) == 12
        assert "12 of 101" in tables[-1].says
