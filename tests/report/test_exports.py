"""Exports: what they hold reads back equal, and hostile text does no harm in any of them."""

import csv
import io
import json
import math
import re
import sys

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml
from markdown_it import MarkdownIt
from msgspec.structs import asdict, replace

from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.collective import Collective
from linkgauge.model.errors import MissingPackage
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Profiled
from linkgauge.model.printable import printable
from linkgauge.model.result import Expected
from linkgauge.model.units import COLLECTIVE
from linkgauge.report.csv_text import csv_text
from linkgauge.report.files import samples_csv
from linkgauge.report.formats import formats
from linkgauge.report.page.contents import page_of_run
from linkgauge.report.page.drawing import Drawer
from linkgauge.report.page.html import html_of
from linkgauge.report.page.sections import OneRun
from linkgauge.report.rows import CellRow, JudgedRun, SampleRow, cell_rows, judged, sample_rows
from linkgauge.report.tables import summary_frame
from report.samples import RUN

HOSTILE = (
    "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1",
    "'=1", "a|b", "`code`", "\"quoted\", 'twice'", "two\nlines", "\u202egnp.exe", "\x00\x1b[31m",
    "x" * 10_000, "]]>", "&lt;", "![x](http://example.org)", "www.example.org", "\ud7ff\ufffe",
)  # fmt: skip
FINDINGS = (
    Finding("link-speed", "fail", "x:0", "2 of 16 lanes", "half as fast", ("setpci", "reboot")),
    Finding("link-speed", "fail", "x:1", "4 of 16 lanes"),
    Finding("acs", "warn", "0000:00:01.0", "redirects"),
)


def exported(name, run, kind="summary", findings=FINDINGS):
    return formats()[name].render(kind, JudgedRun(run, Outcome(3, findings)))


def hostile(text):
    """The golden run with this text wherever a person or another program may have put it."""
    results = [
        replace(result, cells=tuple(replace(c, row=text, reason=text) for c in result.cells))
        for result in RUN.results
        if result.cells
    ]
    empty = [replace(r, benchmark=text, reason=text) for r in RUN.results if not r.cells]
    return replace(RUN, label=text, results=(*results, *empty))


def clean(value):
    """Text as whatever leaves the program has it."""
    return printable(value) if isinstance(value, str) else value


def unquoted(text):
    """As docs/export.md says that CSV is read back."""
    return text.removeprefix("'")


def read_csv(text, names, kinds):
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert tuple(head) == tuple(names)
    return [tuple(kind(field) for kind, field in zip(kinds, line, strict=True)) for line in lines]


def number(text):
    return float(text) if text else None


def size(text):
    return int(text) if text else None


def mark(text):
    assert text in ("", "SIMULATED")
    return text == "SIMULATED"


SUMMARY = [str] * 4 + [size] + [str] * 7 + [number] * 8 + [int] + [number] * 2 + [str, mark]
SUMMARY = [unquoted if kind is str else kind for kind in SUMMARY]


EVERY = [RUN, *map(hostile, HOSTILE)]


@pytest.mark.parametrize("run", EVERY)
def test_a_summary_in_csv_reads_back_equal(run):
    rows = [asdict(row) for row in cell_rows(run)]
    expected = [
        tuple("" if row[n] is None and n == "reason" else clean(row[n]) for n in row)
        for row in rows
    ]
    assert read_csv(exported("csv", run), CellRow.__struct_fields__, SUMMARY) == expected


@pytest.mark.parametrize("run", EVERY)
def test_samples_in_csv_read_back_equal(run):
    kinds = [*[unquoted] * 3, size, *[unquoted] * 3, int, float, unquoted, mark]
    read = read_csv(exported("csv", run, "samples"), SampleRow._fields, kinds)
    assert read == [tuple(map(clean, row)) for row in sample_rows(run)]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=2, max_size=2))
