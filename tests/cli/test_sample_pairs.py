"""`run --sample-pairs N`: a stated sample of the pairs, from the command line to the files."""

from command_kit import called
from linkgauge.engine.kept.runs import read_run

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
    assert "6 of 56 pairs (sampled, seed 3)" in done.stdout
    assert places(read_run(path.parent / "run.json")) == before
