"""`linkgauge compare`, `gate` and `baseline` on kept runs, and what the gate measures again."""

import json
from itertools import count

import pytest
from msgspec.structs import replace

from command_kit import called as linkgauge
from configurations_kit import cell, result, run_of
from linkgauge.model.settings import Settings
from linkgauge.report.files import write_run

TRIAD, COPY = "memory_stream_triad", "host_to_device_memcpy_ce"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of labels: `before` has five runs, `after` three that lost a tenth of one cell."""
    monkeypatch.chdir(tmp_path)

    number = count()

    def keep(label, *scales, settings=None):
        for n, scale in zip(number, scales, strict=False):
            run = run_of(label, result(TRIAD, cell("0 stream", "8", 300e9)),
                         result(COPY, cell("0", "0", 55e9 * scale)),
                         started=f"2026-11-21T20:{n:02d}:00Z")  # fmt: skip
            run = replace(run, settings=settings or run.settings)
            folder = tmp_path / "results/card" / label / f"20261121T20{n:02d}00Z"
            folder.mkdir(parents=True)
            write_run(folder, run)

    keep("before", 1.0, 1.004, 0.996, 1.002, 0.998)
    keep("after", 0.9, 0.903, 0.898)
    return keep


def test_unlike_runs_are_refused_and_named_unless_forced(kept):
    kept("smaller", 0.8, 0.8, settings=Settings((1 << 20,), profile="vm"))
    sides = ("--baseline", "results/card/before", "--current", "results/card/smaller")
    refused = linkgauge("gate", *sides)
    assert refused.returncode == 2
    first, second, *_ = refused.stderr.splitlines()
    assert first == "linkgauge: the runs are not comparable (--force compares them anyway):"
    assert second.startswith("  sizes: 64 B (baseline); 1 MiB (current)")
    assert linkgauge("gate", *sides, "--force").returncode == 1


@pytest.mark.parametrize("command", ["gate", "compare"])
@pytest.mark.parametrize(
    ("pattern", "near"),
    [("memory_stream_tirad", f"did you mean {TRIAD!r}?"), ("nosuch", f"they have {TRIAD}, {COPY}")],
)
def test_a_benchmark_that_no_run_has_is_refused(command, pattern, near, kept):
    sides = ("--baseline", "before", "--current", "after")
    words = sides if command == "gate" else ("before", "after")
    done = linkgauge(command, *words, "--benchmark", "memory_*", "--benchmark", pattern)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"--benchmark {pattern}: these runs have no such benchmark" in done.stderr
    assert done.stderr.strip().endswith(near)


def test_cells_in_doubt_are_measured_again_and_kept_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of = ("--machine", "full-8", "--size", "64M")
    names = ("device_local_copy", "device_to_device_memcpy_read_ce")
    for label, fault in (("good", ()), ("bad", ("--fault", "slow sim:0-sim:1 rate=50%"))):
        assert linkgauge("run", *names, *of, "--label", label, *fault).returncode in (0, 1)
    done = linkgauge("gate", "--baseline", "good", "--current", "bad", "--rerun", "1", "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    failed = {(one["cell"]["row"], one["cell"]["column"]) for one in document["cells"]
              if one["verdict"] == "regression"}  # fmt: skip
    assert failed == {("0", "1"), ("1", "0")}
    (again,) = tmp_path.glob("results/*/bad-again/*/run.json")
    cells = [one for result in json.loads(again.read_text())["results"] for one in result["cells"]]
    assert 2 <= len(cells) < 20
    assert document["again"] == [len(cells), 1]


def remember(folder, monkeypatch, change=lambda run: run):
    """The runs of `before` and `after` are in the history as well, and twelve earlier ones that
    vary by a tenth are there alone."""
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(folder / "history.db"))
    assert linkgauge("history", "import", "results").returncode == 0
    for n in range(12):
        scale = 1 + 0.1 * (-1) ** n
        run = run_of("nightly", result(TRIAD, cell("0 stream", "8", 300e9)),
                     result(COPY, cell("0", "0", 55e9 * scale)),
                     started=f"2026-11-20T20:{n:02d}:00Z")  # fmt: skip
        place = folder / "elsewhere" / f"card/nightly/{n}"
        place.mkdir(parents=True)
        write_run(place, change(replace(run, id=f"old{n}")))
    assert linkgauge("history", "import", "elsewhere").returncode == 0


def history_and_direction(*more):
    sides = ("results/card/before", "results/card/after")
    document = json.loads(linkgauge("compare", *sides, "--json", *more).stdout)
    (one,) = [one for one in document["cells"] if one["benchmark"] == COPY]
    return document["history"], one["changes"][0]["direction"]


def test_the_history_shows_how_much_runs_vary_and_each_run_counts_once(kept, tmp_path, monkeypatch):
    """Those that are compared are in it, and count as what they are."""
    remember(tmp_path, monkeypatch)
    assert history_and_direction("--no-history") == (0, "worse")
    count, direction = history_and_direction()
    assert (count, direction != "worse") == (12, True)
    sides = ("--baseline", "results/card/before", "--current", "results/card/after")
    assert linkgauge("gate", *sides).returncode == 0
    assert linkgauge("gate", *sides, "--no-history").returncode == 1


def on(**host):
    """A run on a host that differs in this."""
    return lambda run: replace(
        run, machine=replace(run.machine, host=replace(run.machine.host, **host))
    )


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (on(memory_available=1 << 30), True),
        (on(kernel="5.4"), False),
        (on(hostname="elsewhere"), False),
        (lambda run: replace(run, machine=replace(run.machine, linkgauge="9")), False),
        (lambda run: replace(run, settings=Settings((1 << 20,), profile="vm")), False),
        # It may have what is to be found.
        (lambda run: replace(run, started=run.started.replace("11-20", "11-22")), False),
    ],
    ids=["free memory", "kernel", "host", "version", "settings", "later"],
)
def test_earlier_runs_count_in_the_same_state_alone(change, counts, kept, tmp_path, monkeypatch):
    remember(tmp_path, monkeypatch, change)
    assert history_and_direction()[0] == (12 if counts else 0)


def test_a_history_that_cannot_be_read_costs_a_line_and_no_judgement(kept, tmp_path, monkeypatch):
    path = tmp_path / "history.db"
    path.write_text("no database")
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(path))
    done = linkgauge("compare", "results/card/before", "results/card/after")
    assert done.returncode == 0
    assert done.stderr.startswith(f"judged without the history: the history {path} is not usable")
    assert done.stderr.count("\n") == 1


def test_the_loss_asked_for_must_not_be_undetectable(kept):
    sides = ("--baseline", "results/card/before", "--current", "before")
    assert linkgauge("gate", *sides).returncode == 0
    fine = linkgauge("gate", *sides, "--min-loss", "0.01%", "--detect", "0.02%")
    assert fine.returncode == 3
    assert "in 2 of 2 cells, even a loss of 0.02% may go undetected" in fine.stdout
    allowed = linkgauge("gate", *sides, "--min-loss", "0.01%", "--detect", "0.02%", "--allow-noisy")
    assert allowed.returncode == 0


def test_several_baselines_are_one_of_all_their_runs(kept):
    kept("third", 1.001, 0.999)
    several = ("--baseline", "results/card/before", "--baseline", "results/card/third")
    done = linkgauge("gate", *several, "--current", "results/card/after", "--json")
    baseline, _ = json.loads(done.stdout)["comparison"]["sides"]
    assert (done.returncode, len(baseline["runs"])) == (1, 7)