def test_no_field_of_csv_is_a_formula_and_each_reads_back(fields):
    (read,) = csv.reader(io.StringIO(csv_text([fields]), newline=""))
    assert [unquoted(field) for field in read] == list(map(clean, fields))
    formulas = (field for field in read if field.lstrip().startswith(("=", "+", "-", "@", "|")))
    assert all(math.isfinite(float(field)) for field in formulas)


def test_a_negative_number_is_a_number_in_csv():
    assert csv_text([(-1.5, "-1.5", "+2e3", "-2+3")]) == "-1.5,-1.5,+2e3,'-2+3\n"


@pytest.mark.parametrize("run", EVERY)
@pytest.mark.parametrize("kind", ["summary", "samples"])
def test_json_reads_back_equal(run, kind):
    document = json.loads(exported("json", run, kind))
    if kind == "summary":
        assert document["cells"] == [asdict(row) for row in cell_rows(run)]
        assert [found["subject"] for found in document["findings"]] == [
            "x:0",
            "x:1",
            "0000:00:01.0",
        ]
        assert document["exit_code"] == 3
    else:
        assert document["samples"] == [row._asdict() for row in sample_rows(run)]
    assert (document["label"], document["schema"]) == (run.label, f"linkgauge.{kind}/1")


@pytest.mark.parametrize("run", [RUN, hostile(HOSTILE[0]), hostile(HOSTILE[9])])
def test_parquet_reads_back_equal(run):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(exported("parquet", run)))
    assert table.to_pylist() == [asdict(row) for row in cell_rows(run)]
    assert {str(kind) for kind in table.schema.types} == {"string", "int64", "double", "bool"}
    table = parquet.read_table(io.BytesIO(exported("parquet", run, "samples")))
    assert table.to_pylist() == [row._asdict() for row in sample_rows(run)]


class TestJunit:
    def test_each_cell_is_a_case(self):
        suites = JUnitXml.fromstring(exported("junit", RUN).encode())
        cases = [case for suite in suites for case in suite]
        assert len(cases) == len(list(cell_rows(RUN))) + 1  # of the doctor
        assert (suites.tests, suites.failures, suites.errors, suites.skipped) == (12, 3, 0, 2)

    def test_what_did_not_pass_is_a_failure_or_skipped_with_the_reason(self):
        cases = {
            case.get("name"): case for case in fromstring(exported("junit", RUN)).iter("testcase")
        }
        failed = cases["host_to_device_memcpy_sm[0,0]"].find("failure")
        assert failed.get("type") == "fail"
        assert failed.get("message").endswith("x:0 is wrong at byte 77 of 67108864")
        assert cases["host_to_device_memcpy_sm[0,1]"].find("failure").get("type") == "error"
        skipped = cases["host_to_device_memcpy_sm[0,2]"].find("skipped")
        assert skipped.get("message") == "[red]not shared[/red]"
        nothing = cases["all_to_one_read_ce"].find("skipped")
        assert nothing.get("message") == "needs two devices, x has 1 selected"
        assert cases["host_to_device_memcpy_ce[0,0]"].find("failure") is None

    def test_a_low_cell_is_a_failure_with_its_share(self):
        (first, *cells) = RUN.results[0].cells
        low = replace(first, verdict="low", expected=Expected(achievable=100e9))
        run = replace(RUN, results=(replace(RUN.results[0], cells=(low, *cells)),))
        (failure,) = fromstring(exported("junit", run, findings=())).iter("failure")
        assert (failure.get("type"), failure.text) == ("low", "host:0 -> x:0 by ce")
        assert failure.get("message") == "55.25 GB/s, 55% of 100.00 GB/s expected"

    def test_a_failed_check_is_one_case_with_all_that_it_found(self):
        cases = fromstring(exported("junit", RUN)).findall("testsuite[@name='doctor']/testcase")
        assert [case.get("name") for case in cases] == ["doctor.link-speed"]
        failure = cases[0].find("failure")
        assert failure.get("message") == "x:0: 2 of 16 lanes"
        assert failure.text.splitlines() == [
            "x:0: 2 of 16 lanes", "half as fast", "setpci", "reboot", "", "x:1: 4 of 16 lanes",
        ]  # fmt: skip

    @given(st.text(st.characters(), max_size=8))
    def test_any_text_makes_valid_xml(self, text):
        tree = fromstring(exported("junit", hostile(text), findings=()).encode("utf-8", "replace"))
        assert len(list(tree.iter("testcase"))) == 11

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_is_text(self, text):
        tree = fromstring(exported("junit", hostile(text)))
        assert {element.tag for element in tree.iter()} <= {
            "testsuites", "testsuite", "testcase", "failure", "skipped", "system-out",
        }  # fmt: skip


