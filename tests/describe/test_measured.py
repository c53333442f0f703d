"""Machines described from runs: they give the run's figures, and others of the same kinds."""

import gzip
import re
from collections import Counter

import pytest
import yaml
from msgspec.structs import replace

from campaign import trial
from campaigns import trials
from command_kit import called
from described_kit import NEAR, SETS, UNKNOWN, drawn, exact
from linkgauge.backends.sim.description import parse_description
from linkgauge.engine.kept.runs import read_run
from linkgauge.model.errors import InputError
from linkgauge.model.ranks import Rank
from linkgauge.report.files import write_run
from linkgauge.rooms.describe.runs import described_by
from recorded_kit import DATA, recorded_run

LEFT_OUT = "described: a figure left out"
NAMED = "described: a fault is named"


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """The file that `describe` makes of a run on two H100s, and what it says."""
    folder = tmp_path_factory.mktemp("described")
    run, made = folder / "h100.json", folder / "mine.yml"
    run.write_bytes(gzip.decompress((DATA / "runs-2xH100" / "01.json.gz").read_bytes()))
    done = called("describe", run, "-o", made)
    assert (done.returncode, done.stderr) == (0, "")
    return made, done.stdout


def measured_again(machine, folder, *options):
    done = called("run", "--machine", machine, "--samples", "5", "--no-report", "--out", folder,
                  *options)  # fmt: skip
    (path,) = folder.rglob("run.json")
    return done, read_run(path)


def figures(run):
    return {
        (result.benchmark, cell.row, cell.column): cell.headline
        for result in run.results
        for cell in result.cells
        if cell.headline
    }


def test_the_described_machine_gives_the_run_s_figures(mine, tmp_path):
    made, said = mine
    assert "it reproduces 70 of 70 measured figures" in said
    names = sorted({one for one, *_ in figures(recorded_run("01"))})
    _, again = measured_again(made, tmp_path, *names, "--size", "512M")
    before, now = figures(recorded_run("01")), figures(again)
    near = [abs(now[key] / before[key] - 1) < 0.1 for key in before]
    assert before.keys() == now.keys()
    assert sum(near) >= 0.9 * len(near)


def test_what_the_run_did_not_measure_is_unknown_and_not_guessed(mine, tmp_path):
    done, run = measured_again(mine[0], tmp_path, "host_to_host_memcpy_read_cpu", "gpu_matmul")
    assert not figures(run)
    assert done.returncode == 4
    assert "not known of this machine: matmul-fp32 of device by sm" in done.stdout


def test_a_figure_of_a_kind_that_was_measured_is_given(mine, tmp_path):
    _, run = measured_again(mine[0], tmp_path, "device_local_copy", "all_to_all_write_ce")
    assert {name for name, *_ in figures(run)} == {"device_local_copy", "all_to_all_write_ce"}


def test_a_change_and_a_fault_work_on_it(mine, tmp_path):
    name, key = "host_to_device_memcpy_ce", ("host_to_device_memcpy_ce", "0", "0")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    _, slower = measured_again(mine[0], tmp_path / "a", name, "--change", "pcie=4x16")
    assert figures(slower)[key] == pytest.approx(figures(recorded_run("01"))[key] / 2, rel=0.1)
    _, struck = measured_again(mine[0], tmp_path / "b", name, "--fault", "slow sim:1 rate=0.5")
    both = figures(struck)
    assert both[name, "0", "1"] == pytest.approx(both[key] / 2, rel=0.1)


def test_noise_is_that_of_the_run(mine):
    noises = parse_description(mine[0].read_text()).noises
    assert noises["between devices"].repetitions < 0.002 < noises["host and device"].repetitions


def test_copies_at_once_share_what_they_share(mine):
    (shared,) = [one for name, one in yaml.safe_load(mine[0].read_text())["link_kinds"].items()
                 if name.startswith("shared")]  # fmt: skip
    read = float(shared["both_each"]["read"].split()[0])
    assert read == pytest.approx(58e9, rel=0.05)  # of two, 29 GB/s each


def test_a_slow_link_stays_slow(tmp_path):
    struck = measured_again("dgx-h200-8", tmp_path, "host_to_device_memcpy_ce", "--fault",
                            "slow sim:3 rate=0.5")[1]  # fmt: skip
    real = kept(as_real(struck), tmp_path)
    kinds = yaml.safe_load(described_by(real).text)["link_kinds"]
    reads = sorted(one["efficiency"]["read"] for name, one in kinds.items() if "pcie" in name)
    assert len(reads) == 2
    assert reads[0] == pytest.approx(reads[1] / 2, rel=0.05)


def as_real(struck):
    """The run of a simulated machine as if it were real."""
    return replace(struck, settings=replace(struck.settings, simulation=None))


def kept(run, folder):
    """A run's file, for runs that were changed after they were kept."""
    path = folder / "changed.json"
    path.write_bytes(write_run(folder, run).read_bytes())
    return path


def test_a_run_of_a_simulation_is_refused(tmp_path):
    called("run", "device_local_copy", "--machine", "ppu-2x2", "--samples", "3", "--no-report",
           "--out", tmp_path)  # fmt: skip
    done = called("describe", tmp_path)
    assert done.returncode == 2
    assert re.search("the run is of a simulated machine", done.stderr)


def test_a_run_of_several_processes_is_refused(tmp_path):
    run = recorded_run("01")
    ranks = (Rank(0, "a", 0, "cuda:0"), Rank(1, "b", 0, "cuda:0"))
    with pytest.raises(InputError, match="of several processes"):
        described_by(kept(replace(run, machine=replace(run.machine, ranks=ranks)), tmp_path))


def test_figures_left_out_come_as_measured_and_others_are_unknown(holds):
    found = Counter()
    for number in range(trials(LEFT_OUT)):
        for name in SETS:
            found += drawn(name, number)
    for place in (*NEAR, UNKNOWN):
        name = LEFT_OUT if place in NEAR else f"{LEFT_OUT}, unknown"
        holds(name, found[place, True], found[place, True] + found[place, False], place)


@pytest.mark.parametrize("kind", ["slow", "drift", "jitter", "stall", "flip"])
def test_a_fault_is_named_as_in_shipped_machines(kind, mine, holds):
    machines = {"described": str(mine[0]), "shipped": "dgx-h200-8"}
    for case, machine in machines.items():
        made = [trial(kind, ("link", "device")[n % 2], machine, n) for n in range(trials(NAMED))]
        known = [one for one in made if one is not None]
        holds(NAMED, sum(one.right for one in known), len(known), f"{kind}, {case}")


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(9, 10, 0.555, 0.9975), (0, 20, 0.0, 0.168), (5, 5, 0.478, 1)]
)
def test_the_interval_is_exact(hits, of, low, high):
    assert exact(hits, of) == pytest.approx((low, high), abs=1e-3)
