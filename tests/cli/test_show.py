"""What `show` and the others take: a run, a label, a folder of runs, the latest run of this
machine; and what they leave out."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from command_kit import called
from configurations_kit import THREE, here, measured, run_of
from linkgauge.cli.doctor import look_at_a_run
from linkgauge.engine.kept import runs
from linkgauge.engine.kept.runs import find_run, latest_run, one_run, own_run, read_run
from linkgauge.judge import outcome
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.verdict import Judge
from linkgauge.model.errors import InputError
from linkgauge.model.notes import Profiled
from linkgauge.report.files import write_run

OWN, SIMULATED, FOREIGN = "cpu/own/20261121T201500Z", "sim/sim/20261121T201501Z", "cpu/other"
FIGURES = measured(devices=0)


def keep(where, run):
    folder = Path("results") / where
    folder.mkdir(parents=True)
    write_run(folder, run)
    return folder


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Three labels on one accelerator and one without any."""
    monkeypatch.chdir(tmp_path)
    for run in THREE:
        keep(f"nvidia-h200/{run.label}/20261121T201500Z", run)
    keep("cpu/bare/20261121T201500Z", run_of("bare", *FIGURES))
    return Path("results")


def shown(*words):
    done = called("show", *words)
    return done.returncode, done.stdout, done.stderr


def labels(text):
    return [line.split()[0] for line in text.splitlines() if "±" in line and line[0].isalpha()]


def test_a_run_that_cannot_be_read_is_left_out_and_said(results):
    (broken,) = results.glob("cpu/bare/*/run.json")
    broken.write_text("{")
    code, out, err = shown(results)
    assert (code, "cpu:" in out, f"{broken} is damaged" in err) == (0, False, True)
    called("report", results, "-o", "all.html")
    assert "is damaged or incomplete" in Path("all.html").read_text()


def test_a_run_under_a_profiler_is_compared_with_nothing(results):
    (path,) = results.glob("nvidia-h200/pinned/*")
    run = read_run(path)
    noted = [
        replace(one, cells=tuple(replace(cell, notes=(Profiled("nsys"),)) for cell in one.cells))
        for one in run.results
    ]
    write_run(path, replace(run, results=tuple(noted)))
    _, out, err = shown(results / "nvidia-h200")
    assert set(labels(out)) == {"host", "unpinned"}
    assert err.endswith(f"{path} was measured under a profiler\n")
    Path("limits.yml").write_text("limits: []\n")
    code, _, err = shown(path, "--limits", "limits.yml")
    assert (code, "under a profiler, so its figures are not judged" in err) == (2, True)


def test_the_latest_run_and_that_of_a_label_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for where in (
        "cpu/bare/20261121T201500Z",
        "nvidia-h200/pinned/20261121T201501Z",
        "cpu/pinned/20261121T201502Z",
        *("cpu/bare/20261121T201503Z", "cpu/bare/20261121T201503Z-2"),
        "cpu/bare/20261121T201503Z-11",
    ):
        keep(where, here(run_of(where.split("/")[1], *FIGURES)))
    last = Path("results/cpu/bare/20261121T201503Z-11")
    assert latest_run(Path("results")) == last
    assert shown()[1].splitlines()[-1] == f"results: {last}/run.json"
    assert find_run(Path("pinned")) == Path("results/cpu/pinned/20261121T201502Z")
    assert find_run(last / "run.json") == last / "run.json"


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """Runs of a simulated machine, and of another one, which began last."""
    monkeypatch.chdir(tmp_path)
    run = here(run_of("sim", *FIGURES, simulated=True))
    keep(SIMULATED, replace(run, machine=replace(run.machine, simulated="dgx")))
    keep(f"{FOREIGN}/20261121T201502Z", run_of("other", *FIGURES))
    return Path("results")


