"""What takes the latest run unless one is named takes that of this machine."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.test_cli import linkgauge
from configurations_kit import here, measured, run_of
from linkgauge.cli.doctor import _look_at_a_run
from linkgauge.engine.folder import create_run_folder
from linkgauge.engine.runs import one_run, own_run
from linkgauge.model.errors import InputError
from linkgauge.report.files import write_run

OWN, SIMULATED, FOREIGN = "cpu/own/20261121T201500Z", "sim/sim/20261121T201501Z", "cpu/other"
DEFAULTS = (
    ("show",), ("export", "--csv"), ("report",), ("pack",),
    ("gate", "--baseline", "sim", "--current"),
)  # fmt: skip


def keep(where, run):
    path = Path("results") / where
    write_run(create_run_folder(Path("results"), *path.parts[1:3], path.name), run)


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """Runs of a simulated machine, and of another one, which began last."""
    monkeypatch.chdir(tmp_path)
    run = here(run_of("sim", *measured(devices=0), simulated=True))
    keep(SIMULATED, replace(run, machine=replace(run.machine, simulated="dgx")))
    keep(f"{FOREIGN}/20261121T201502Z", run_of("other", *measured(devices=0)))
    return Path("results")


def test_the_latest_run_is_one_of_this_machine_although_others_began_later(foreign):
    keep(OWN, here(run_of("own", *measured(devices=0))))
    keep("cpu/own/20261121T201400Z", here(run_of("own", *measured(devices=0))))
    assert one_run(None) == foreign / OWN
    assert OWN in _look_at_a_run().line


def test_what_is_named_may_be_of_any_machine(foreign):
    assert one_run(Path("sim")) == foreign / SIMULATED
    assert one_run(foreign / "cpu") == foreign / FOREIGN / "20261121T201502Z"


@pytest.mark.parametrize("words", DEFAULTS)
def test_where_all_are_of_others_the_command_that_names_the_latest_is_said(foreign, words):
    asked = [word for word in words if word != "--current"]
    done = linkgauge(*asked)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "results has no run of this machine" in done.stderr
    command = "gate --baseline REF --current" if words[0] == "gate" else words[0]
    assert f"linkgauge {command} results/{FOREIGN}/20261121T201502Z" in done.stderr


def test_a_simulated_run_is_called_so(foreign):
    keep("sim/sim/20261121T201503Z", run_of("sim", simulated=True))
    with pytest.raises(InputError, match="the latest one is simulated: linkgauge show results/sim"):
        own_run()
    assert _look_at_a_run().words[1:] == ("run", "--profile", "quick")


def test_a_run_that_cannot_be_read_is_not_passed_over(foreign):
    keep(OWN.replace("201500", "201509"), here(run_of("own")))
    broken = foreign / OWN.replace("201500", "201509")
    (broken / "run.json").write_text("{")
    assert own_run() == broken


def test_a_journal_says_whose_it_is(foreign, tmp_path):
    journal = foreign / "cpu/own/20261121T201510Z"
    journal.mkdir(parents=True)
    name = here(run_of("own")).machine.host.hostname
    line = f'{{"record": "opened", "machine": {{"host": {{"hostname": "{name}"}}}}}}\n'
    (journal / "journal.jsonl").write_text(line + '{"rec')
    assert own_run() == journal
    (journal / "journal.jsonl").write_text(line.replace(f'"{name}"', '"elsewhere"'))
    with pytest.raises(InputError, match="was measured on elsewhere"):
        own_run()
