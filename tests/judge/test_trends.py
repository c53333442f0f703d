"""Where a benchmark's figures changed, and what changed in the machine with them."""

from msgspec.structs import replace

from history_kit import run_at
from linkgauge.judge.machine_state import state_of
from linkgauge.judge.trends import trend_of
from linkgauge.model.history import CellOf, History, PastRun, Point, Series
from linkgauge.model.inventory import Accelerator, FabricLink, HostDetails, Inventory

NOISE = (0.0, 0.004, -0.003, 0.006, -0.005, 0.002, -0.001, 0.005, -0.004, 0.001)
OLD, NEW = {"driver": "570", "kernel": "6.1"}, {"driver": "575", "kernel": "6.1"}


def past(number, state, label="nightly"):
    moment = f"2026-01-{number + 1:02}T12:00:00.000Z"
    return PastRun(
        number=number, id=f"r{number}", label=label, host="box", accelerators="H200",
        started=moment, finished=moment, simulated=False, profiled=False, profile="standard",
        status="pass", cells=1, passed=1, low=0, path=None, setup="0", state=state, machine=1,
    )  # fmt: skip


def history(runs, *columns, states=None, better="higher"):
    """Cells of which each has these figures, one for each run."""
    series = tuple(
        Series(
            CellOf("copy", "cuda", 64, "0", str(at), "host:0 -> cuda:0 by ce"), "B/s", better,
            tuple(Point(run.number, figure, None, None)
                  for run, figure in zip(runs, figures, strict=True)),
        )
        for at, figures in enumerate(columns)
    )  # fmt: skip
    return History("box", "H200", False, {}, tuple(runs), states or {1: OLD, 2: NEW}, series)


def noisy(levels, shift=0):
    return [level * (1 + NOISE[(at + shift) % 10]) for at, level in enumerate(levels)]


def test_a_change_names_what_changed_in_the_machine():
    runs = [past(n, 1 if n < 10 else 2) for n in range(20)]
    found = trend_of(history(runs, noisy([50.0] * 10 + [47.5] * 10)))
    (change,) = found.changes
    assert (change.until, change.since, change.direction) == (9, 10, "worse")
    assert abs(change.ratio - 0.95) < 0.005
    assert [(fact.name, fact.values) for fact in change.facts] == [("driver", ("570", "575"))]


def test_cells_that_change_together_are_one_change_and_others_are_not_of_it():
    runs = [past(n, 1 if n < 10 else 2) for n in range(20)]
    slower = [noisy([50.0] * 10 + [47.5] * 10, shift) for shift in range(4)]
    found = trend_of(history(runs, *slower, noisy([50.0] * 20), noisy([47.5] * 10 + [50.0] * 10)))
    worse, better = found.changes
    assert [cell.cell.column for cell in worse.cells] == ["0", "1", "2", "3"]
    assert [(cell.cell.column, cell.direction) for cell in better.cells] == [("5", "better")]


def test_less_time_is_better():
    runs = [past(n, 1) for n in range(20)]
    found = trend_of(history(runs, noisy([50.0] * 10 + [40.0] * 10), better="lower"))
    assert [change.direction for change in found.changes] == ["better"]


def test_small_changes_are_left_out_unless_they_are_asked_for():
    runs = [past(n, 1) for n in range(20)]
    figures = [50.0 * (1 + noise / 20) for noise in NOISE] * 2
    figures[10:] = [figure * 0.996 for figure in figures[10:]]
    assert trend_of(history(runs, figures)).changes == ()
    assert len(trend_of(history(runs, figures), least=0.001).changes) == 1


def test_where_only_the_label_changed_that_is_what_is_named():
    runs = [past(n, 1, "before" if n < 10 else "after") for n in range(20)]
    (change,) = trend_of(history(runs, noisy([50.0] * 10 + [47.5] * 10))).changes
    assert [(fact.name, fact.values) for fact in change.facts] == [("label", ("before", "after"))]


def test_where_nothing_known_changed_nothing_is_named():
    runs = [past(n, 1) for n in range(20)]
    (change,) = trend_of(history(runs, noisy([50.0] * 10 + [47.5] * 10))).changes
    assert change.facts == ()


def test_of_the_kernels_options_those_are_named_that_changed():
    states = {
        1: {"kernel options": "root=/dev/sda ro iommu=pt"},
        2: {"kernel options": "root=/dev/sda ro iommu=on quiet"},
    }
    runs = [past(n, 1 if n < 10 else 2) for n in range(20)]
    figures = noisy([50.0] * 10 + [47.5] * 10)
    (change,) = trend_of(history(runs, figures, states=states)).changes
    assert change.facts[0].values == ("iommu=pt", "iommu=on quiet")


def test_few_runs_show_no_change_and_say_so():
    runs = [past(n, 1) for n in range(5)]
    found = trend_of(history(runs, [50.0, 50.0, 40.0, 40.0, 40.0]))
    assert (found.changes, found.few) == ((), 1)


def test_the_state_of_a_machine_names_driver_firmware_kernel_bios_microcode_and_links():
    run = run_at(0)
    links = tuple(FabricLink(n, "NVLink", n != 17) for n in range(18))
    inventory = Inventory(
        host=HostDetails(firmware="1.2 of 06/01/2026", microcode="0x2b"),
        accelerators=tuple(
            Accelerator(memory=f"cuda:{n}", model="NVIDIA H200", driver="575.57",
                        firmware="96.00" if n else "95.00", links=links)
            for n in range(3)
        ),
    )  # fmt: skip
    machine = replace(run.machine, inventory=inventory)
    state = state_of(replace(run, machine=machine))
    assert (state["driver"], state["kernel"]) == ("575.57", "6.1")
    assert (state["BIOS"], state["microcode"]) == ("1.2 of 06/01/2026", "0x2b")
    assert state["firmware"] == "1 × 95.00, 2 × 96.00"
    assert state["fabric links"] == "3 × 17 of 18 NVLink"
    assert "CPU steal" not in state
    assert "governor" not in state  # unknown here