def test_the_latest_run_is_one_of_this_machine_although_others_began_later(foreign):
    keep(OWN, here(run_of("own", *FIGURES)))
    assert one_run(None) == foreign / OWN
    assert one_run(Path("sim")) == foreign / SIMULATED
    assert one_run(foreign / "cpu/other") == foreign / FOREIGN / "20261121T201502Z"
    broken = keep(OWN.replace("201500", "201509"), here(run_of("own", *FIGURES)))
    (broken / "run.json").write_text("{")
    assert own_run() == broken, "one that cannot be read is not passed over"


@pytest.mark.parametrize("words", ["show", "export --csv", "report", "pack", "gate"])
def test_where_all_are_of_others_the_command_that_names_the_latest_is_said(foreign, words):
    against = ("--baseline", "sim") if words == "gate" else ()
    done = called(*words.split(), *against)
    command = "gate --baseline REF --current" if words == "gate" else words.split()[0]
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "results has no run of this machine" in done.stderr
    assert f"linkgauge {command} results/{FOREIGN}/20261121T201502Z" in done.stderr
    keep("sim/sim/20261121T201503Z", run_of("sim", *FIGURES, simulated=True))
    with pytest.raises(InputError, match="the latest one is simulated: linkgauge show results/sim"):
        own_run()


def test_a_journal_says_whose_it_is(foreign):
    journal = foreign / "cpu/own/20261121T201510Z"
    journal.mkdir(parents=True)
    name = here(run_of("own")).machine.host.hostname
    line = f'{{"record": "opened", "machine": {{"host": {{"hostname": "{name}"}}}}}}\n'
    measured_one = '{"record": "cell", "sheet": 0, "cell": {"status": "pass"}}\n'
    (journal / "journal.jsonl").write_text(line + measured_one + '{"rec')
    assert own_run() == journal
    elsewhere = line.replace(f'"{name}"', '"elsewhere"') + measured_one
    (journal / "journal.jsonl").write_text(elsewhere)
    with pytest.raises(InputError, match="was measured on elsewhere"):
        own_run()


def nothing(label):
    """A run that was asked for what this machine does not have."""
    run = here(run_of(label, *FIGURES))
    skipped = [
        replace(one, status="skip", cells=tuple(
            replace(cell, status="skip", reason="no device", summary=None) for cell in one.cells
        ))
        for one in run.results
    ]  # fmt: skip
    return replace(run, results=tuple(skipped))


def test_a_run_that_measured_nothing_is_not_the_latest_one(tmp_path, monkeypatch):
    """For no command, neither of this machine nor of a label; named by its path, it is shown."""
    monkeypatch.chdir(tmp_path)
    empty = keep("cpu/own/20261121T201509Z", nothing("own"))
    assert one_run(Path("own")) == empty, "the only run of its label"
    with pytest.raises(InputError) as refused:
        own_run()
    assert "has no run of this machine" in str(refused.value)
    assert f"with figures; the latest one measured nothing: linkgauge show {empty}" in str(
        refused.value
    )
    assert look_at_a_run().words[1:] == ("run", "--profile", "quick")

    own = keep(OWN, here(run_of("own", *FIGURES)))
    called("report", "results", "-o", "all.html")
    assert "nothing measured" not in Path("all.html").read_text(), "the verdict of the last"
    journal = Path("results/cpu/own/20261121T201510Z")
    journal.mkdir()
    host = here(run_of("own")).machine.host.hostname
    opened = f'{{"record": "opened", "machine": {{"host": {{"hostname": "{host}"}}}}}}\n'
    (journal / "journal.jsonl").write_text(opened)
    assert own_run() == own
    assert one_run(None) == one_run(Path("own")) == one_run(Path("results")) == own
    assert look_at_a_run().words == (look_at_a_run().words[0], "doctor", str(own))
    _, out, err = shown()
    assert out.splitlines()[-1] == f"results: {own}/run.json"
    assert err == f"passed over, because it measured nothing: {journal}\n"
    assert shown(empty)[0] == 4
    error = '{"record": "cell", "sheet": 0, "cell": {"status": "error"}}\n'
    (journal / "journal.jsonl").write_text(opened + error)
    assert own_run() == journal, "an error is news of the machine"


