"""`linkgauge report`, and the report that a run writes."""

import pytest
from msgspec.structs import replace

from command_kit import called
from configurations_kit import cell, here, result, run_of
from linkgauge.cli.report import report
from linkgauge.compat import generate_report
from linkgauge.compat.base import Where
from linkgauge.judge.outcome import outcome_of
from linkgauge.machine.host import this_host
from linkgauge.model.errors import InputError
from linkgauge.report.files import write_run
from linkgauge.report.formats import TERMINAL, formats
from linkgauge.report.live import Display, LiveReport
from linkgauge.report.pack import pack_run
from linkgauge.report.page import drawing
from report.samples import RUN


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Charts have tests of their own: these run without."""
    monkeypatch.setattr(drawing, "PACKAGES", ("no_such_package",))


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two configurations on one accelerator, one on another."""
    monkeypatch.chdir(tmp_path)
    for number, (accelerator, label, figure) in enumerate(
        (("gpu-a", "host", 50e9), ("gpu-a", "guest", 40e9), ("gpu-b", "host", 20e9))
    ):
        run = run_of(label, result("host_to_device_memcpy_ce", cell("0", "0", figure)),
                     started=f"2026-11-21T2{number}:15:00Z")  # fmt: skip
        folder = tmp_path / "results" / accelerator / label / run.id
        folder.mkdir(parents=True)
        write_run(folder, here(run))
    return tmp_path / "results"


def test_without_a_name_it_lies_beside_the_latest_run(results, capsys):
    assert report(runs=None) == 0
    path = results.relative_to(results.parent) / "gpu-b/host/20261121T221500Z/report.html"
    assert capsys.readouterr().out == f"report: {path}\n"
    assert "<!DOCTYPE html>" in (results.parent / path).read_text()


def test_a_label_is_its_latest_run(results, tmp_path):
    report(runs=[(tmp_path / "guest").relative_to(tmp_path)], output=tmp_path / "one.html")
    assert f"{this_host()} · guest" in (tmp_path / "one.html").read_text()


def test_a_folder_is_all_runs_by_accelerator(results):
    report(runs=[results])
    text = (results / "report.html").read_text()
    table = text[text.index('id="configurations"') : text.index('id="verdict"')] if (
        'id="verdict"' in text) else text[text.index('id="configurations"') :]  # fmt: skip
    assert [table.index(name) for name in ("gpu-a", "gpu-b")] == sorted(
        table.index(name) for name in ("gpu-a", "gpu-b")
    )
    assert "-20%" in table
    assert text.count('class="sortable') == 0
    assert text.count("<figure>") == 2


def test_several_runs_may_be_named(results, tmp_path):
    one, other = sorted((results / "gpu-a").glob("*/*"))
    report(runs=[one, other], against="guest", output=tmp_path / "two.html")
    text = (tmp_path / "two.html").read_text()
    assert "2 runs of 2 configurations on gpu-a" in text
    assert "+25%" in text
    with pytest.raises(InputError, match="no run is labelled 'nobody'"):
        report(runs=[one, other], against="nobody", output=tmp_path / "two.html")


def test_runs_of_other_profiles_are_compared_by_their_worst_cells(results, tmp_path):
    for path in sorted((results / "gpu-a").glob("*/*")):
        run = run_of(path.parent.name, result("memory_stream_nodes", cell("x", "y", 9e9)))
        write_run(path, replace(run, results=(replace(run.results[0], benchmark="other"),)))
    report(runs=[results / "gpu-a"], output=tmp_path / "two.html")
    assert "other (GB/s)" in (tmp_path / "two.html").read_text()


def test_what_cannot_be_read_is_left_out_and_said(results, tmp_path):
    path = next((results / "gpu-a/guest").glob("*/run.json"))
    path.write_text("{")
    report(runs=[results], output=tmp_path / "all.html")
    assert "is damaged or incomplete" in (tmp_path / "all.html").read_text()
    with pytest.raises(InputError, match="--against is of several runs"):
        report(runs=[next((results / "gpu-b/host").iterdir())], against="host")


def test_a_report_is_packed_with_its_run(results):
    report(runs=None)
    folder = next((results / "gpu-b/host").iterdir())
    assert "report.html" in pack_run(folder).names
    assert "report.html" in pack_run(folder, anonymous=True).left_out


def concluded(folder, **how):
    with LiveReport(Display(formats()[TERMINAL], **how), lambda run, folder: None) as shown:
        return shown.conclude(RUN, folder)


def test_a_run_writes_its_report_beside_its_results(tmp_path, capsys):
    code = concluded(tmp_path, page=True)
    assert code == outcome_of(RUN).code
    assert "<!DOCTYPE html>" in (tmp_path / "report.html").read_text()
    assert capsys.readouterr().out.endswith(f"results: {tmp_path / 'run.json'}\n")


def test_without_it_none_is_written(tmp_path):
    concluded(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_report_that_cannot_be_written_costs_nothing_else(tmp_path, capsys):
    (tmp_path / "report.html").mkdir()
    assert concluded(tmp_path, page=True) == outcome_of(RUN).code
    said = capsys.readouterr()
    assert "no report: cannot write" in said.err.replace("\n", " ")
    assert (tmp_path / "run.json").exists()


def test_generate_report_takes_the_folder_of_results(results, capsys):
    assert generate_report.run([], Where()) == 0
    assert capsys.readouterr().out == "report: results/report.html\n"
    assert generate_report.run(["results/gpu-a", "-o", "a.html"], Where()) == 0
    assert "2 runs of 2 configurations" in (results.parent / "a.html").read_text()
    for wrong in (["nowhere"], ["results", "-o", "a.doc"]):
        with pytest.raises(InputError):
            generate_report.run(wrong, Where())
    assert generate_report.run(["-h"], Where()) == 0
    assert "generate_report [results_dir]" in capsys.readouterr().out


def test_the_folder_of_a_comparison_of_settings_is_named_with_what_reads_it(tmp_path):
    folder = tmp_path / "results/gpu/vary/20261121T201500Z"
    folder.mkdir(parents=True)
    (folder / "vary.json").write_text('{"schema": "linkgauge.vary/1"}')
    for command in (["report"], ["export", "--csv"], ["compare", folder], ["doctor"], ["pack"]):
        done = called(*command, folder)
        assert done.returncode == 2, command
        assert f"{folder} compares settings: linkgauge show {folder} reads it" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("run", "host_to_device_memcpy_ce", "--samples", "1"),
        ("copy", "host:0 -> sim:0", "--samples", "1"),
        ("latency", "latency_copy_pingpong", "--iterations", "1"),
        ("traffic", "--samples", "1"),
        ("scale", "all_reduce", "--gpus", "1,2", "--size", "1M", "--samples", "1"),
    ],
)
def test_each_command_that_keeps_a_run_writes_its_report(command, tmp_path, monkeypatch):
    monkeypatch.delenv("LINKGAUGE_NO_REPORT", raising=False)
    given = (*command, "--machine", "riscv-2gpu", "--out")
    done = called(*given, tmp_path / "with")
    assert len([*(tmp_path / "with").rglob("report.html")]) == 1, done.stderr
    called(*given, tmp_path / "without", "--no-report")
    assert len([*(tmp_path / "without").rglob("run.json")]) == 1
    assert not [*(tmp_path / "without").rglob("report.html")]
