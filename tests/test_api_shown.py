"""Runs of the Python API as notebooks show them, and as tables."""

import re
import sys
import types
from html import unescape

import pytest
from msgspec.structs import astuple, replace

import linkgauge
from linkgauge.judge.outcome import Outcome
from linkgauge.report.files import write_run
from report.samples import RUN

SIMULATED = {"size": "64M", "samples": 6, "machine": "dgx-h200-8"}


class TestNotebook:
    def test_a_run_is_one_line_and_never_calls_ok_what_was_not_judged(self):
        run = linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED)
        assert (
            repr(run)
            == f"<linkgauge run {run.run.id}: dgx-h200-8 SIMULATED, 1 benchmark, 1 cell, ok>"
        )
        tiny = linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED | {"size": "64"})
        assert repr(tiny).endswith(", 1 cell, not judged>")
        nothing = linkgauge.measure("sim:0 -> sim:1 by sim:2.ce", **SIMULATED)
        assert repr(nothing).endswith(", 1 cell, nothing was measured>")

    def test_other_values_are_a_line_each_too(self):
        run = linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED)
        judged = linkgauge.gate(run, baseline=run, history=False)
        values = judged, judged.comparison, linkgauge.devices(run), run.run
        health = linkgauge.check(machine="dgx-h200-8", under=20)
        for value in (*values, health):
            assert "\n" not in repr(value)
            assert len(repr(value)) < 600, repr(value)
        assert repr(judged).startswith("GateDocument(schema='linkgauge.gate/2', code=")
        assert r"label='�#[x]\x1b[31m'" in repr(replace(run.run, label="##[x]\x1b[31m"))
        assert "label='xxx" in repr(replace(run.run, label="x" * 1000))

    def test_ipython_shows_values_as_commands_do(self, monkeypatch):
        shown = {}
        html = types.SimpleNamespace(
            for_type_by_name=lambda module, name, made: shown.update({(module, name): made})
        )
        formatter = types.SimpleNamespace(formatters={"text/html": html})
        shell = types.SimpleNamespace(display_formatter=formatter)
        monkeypatch.setitem(
            sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell)
        )
        how = {"size": "1M", "samples": 2, "machine": "dgx-h200-8", "out": None}
        run = linkgauge.run("all_reduce", **SIMULATED)
        judged = linkgauge.gate(run, baseline=run, history=False, force=True)
        health = linkgauge.check(machine="dgx-h200-8", under=20)
        varied = linkgauge.vary("device_local_copy", engine=["ce", "sm"], rounds=8, **how)
        values = (
            linkgauge.devices(run), judged.comparison, judged, varied,
            linkgauge.scale("all_reduce", machine="dgx-h200-8", gpus="2,8", size="64M"), health,
        )  # fmt: skip
        texts = [unescape(shown[type(one).__module__, type(one).__name__](one)) for one in values]
        for text, word in zip(
            texts, ("H200", "baseline", "rule", "--engine", "busbw", "ok"), strict=True
        ):
            assert word in text, word
        found = linkgauge.doctor(machine="vm-degraded")
        assert found[0].subject in unescape(found._repr_html_())

    def test_hostile_text_is_harmless(self):
        name = '<script>alert(1)</script>\x1b[31m\n"><img src=x>'
        results = [replace(one, benchmark=name, title=name) for one in RUN.results]
        run = linkgauge.MeasuredRun(replace(RUN, results=tuple(results), id=name), Outcome(0))
        assert not re.search(r"[\x00-\x1f]", repr(run))
        page = run._repr_html_()
        assert page.startswith("<iframe srcdoc=")
        assert page.count("<") == 2, "all of the page is the value of an attribute"
        inside = unescape(page)
        assert "<script>alert" not in inside
        assert "<img" not in inside

    def test_a_line_shows_progress_where_ipython_runs_and_nowhere_else(self, monkeypatch, capfd):
        linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED)
        assert capfd.readouterr() == ("", "")
        shell = types.SimpleNamespace(get_ipython=lambda: object())
        monkeypatch.setitem(sys.modules, "IPython", shell)
        said = []
        linkgauge.measure("host:0 -> sim:0 by ce", **SIMULATED, say=said.append)
        shown, errors = capfd.readouterr()
        assert errors == ""
        line, blank = shown.removeprefix("\r").removesuffix("\r").split("\r")
        assert line == "1 of 1: copy host:0 -> sim:0"
        assert blank == " " * len(line)
        assert said == []
        linkgauge.check(machine="dgx-h200-8", under=20)
        assert "opening the devices" in capfd.readouterr().out


