"""`run --sample-pairs N`: a stated sample of the pairs, from the command line to the files."""

import json

import pytest

from command_kit import called
from linkgauge.engine.runs import read_run
from linkgauge.model.settings import PairSample

PAIRWISE = ("device_to_device_memcpy_read_ce", "device_to_device_bidirectional_memcpy_write_sm")
OPTIONS = ("--machine", "dgx-h200-8", "--size", "64M", "--samples", "3")


def measured(tmp_path, *options):
    """What was printed, and the run that was kept."""
    done = called("run", *PAIRWISE, *OPTIONS, *options, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.rglob("run.json")
    return done.stdout, read_run(path)


def places(run):
    return [[cell.place for cell in result.cells] for result in run.results]


def test_the_output_and_the_files_say_what_was_drawn(tmp_path):
    text, run = measured(tmp_path, "--sample-pairs", "12", "--matrix")
    for name in PAIRWISE:
        assert f"{name}  sim  64 MiB  12 of 56 pairs, drawn with seed 1  " in text
    assert f"SUM {PAIRWISE[0]} " in text
    assert text.count(" of 12 of 56 cells\n") == 4
    assert "\n24 measured: " in text
    assert run.settings.sample_pairs == PairSample(12, 1)
    first, second = places(run)
    assert first == second
    assert len(first) == 12


def test_a_rerun_measures_the_same_pairs_and_another_seed_others(tmp_path):
    first, again, other = (
        places(measured(tmp_path / name, "--sample-pairs", "12", *more)[1])
        for name, more in (("first", ()), ("again", ("--seed", "1")), ("other", ("--seed", "2")))
    )
    assert first == again
    assert set(first[0]) != set(other[0])


def test_more_than_there_are_measures_all_and_draws_none(tmp_path):
    text, run = measured(tmp_path, "--sample-pairs", "57")
    assert "drawn" not in text
    assert [len(one) for one in places(run)] == [56, 56]
    assert {result.drawn for result in run.results} == {None}


def test_disjoint_pairs_of_a_sample_run_at_once(tmp_path):
    text, run = measured(tmp_path, "--sample-pairs", "20", "--parallel-pairs")
    assert "20 of 56 pairs, drawn with seed 1" in text
    assert "measured at the same time as" in text
    assert len(set(places(run)[0])) == 20


def test_a_dry_run_shows_the_drawn_pairs_alone(tmp_path):
    asked = ("run", *PAIRWISE[:1], *OPTIONS, "--sample-pairs", "5", "--dry-run")
    text = called(*asked).stdout
    assert f"{PAIRWISE[0]}  sim  64 MiB  5 of 56 pairs, drawn with seed 1\n" in text
    assert "\n5 cells; " in text
    (sheet,) = json.loads(called(*asked, "--json").stdout)["plan"]
    assert sheet["drawn"] == {"pairs": 5, "all": 56, "seed": 1}
    assert len(sheet["cells"]) == 5


def test_a_run_goes_on_with_its_own_sample_alone(tmp_path):
    before = places(measured(tmp_path, "--sample-pairs", "6", "--seed", "3")[1])
    (path,) = tmp_path.rglob("journal.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]))
    for given, said in ((("--sample-pairs", "7"), "--sample-pairs"), (("--seed", "1"), "--seed")):
        refused = called("run", "--resume", path.parent, *given)
        assert refused.returncode == 2
        (line,) = refused.stderr.splitlines()
        assert said in line
    done = called("run", "--resume", path.parent, "--sample-pairs", "6", "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert "6 of 56 pairs, drawn with seed 3" in done.stdout
    assert places(read_run(path.parent / "run.json")) == before


def test_the_seed_that_nobody_gave_is_part_of_the_run(tmp_path):
    measured(tmp_path, "--sample-pairs", "6")
    (path,) = tmp_path.rglob("journal.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    assert called("run", "--resume", path.parent, "--seed", "2").returncode == 2
    assert called("run", "--resume", path.parent, "--seed", "1").returncode == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--sample-pairs", "0"), "--sample-pairs 0 is too few: give 1 or more"),
        (("--sample-pairs", "-4"), "--sample-pairs -4 is too few: give 1 or more"),
        (("--sample-pairs", "9999999999"), "--sample-pairs 9999999999 is too many"),
        (("--sample-pairs", "some"), "'some' is not a valid int"),
        (("--seed", "4"), "--seed needs --sample-pairs"),
        (("--sample-pairs", "4", "--seed", "-1"), "--seed -1: give 0 to 4294967295"),
        (("--sample-pairs", "4", "--seed", "4294967296"), "give 0 to 4294967295"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(given, said):
    done = called("run", *PAIRWISE, *OPTIONS, *given)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert said in line


def test_benchmarks_without_pairs_are_refused(tmp_path):
    done = called("run", "device_local_copy", *OPTIONS, "--sample-pairs", "3", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "linkgauge: --sample-pairs has no effect: no benchmark measures pairs of devices\n",
    )
