"""Exports: what they hold reads back equal, and hostile text does no harm in any of them."""

import csv
import io
import json
import math
import re
import shlex

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from command_kit import called
from linkgauge.engine.kept.runs import read_run
from linkgauge.report.files import write_run
from report.samples import RUN

HOSTILE = (
    "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1",
    "'=1", "a|b", "`code`", "\"quoted\", 'twice'", "two\nlines", "\u202egnp.exe", "\x00\x1b[31m",
    "x" * 10_000, "]]>", "&lt;", "![x](http://example.org)", "www.example.org", "\ud7ff\ufffe",
)  # fmt: skip


def hostile(text):
    """The golden run with this text wherever a person or another program may have put it."""
    results = [
        replace(result, cells=tuple(replace(c, row=text, reason=text) for c in result.cells))
        for result in RUN.results
        if result.cells
    ]
    empty = [replace(r, benchmark=text, reason=text) for r in RUN.results if not r.cells]
    return replace(RUN, label=text, results=(*results, *empty))


@pytest.fixture
def exported(tmp_path):
    def export(run, *options):
        write_run(tmp_path, run)
        done = called("export", tmp_path, *options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return export


def cells_in(run):
    """The cells of a run that have a row of their own, or the result if it has none."""
    return [(result, cell) for result in run.results for cell in result.cells or (None,)]


@pytest.mark.parametrize("run", [RUN, *map(hostile, HOSTILE)])
def test_csv_and_json_read_back_equal_and_no_field_is_a_formula(exported, run):
    rows = list(csv.DictReader(io.StringIO(exported(run, "--csv"), newline="")))
    for row, (result, cell) in zip(rows, cells_in(run), strict=True):
        assert (row["backend"], row["status"]) == (result.backend, (cell or result).status)
        if cell is not None and cell.summary is not None:
            assert float(row["figure"]) == cell.headline
        # As docs/export.md says that CSV is read back.
        name = row["row" if cell else "benchmark"].removeprefix("'")
        text = cell.row if cell else result.benchmark
        assert re.sub(r"\W", "", name) == re.sub(r"\W", "", text)
        fields = [field for field in row.values() if field.lstrip().startswith(tuple("=+-@|"))]
        assert all(math.isfinite(float(field)) for field in fields)
    samples = list(csv.DictReader(io.StringIO(exported(run, "--csv", "--samples"), newline="")))
    figures = [float(row["value"]) for row in samples if not row["transfer"]]
    assert figures == [x for _, cell in cells_in(run) if cell for x in cell.samples]
    document = json.loads(exported(run, "--json"))
    assert (document["label"], document["schema"]) == (run.label, "linkgauge.summary/1")
    assert [(row["row"], row["status"]) for row in document["cells"]] == [
        (cell.row, cell.status) if cell else ("", result.status) for result, cell in cells_in(run)
    ]
    document = json.loads(exported(run, "--json", "--samples"))
    assert document["schema"] == "linkgauge.samples/1"
    assert {row["run"] for row in document["samples"]} == {run.id}


@pytest.mark.parametrize("run", [RUN, hostile(HOSTILE[0]), hostile(HOSTILE[9])])
def test_parquet_reads_back_equal(exported, tmp_path, run):
    parquet = pytest.importorskip("pyarrow.parquet")
    exported(run, "--parquet", "-o", tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    told = json.loads(exported(run, "--json"))["cells"]
    for name in ("benchmark", "row", "column", "status", "figure"):
        assert [row[name] for row in table] == [row[name] for row in told]


def cells_of(markdown):
    """The texts of the table's rows, and the HTML of all."""
    parser = MarkdownIt("commonmark").enable("table")
    rows, inside = [], False
    for token in parser.parse(markdown):
        if token.type == "tr_open":
            rows.append([])
        inside = token.type in ("td_open", "th_open") or (inside and token.type == "inline")
        if token.type == "inline" and inside:
            rows[-1].append("".join(part.content for part in token.children))
    return rows, parser.render(markdown)


@pytest.mark.parametrize("text", HOSTILE)
def test_in_markdown_hostile_text_is_text_in_its_own_field(exported, text):
    run = hostile(text)
    printed = exported(run, "--markdown")
    (heads, *rows), html = cells_of(printed.partition("\n## ")[0])
    assert {len(row) for row in rows} == {len(heads)}
    assert len(rows) == len(cells_in(run))
    for tag in ("<script", "<img", "<code", "<a ", "<em"):
        assert tag not in html
    assert not set(html) & set("\u202e\x1b")
    assert len(printed) < 20_000


@pytest.mark.parametrize(
    "command",
    ["run host_to_device_memcpy_ce --profile quick", "latency latency_flag_pingpong",
     "copy 'host:0 -> sim:0 by ce' --out results"],
)  # fmt: skip
def test_csv_is_a_line_for_each_figure_whatever_command_writes_it(command, tmp_path, monkeypatch):
    """Samples are what export --samples writes."""
    monkeypatch.chdir(tmp_path)
    words = (*shlex.split(command), "--machine", "riscv-2gpu", "--no-report", "--label", "own")
    done = called(*words, "--csv", LINKGAUGE_HISTORY="none")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == called("export", "own", "--csv").stdout
        == called("show", "own", "--csv").stdout
    )
    rows = list(csv.DictReader(done.stdout.splitlines()))
    (path,) = tmp_path.rglob("run.json")
    run = read_run(path)
    assert len(rows) == sum(len(result.cells) for result in run.results)
    samples = called("export", "own", "--csv", "--samples").stdout.splitlines()
    assert len(samples) - 1 >= sum(int(row["n"]) for row in rows) > len(rows)