def test_a_folder_that_is_not_there_is_no_run(foreign):
    for words in ((foreign / "gone", "--against", "host"), (foreign / "gone",)):
        code, out, err = shown(*words)
        assert (code, out) == (2, "")
        assert err == f"linkgauge: cannot read {foreign / 'gone'}: No such file or directory\n"


def test_a_run_in_a_file_of_another_name_is_named_by_it(tmp_path, monkeypatch):
    """Its folder may hold another run, or none."""
    monkeypatch.chdir(tmp_path)
    words = ("host_to_device_memcpy_ce", "--machine", "vm-degraded", "--profile", "quick")
    called("run", *words, "--no-report", "--json", LINKGAUGE_HISTORY="none")
    (path,) = tmp_path.rglob("run.json")
    Path("mine.json").write_text(called("show", path.parent, "--json").stdout)
    for command, end in (("show", ""), ("doctor", " --fix-script fix.sh")):
        assert f"doctor mine.json{end}\n" in called(command, "mine.json").stdout
        folder = path.parent
        assert f"doctor {folder}{end}\n" in called(command, path, COLUMNS=300).stdout


def test_a_label_is_that_of_this_machine_where_it_has_runs_of_it(foreign):
    own = keep(OWN.replace("/own/", "/other/"), here(run_of("other", *FIGURES)))
    assert find_run(Path("other")) == own
    assert find_run(foreign / FOREIGN) == foreign / FOREIGN, "a path is what it names"


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """Runs of eight devices, without and with a slow link."""
    folder = tmp_path_factory.mktemp("eight")
    for label, fault in (("well", ()), ("bad", ("--fault", "slow sim:3-nvswitch rate=25%"))):
        called("run", *"--machine dgx-h200-8 --profile quick --samples 3 --label".split(), label,
               *fault, cwd=folder)  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def known(eight):
    """Each run of `eight` is read, judged and diagnosed once, however often it is shown."""

    def once(call, which):
        kept = {}

        def of(*given):
            key = which(*given)
            if key not in kept:
                kept[key] = call(*given), given  # what is held keeps its identity
            return kept[key][0]

        return of

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_decoded", once(runs._decoded, lambda data, path, beside: path))
        patch.setattr(Judge, "__call__", once(Judge.__call__, lambda judge, run: id(run)))
        patch.setattr(outcome, "diagnose", once(diagnose, lambda evidence: id(evidence.results)))
        yield


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_first_screen_is_short_and_never_wider_than_the_terminal(eight, width):
    kept = {"COLUMNS": width, "LINKGAUGE_HISTORY": eight / "history.db"}

    def screen(*words):
        lines = called(*words, cwd=eight, **kept).stdout.splitlines()
        assert max(map(len, lines)) <= width
        return lines

    well, bad = screen("show", "well"), screen("show", "bad")
    assert (len(well) <= 45, len(bad) <= 60) == (True, True)
    assert well[0].startswith("8 NVIDIA H200 copy 55.3")
    assert "as this hardware should" in " ".join(well[:2])
    assert any(line.startswith("fail fabric-links  sim:3-nvswitch: ") for line in bad[1:4])
    assert "verdict:   fail fabric-links" in "\n".join(bad[-10:])
    assert len([line for line in bad if line.startswith("memcpy ")]) == 1, "one matrix"
    assert len(screen("show", "well", "--all")) > 150
    called("history", "import", "results", cwd=eight, **kept)
    others = ("compare well bad", "history", "history --all", "devices well", "doctor bad")
    for words in (*others, "gate --baseline well --current bad", "history trend device_local_copy"):
        screen(*words.split())
