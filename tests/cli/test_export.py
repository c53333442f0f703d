"""`linkgauge export` and `pack`: what they refuse."""

import pytest

from configurations_kit import here
from linkgauge.cli.export import export
from linkgauge.cli.pack import pack
from linkgauge.model.errors import InputError
from linkgauge.report.files import write_run
from linkgauge.report.formats import formats
from report.samples import RUN


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path, RUN)


def test_a_format_has_to_be_given(run):
    with pytest.raises(InputError, match="give a format: --csv"):
        export(run=run, form=formats()["terminal"])


def test_without_a_run_it_is_the_latest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no runs in results"):
        export(run=None, form=formats()["csv"])
    with pytest.raises(InputError, match="no runs in results"):
        pack(run=None)
    folder = tmp_path / "results/gpu/before" / RUN.id
    folder.mkdir(parents=True)
    write_run(folder, here(RUN))
    assert pack(run=None) == 0
    assert (tmp_path / f"{RUN.id}.tar.zst").exists()


def test_parquet_is_not_for_stdout(run):
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="give a file with -o"):
        export(run=run, form=formats()["parquet"])


@pytest.mark.parametrize("name", ["markdown", "junit"])
def test_samples_are_tables_of_numbers_alone(name, run):
    with pytest.raises(InputError, match=f"--{name} does not render samples"):
        export(run=run, form=formats()[name], samples=True)


@pytest.mark.parametrize("name", ["csv", "json", "markdown", "junit"])
def test_a_file_holds_what_stdout_shows(name, run, tmp_path, capsys):
    assert export(run=run, form=formats()[name]) == 0
    shown = capsys.readouterr().out
    assert export(run=run, form=formats()[name], output=tmp_path / "x") == 0
    assert (tmp_path / "x").read_text() == shown


def test_only_a_runs_folder_is_packed(run, tmp_path):
    with pytest.raises(InputError, match="is not a run's folder"):
        pack(run=run)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no runs in"):
        pack(run=tmp_path / "empty")
