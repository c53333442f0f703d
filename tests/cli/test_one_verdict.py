"""Every command that shows a run says the same of it, in words and by its exit code."""

import shlex

import pytest

from command_kit import called

DGX = ("--machine", "dgx-h200-8", "--device", "0", "--device", "1", "--profile", "quick")
FROM_HOST = "host_to_device_memcpy_ce"
SLOW = "slow sim:1 rate=25%"
COPY = "host:0 -> sim:1 by ce"


def linkgauge(*arguments, folder):
    return called(*arguments, cwd=folder, COLUMNS="1000")


def measured(folder, *arguments):
    """A run's outcome, its shown lines without that of its folder, and where it is kept."""
    done = linkgauge(*arguments, folder=folder)
    (run,) = folder.rglob("run.json")
    shown = [line for line in done.stdout.splitlines() if not line.startswith("results: ")]
    return done, shown, run.relative_to(folder)


def verdict(lines):
    """The number of cells, and the last lines without that of the next command, and of where a run
    is kept."""
    begin = max(at for at, line in enumerate(lines) if line.startswith("verdict: "))
    counts = [line for line in lines[:begin] if " measured: " in line][-1:]
    return counts + [line for line in lines[begin:] if not line.startswith(("next: ", "results: "))]


ON_DGX = " ".join(DGX)
VM = "--machine vm-degraded"


@pytest.mark.parametrize(
    ("words", "code", "first", "last"),
    [
        (f"run {FROM_HOST} {ON_DGX}", 0, "ok: nothing wrong was found",
         "2 cells measured: 2 ok, 0 low SIMULATED"),
        (f"run {FROM_HOST} {ON_DGX} --fault '{SLOW}'", 1, "fail slow  sim:1: ",
         "2 cells measured: 1 ok, 1 low; 1 fail finding, 1 warn finding SIMULATED"),
        (f"run {FROM_HOST} {VM} --profile quick", 1, "fail target-speed  sim:0",
         " 1 degraded by slow links, 0 low; 2 fail findings SIMULATED"),
        (f"copy '{COPY}' --machine dgx-h200-8 --fault '{SLOW}' --out kept", 1, "",
         "1 cell measured: 0 ok, 1 low; 1 fail finding"),
        (f"traffic {VM} --threads 1 --out kept", 1, "fail target-speed  sim:0",
         " not judged (nothing to compare with); 2 fail findings SIMULATED"),
        (f"run --prefix host_to_device {ON_DGX} --samples 20 --fault 'stall sim:1 for=0.05'", 0,
         "warn stall  ", " 0 low; "),
        (f"run --prefix host_to_device {ON_DGX} --fault 'jitter sim:1 sigma=9%'", 0,
         "warn scatter  ", " 0 low; "),
    ],
)  # fmt: skip
def test_all_agree(tmp_path, words, code, first, last):
    done, shown, run = measured(tmp_path, *shlex.split(words))
    assert done.returncode == code
    assert "pass" not in done.stdout
    said = verdict(shown)
    assert last in said[0]
    assert said[1].startswith(f"verdict:   {first}")
    assert len(shown[shown.index(said[1]) :]) <= 4, "with that of its folder at most five lines"
    kept = linkgauge("show", run.parent, folder=tmp_path)
    assert (kept.returncode, kept.stdout.splitlines()) == (code, [*shown, f"results: {run}"])
    resumed = linkgauge("run", "--resume", run.parent, folder=tmp_path)
    assert (resumed.returncode, resumed.stdout.splitlines()[:-1]) == (code, shown)
    judged = linkgauge("doctor", run.parent, folder=tmp_path)
    assert (judged.returncode, verdict(judged.stdout.splitlines())) == (code, said)


def test_a_failure_of_what_was_not_measured_is_told_by_the_doctor_alone(tmp_path):
    on_host = ("run", "--prefix", "host_to_host", "--machine", "vm-degraded", "--profile", "quick")
    done, shown, run = measured(tmp_path, *on_host)
    assert (done.returncode, "doctor" in done.stdout) == (0, False)
    judged = linkgauge("doctor", run, folder=tmp_path)
    assert judged.returncode == 0
    uncounted = "not counted, because the run did not measure it: target-speed sim:0 (0000:01:00.0)"
    assert uncounted in judged.stdout.splitlines()
    assert verdict(judged.stdout.splitlines()) == verdict(shown)
    assert linkgauge("doctor", "--machine", "vm-degraded", folder=tmp_path).returncode == 1
