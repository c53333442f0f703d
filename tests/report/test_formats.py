"""Output formats are a registry: a format is one file, and commands know it by being there."""

import json

import pytest

from linkgauge.benchmarks.catalog import select
from linkgauge.cli.options import RunFormat, expanded
from linkgauge.model.errors import InputError
from linkgauge.report import formats as registry
from linkgauge.report.files import samples_csv
from linkgauge.report.formats import Format, formats
from report.test_output import RUN

ONES = Format("ones", "Only ones.", {"run": lambda run: "1" * len(run.results)})


def test_each_has_a_name_of_its_own_and_renders_something():
    names = {"terminal", "json", "csv", "yaml", "parquet", "markdown", "junit"}
    assert set(formats()) == names
    for name, form in formats().items():
        assert (form.name, form.flag) == (name, f"--{name}")
        assert form.renderers
        assert form.is_document == bool(form.help) == (name != "terminal")


def test_a_document_is_written_to_stdout_whole(capsys):
    formats()["csv"].write("run", RUN)
    assert capsys.readouterr() == (samples_csv(RUN), "")
    formats()["json"].write("run", RUN)
    assert json.loads(capsys.readouterr().out)["id"] == RUN.id


def test_a_person_sees_the_results_and_how_many_ended_how(capsys):
    formats()["terminal"].write("run", RUN)
    shown = capsys.readouterr().out
    measured = [one for one in RUN.results if any(cell.summary for cell in one.cells)]
    assert all(result.benchmark in shown for result in measured)
    last = shown.splitlines()
    assert last[-1].startswith(
        "8 measured: 0 ok, 0 low, 7 not judged (no reference), 1 fail; 1 error; 2 skip;"
    )
    assert any(line.startswith("verdict:   fail wrong-bytes") for line in last)


def test_what_a_format_does_not_render_is_refused():
    with pytest.raises(InputError, match="--yaml does not render a run"):
        formats()["yaml"].write("run", RUN)


def test_each_benchmark_is_listed_with_its_profiles(capsys):
    rows = select((), ("device_local",))
    formats()["json"].write("benchmarks", rows)
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed == {
        "name": "device_local_copy",
        "title": rows[0].title,
        "profiles": ["quick", "standard", "full", "vm"],
    }
    formats()["terminal"].write("benchmarks", rows)
    words = capsys.readouterr().out.split()
    assert words[:5] == ["device_local_copy", "quick", "standard", "full", "vm"]


def command(*, form: RunFormat) -> int:
    form.write("run", RUN)
    return 0


class TestOneMoreFormat:
    @pytest.fixture(autouse=True)
    def ones(self, monkeypatch):
        known = formats() | {"ones": ONES}
        monkeypatch.setattr("linkgauge.cli.options.formats", lambda: known)

    def test_is_a_flag_of_the_commands_that_have_what_it_renders(self, capsys):
        assert expanded(command)(json=False, csv=False, ones=True) == 0
        assert capsys.readouterr().out == "1" * len(RUN.results)

    def test_wants_stdout_for_itself(self):
        with pytest.raises(InputError, match="--json and --ones both want stdout: choose one"):
            expanded(command)(json=True, csv=False, ones=True)


def test_each_file_of_the_folder_is_one():
    files = {path.stem for path in (registry_folder()).glob("*.py")} - {"__init__"}
    assert files == set(formats())


def registry_folder():
    from pathlib import Path

    return Path(registry.__file__).parent