def cells_of(markdown):
    """The texts of the table's rows, and the HTML of all."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(markdown)
    rows, inside = [], False
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        inside = token.type in ("td_open", "th_open") or (inside and token.type == "inline")
        if token.type == "inline" and inside:
            rows[-1].append("".join(part.content for part in token.children))
    return rows, parser.render(markdown)


class TestMarkdown:
    def test_the_table_has_a_row_for_each_cell(self):
        (heads, *rows), _ = cells_of(exported("markdown", RUN))
        assert heads[:6] == ["Benchmark", "Backend", "Size", "Row", "Column", "Figure"]
        read = [tuple(row[n] for n in (0, 1, 3, 4, 10)) for row in rows]
        assert read == [(c.benchmark, c.backend, c.row, c.column, c.status) for c in cell_rows(RUN)]
        assert rows[0][5:9] == ["55.25", "55.08 – 55.42", "GB/s", "7"]
        assert rows[6][12] == "[red]not shared[/red]"

    def test_findings_follow_with_remedies_to_be_copied(self):
        _, shown = exported("markdown", RUN).split("## Findings\n\n")
        assert shown.splitlines() == [
            "- **fail** link-speed x:0: 2 of 16 lanes",
            "  why: half as fast",
            "  ",
            "  ```",
            "  setpci",
            "  reboot",
            "  ```",
            "- **fail** link-speed x:1: 4 of 16 lanes",
            "- **warn** acs 0000:00:01.0: redirects",
        ]

    def test_the_same_remedy_is_given_once(self):
        others = [replace(FINDINGS[0], check=check) for check in ("a", "b")]
        shown = exported("markdown", RUN, findings=tuple(others)).split("## Findings")[1]
        assert shown.count("setpci") == 1
        assert shown.endswith("  To fix it: as a above.\n")

    @pytest.mark.parametrize("text", [*HOSTILE, "```\n<script>", "`````"])
    def test_a_hostile_remedy_stays_in_its_block(self, text):
        finding = Finding(text, "fail", text, text, text, (text, "end"))
        tokens = MarkdownIt("commonmark").parse(exported("markdown", RUN, findings=(finding,)))
        blocks = [token.content for token in tokens if token.type == "fence"]
        assert [block.splitlines()[-1] for block in blocks] == ["end"]
        assert not any(token.type == "html_block" for token in tokens)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_is_text_in_its_own_field(self, text):
        run = hostile(text)
        (heads, *rows), html = cells_of(exported("markdown", run, findings=()))
        assert {len(row) for row in rows} == {len(heads)}
        assert len(rows) == len(list(cell_rows(run)))
        for tag in ("<script", "<img", "<code", "<a ", "<em"):
            assert tag not in html
        assert "\u202e" not in html
        assert "\x1b" not in html

    def test_text_that_nobody_reads_is_cut(self):
        assert len(exported("markdown", hostile("x" * 10_000))) < 20_000


def test_a_run_that_is_not_judged_has_no_verdicts():
    noted = replace(RUN.results[0], cells=tuple(
        replace(cell, notes=(Profiled("nsys"),)) for cell in RUN.results[0].cells
    ))  # fmt: skip
    found = judged(replace(RUN, results=(noted,)))
    assert {row.verdict for row in cell_rows(found.run)} == {"unknown"}
    assert not found.outcome.verdict


def of_sizes(ranks, *sizes):
    """A collective over so many devices, at several sizes."""
    work = Collective("all_reduce")
    cells = tuple(
        replace(RUN.results[0].cells[0], row=f"float sum, {ranks} GPUs", column=f"{size} B",
                transfers=parse_transfers(f"x:0 -> x:0 by ccl x{size}"), operation=work)
        for size in sizes
    )  # fmt: skip
    return replace(RUN.results[0], benchmark="all_reduce", unit=COLLECTIVE.symbol, size=1,
                   cells=cells)  # fmt: skip


class TestSizes:
    """Of what has sizes of its own, or none: no export says 1 B."""

    def run(self):
        launch = replace(RUN.results[0].cells[0], operation="launch", column="0")
        launched = replace(RUN.results[0], benchmark="latency_launch", size=1, cells=(launch,))
        return replace(RUN, results=(of_sizes(2, 8, 4096), of_sizes(4, 8, 4096), launched))

    def test_a_row_has_the_size_of_its_column(self):
        sizes = [8, 4096, 8, 4096, None]
        assert [row.size for row in cell_rows(self.run())] == sizes
        samples = {(row.benchmark, row.column, row.size) for row in sample_rows(self.run())}
        assert samples == {("all_reduce", "8 B", 8), ("all_reduce", "4096 B", 4096),
                           ("latency_launch", "0", None)}  # fmt: skip
        (_, *lines) = csv.reader(io.StringIO(samples_csv(self.run())))
        assert {line[3] for line in lines} == {"8", "4096", ""}

    @pytest.mark.parametrize("name", ["csv", "json", "markdown", "junit"])
    def test_no_format_says_that_it_is_of_one_byte(self, name):
        text = exported(name, self.run(), findings=())
        assert "1 B" not in text
        assert not re.search(r'"size": ?1\b|,1,"?float', text)

    def test_tables_for_analysis_can_lack_a_size(self):
        pandas = pytest.importorskip("pandas")
        frame = summary_frame(cell_rows(self.run()))
        assert list(frame["size"][:4]) == [8, 4096, 8, 4096]
        assert pandas.isna(frame["size"][4])
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(io.BytesIO(exported("parquet", self.run())))
        assert table.column("size").to_pylist() == [8, 4096, 8, 4096, None]

    def test_suites_have_names_of_their_own(self):
        suites = JUnitXml.fromstring(exported("junit", self.run(), findings=()).encode())
        assert [suite.name for suite in suites] == [
            "all_reduce float sum, 2 GPUs (x, 8 B to 4 KiB)",
            "all_reduce float sum, 4 GPUs (x, 8 B to 4 KiB)",
            "latency_launch (x)",
        ]

    def test_rows_of_the_page_have_names_and_sizes_of_their_own(self):
        page = page_of_run(OneRun(self.run(), Outcome(0)))
        (table,) = (block for part in page.parts if part.name == "benchmarks"
                    for block in part.blocks)  # fmt: skip
        size = [column.name for column in table.columns].index("size")
        assert [(row[0].text, row[size].text) for row in table.rows] == [
            ("all_reduce float sum, 2 GPUs", "8 B to 4 KiB"),
            ("all_reduce float sum, 4 GPUs", "8 B to 4 KiB"),
            ("latency_launch", ""),
        ]
        with Drawer() as drawer:
            assert not re.search(r"\b1 B\b", html_of(page, drawer))


def test_the_share_is_of_the_achievable_figure():
    result = RUN.results[0]
    cell = replace(result.cells[0], expected=Expected(theoretical=200e9, achievable=110.5e9))
    (row,) = cell_rows(replace(RUN, results=(replace(result, cells=(cell,)),)))
    assert (row.expected, row.share, row.figure) == (110.5e9, 0.5, 55.25e9)


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackage, match=r"pip install 'linkgauge\[analysis\]'") as refused:
        exported("parquet", RUN)
    assert isinstance(refused.value, ImportError)
    assert refused.value.exit_code == 2