class TestTables:
    @pytest.fixture
    def figures(self, tmp_path):
        return linkgauge.load(write_run(tmp_path, RUN)).figures

    def test_is_a_sequence_of_rows(self, figures):
        assert len(figures) == len([*figures]) > 1
        assert figures[0] == next(iter(figures))
        assert figures[:2] == tuple(figures)[:2]
        assert repr(figures).startswith(f"<{len(figures)} rows of cells: run, label, benchmark")

    def test_arrow_has_the_rows_types_and_absent_values(self, figures):
        arrow = pytest.importorskip("pyarrow")
        table = figures.to_arrow()
        assert tuple(table.column_names) == figures.columns == linkgauge.CellRow.__struct_fields__
        assert table.column("figure").to_pylist() == [row.figure for row in figures]
        assert table.schema.field("size").type == arrow.int64()
        assert table.schema.field("simulated").type == arrow.bool_()

    def test_readers_of_arrows_stream_take_it_as_it_is(self, figures):
        """As polars, DuckDB and pandas do; nanoarrow is the smallest of them."""
        reader = pytest.importorskip("nanoarrow", reason="no wheels of it for this CPU")
        read = reader.Array(figures)
        assert tuple(field.name for field in read.schema.fields) == figures.columns
        kinds = {field.name: field.type.name for field in read.schema.fields}
        assert [kinds[name] for name in ("reason", "size", "figure", "simulated")] == [
            "STRING", "INT64", "DOUBLE", "BOOL",
        ]  # fmt: skip
        wanted = [{name: getattr(row, name) for name in figures.columns} for row in figures]
        assert [*read.to_pylist()] == wanted

    def test_polars_takes_that_stream(self, figures):
        reason = "polars takes 180 MB: set-up leaves it out"
        polars = pytest.importorskip("polars", reason=reason)
        frame = figures.to_polars()
        assert frame.rows() == [astuple(row) for row in figures]
        assert frame["n"].dtype == polars.Int64

    @pytest.mark.parametrize(
        ("package", "extra"), [("pandas", "analysis"), ("polars", "polars"), ("arrow", "analysis")]
    )
    def test_without_its_package_the_extra_is_named(self, figures, monkeypatch, package, extra):
        monkeypatch.setitem(sys.modules, package.replace("arrow", "pyarrow"), None)
        with pytest.raises(linkgauge.MissingPackage, match=rf"'linkgauge\[{extra}\]'"):
            getattr(figures, f"to_{package}")()


class TestPandas:
    @pytest.fixture(autouse=True)
    def pandas(self):
        return pytest.importorskip("pandas")

    def test_a_frame_has_the_rows_fields_and_numbers(self, tmp_path):
        view = linkgauge.load(write_run(tmp_path, RUN))
        frame = view.to_pandas()
        assert tuple(frame.columns) == linkgauge.CellRow.__struct_fields__
        assert [frame[name].dtype.kind for name in ("figure", "low", "share", "n")] == list("fffi")
        assert frame["median"].isna().sum() == sum(cell.median is None for cell in view.cells)
        assert frame["benchmark"].tolist() == [cell.benchmark for cell in view.cells]

    def test_without_any_rows_it_has_the_columns(self, tmp_path):
        empty = linkgauge.load(write_run(tmp_path, replace(RUN, results=())))
        for frame in (empty.to_pandas(), empty.to_pandas(samples=True)):
            assert len(frame) == 0
            assert "unit" in frame.columns

    def test_without_pandas_the_extra_is_named(self, tmp_path, monkeypatch):
        view = linkgauge.load(write_run(tmp_path, RUN))
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(linkgauge.MissingPackage, match=r"pip install 'linkgauge\[analysis\]'"):
            view.to_pandas()
