"""What slowed nothing is a note: facts about the setup, limits of clocks, and processes that have a
device open. What fails, throttles for heat or was seen at work is told."""

import re

import pytest
from msgspec.structs import replace

from command_kit import called
from doctor_kit import GOOD, card, found, gpu, inventory, machine, measured, reading, root, the
from linkgauge.engine.kept.runs import read_run
from linkgauge.judge.compare.likeness import figures_of
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.neighbours import at_work
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.peers import behind
from linkgauge.judge.verdict import judge
from linkgauge.model.counters import Load
from linkgauge.model.documents.result import Run
from linkgauge.model.hardware.inventory import Accelerator, Inventory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.report.blocks import text_of
from linkgauge.report.sections.opening import sentence_of
from linkgauge.report.words.worst import worst_of
from linkgauge.rooms.check.bounded import Bounded
from linkgauge.rooms.check.health import health_of
from recorded_kit import HEALTHY, recorded_of_four, recorded_run
from sim_kit import MACHINE


def first_line(run, outcome):
    wrong = worst_of(run, outcome)
    return None if wrong is None else " ".join(text_of(wrong.what).split())


# Real runs of real machines.


@pytest.mark.parametrize("recorded", [*HEALTHY, "02 of four"])
def test_a_healthy_run_ends_without_a_warning(recorded):
    four = recorded.endswith("of four")
    run = judge(recorded_of_four("02") if four else recorded_run(recorded))
    outcome = outcome_of(run)
    assert (outcome.code, outcome.findings) == (0, ())
    if four:
        notes = {one.check: one.found for one in outcome.found if one.severity == "note"}
        assert "256.0 MiB" in notes["bar1"]
        assert notes["capped-clock"].startswith("clocks are throttled: power cap (at ")


@pytest.mark.parametrize(
    ("run", "pid"), [(recorded_of_four("busy-card-1"), 34476), (recorded_run("busy-card-1"), 3788)]
)
def test_a_process_that_was_seen_at_work_comes_first(run, pid):
    run = judge(run)
    outcome = outcome_of(run)
    assert any(cell.verdict == "low" for result in run.results for cell in result.cells)
    assert (outcome.code, outcome.low) == (0, False)
    # It has card 0 open, too, and does nothing there.
    assert first_line(run, outcome) == f"warn processes cuda:1: other processes use it (PID {pid})"
    slow = next(one for one in outcome.findings if one.check == "slow")
    assert (slow.severity, slow.explained_by[0]) == ("warn", "processes of cuda:1")
    assert figures_of(run).busy == {"cuda:1": (pid,)}


# Processes that have a device of a simulated machine open.


LINK, COPIES = "sim:3-host:0", ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")


@pytest.fixture(scope="module")
def slow_link(tmp_path_factory):
    """A run of which one PCIe link has 40 % of its rate."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "m.yml").write_text(MACHINE)
    done = called(
        "run", *COPIES, "--machine", folder / "m.yml", "--size", "64M", "--no-report",
        "--fault", f"slow {LINK} rate=40%", "--out", folder, LINKGAUGE_HISTORY="none",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (path,) = folder.rglob("run.json")
    return judge(read_run(path))


def beside(run, *, after=None, **fields):
    """The run, with a process that has the device of its fault open, before it and `after` it."""
    return replace(
        run,
        machine=replace(run.machine, inventory=_used(run.machine.inventory, fields)),
        after=run.after if after is None else _used(run.after, after),
    )


def _used(inventory, fields):
    cards = tuple(
        replace(one, processes=(4711,), **fields) if one.memory == "sim:3" else one
        for one in inventory.accelerators
    )
    return replace(inventory, accelerators=cards)


IDLE = [
    {"process_use": (0.01,), "utilization": 1.0},  # what used it was not this process
    {"utilization": 0.0},
    {"utilization": None},
    # What the run did itself shows in the device's use after it.
    {"utilization": 0.0, "after": {"utilization": 1.0}},
]
WORKING = [
    {"process_use": (0.4,), "utilization": 0.0},
    {"utilization": 0.9},
    {"utilization": 0.0, "after": {"process_use": (0.3,)}},
]


@pytest.mark.parametrize("state", IDLE)
def test_a_fault_beside_an_idle_process_is_still_a_fault(slow_link, state):
    run = beside(slow_link, **state)
    outcome = outcome_of(run)
    assert outcome.code == 1
    assert first_line(run, outcome).startswith("fail slow PCIe link of sim:3: ")
    idle = the("processes", outcome.found)
    assert (idle.severity, idle in outcome.findings) == ("note", False)
    assert not any("processes" in name for one in outcome.found for name in one.explained_by)


@pytest.mark.parametrize("state", WORKING)
def test_a_process_at_work_explains_what_is_slow_of_its_device(slow_link, state):
    run = beside(slow_link, **state)
    outcome = outcome_of(run)
    assert (outcome.code, first_line(run, outcome)) == (
        0, "warn processes sim:3: other processes use it (PID 4711)",
    )  # fmt: skip
    assert health(run).reason == "Busy"


def test_a_process_at_work_on_another_device_explains_nothing(slow_link):
    cards = [replace(one, processes=(1,), utilization=1.0) if one.memory == "sim:0" else one
             for one in slow_link.machine.inventory.accelerators]  # fmt: skip
    known = replace(slow_link.machine.inventory, accelerators=tuple(cards))
    outcome = outcome_of(replace(slow_link, machine=replace(slow_link.machine, inventory=known)))
    assert (outcome.code, the("slow", outcome.found).severity) == (1, "fail")


def test_a_cap_under_products_does_not_explain_slow_copies(slow_link):
    capped = measured(reading("sim:3", throttled=("power cap",)), operation="matmul-fp16")
    capped = replace(capped, benchmark="gpu_matmul")
    run = replace(slow_link, results=(*slow_link.results, capped))
    outcome = outcome_of(run)
    assert the("capped-clock", outcome.found).severity == "note"
    assert not any("capped" in name for one in outcome.found for name in one.explained_by)


def test_cpu_time_counts_where_the_library_tells_nothing():
    one = Accelerator(memory="cuda:0", model="X", processes=(7, 8))
    result = measured(reading())
    busy = tuple(replace(cell, load=Load(1.0, others=0.9, pid=8)) for cell in result.cells)
    known = Inventory(accelerators=(one,))
    assert at_work(known, None, [result]) == {}
    assert at_work(known, known, [replace(result, cells=busy)]) == {"cuda:0": (8,)}
    idle = Inventory(accelerators=(replace(one, utilization=0.0),))
    assert at_work(idle, None, [replace(result, cells=busy)]) == {}


def health(run):
    return health_of(Bounded(1.0, run))


# Clocks.


def clocks(*reasons, figures=(50e9, 50e9, 50e9, 50e9), operation="copy"):
    """The findings of four cards, the first of which is held down for these reasons."""
    cards = tuple(card(memory=f"cuda:{n}", pci=None) for n in range(len(figures)))
    result = measured(
        *(reading(f"cuda:{n}", throttled=() if n else reasons) for n in range(len(figures))),
        operation=operation,
    )
    cells = tuple(
        replace(cell, column=str(n), samples=(figure,) * 6, summary=summarize((figure,) * 6))
        for n, (cell, figure) in enumerate(zip(result.cells, figures, strict=True))
    )
    return found(inventory(cards=cards), None, replace(result, cells=cells, sweep=True))


SLOWER = (46e9, 50e9, 50e9, 50e9)


@pytest.mark.parametrize(
    ("reason", "operation", "figures", "told"),
    [
        ("power cap", "matmul-fp16", (50e9,) * 4, ("capped-clock", "note")),
        ("power cap", "copy", (49e9, 50e9, 50e9, 50e9), ("capped-clock", "note")),
        ("power cap", "matmul-fp16", SLOWER, ("capped-clock", "warn")),
        ("power cap", "copy", SLOWER, ("capped-clock", "warn")),
        ("hardware thermal slowdown", "copy", (50e9,) * 4, ("clocks", "warn")),
        ("software thermal slowdown", "copy", SLOWER, ("clocks", "warn")),
        ("hardware slowdown", "copy", SLOWER, ("clocks", "warn")),
        ("power brake", "copy", (50e9,) * 4, ("clocks", "warn")),
        ("hardware slowdown", "matmul-fp16", (50e9,) * 4, ("clocks", "warn")),
    ],
)
def test_a_limit_of_clocks_is_a_note_and_heat_is_told(reason, operation, figures, told):
    findings = clocks(reason, operation=operation, figures=figures)
    held = next(one for one in findings if "clock" in one.check)
    assert (held.check, held.severity) == told
    assert held.subject == "cuda:0"


def test_a_card_that_is_behind_is_told_of_by_its_whole_interval():
    result = measured(*(reading(f"cuda:{n}") for n in range(4)))
    cells = [replace(cell, column=str(n)) for n, cell in enumerate(result.cells)]
    steady, varying = (44e9,) * 6, (40e9, 60e9) * 3
    for samples, number in ((steady, 1), (varying, 0)):
        cells[0] = replace(cells[0], samples=samples, summary=summarize(samples))
        evidence = evidence_of(judged(replace(result, cells=tuple(cells), sweep=True)))
        assert len(behind(evidence)) == number


def judged(result):
    known = machine(inventory(cards=tuple(card(memory=f"cuda:{n}", pci=None) for n in range(4))))
    return Run(id="1", label="l", command=(), started="s", finished="f", machine=known,
               settings=Settings(sizes=()), results=(result,))  # fmt: skip


# The machine's setup.

SETUPS = {
    "governor": inventory(host=replace(GOOD, governor="powersave")),
    "locked-clock": inventory(cards=(card(locked_clock=1e9, max_clock=2e9),)),
    "relaxed-ordering": inventory(pci=(root(), gpu(relaxed_ordering=False))),
    "ecc-off": inventory(cards=(card(model="NVIDIA H200", ecc=False),)),
}


@pytest.mark.parametrize("check", SETUPS)
def test_the_setup_is_advice_and_in_a_run_a_note_unless_a_figure_is_low(check):
    known = SETUPS[check]
    assert the(check, found(known)).severity == "warn"
    for more, severity in (
        ({}, "note"), ({"verdict": "low"}, "warn"), ({"status": "error", "reason": "r"}, "warn"),
    ):  # fmt: skip
        result = measured(engine="sm", **more)
        assert the(check, found(known, None, result)).severity == severity


def test_the_setup_of_a_part_matters_only_to_what_uses_the_part():
    cards = (card(), card(memory="cuda:1", pci=None, locked_clock=1e9, max_clock=2e9))
    low = measured(reading("cuda:0"), verdict="low")
    assert the("locked-clock", found(inventory(cards=cards), None, low)).severity == "note"


def test_a_small_window_matters_only_where_devices_reach_each_other_through_it():
    other = "0000:03:00.0"
    cards = (card(model="NVIDIA H200", bar1_bytes=256 << 20), card(memory="cuda:1", pci=other))
    known = inventory(pci=(root(), gpu(), gpu(address=other)), cards=cards)
    low = measured(reading("cuda:0"), verdict="low")
    assert the("bar1", found(known)).severity == "warn"
    assert the("bar1", found(known, None, low)).severity == "note"
    between = parse_transfers("cuda:1 -> cuda:0 by cuda:1.ce")
    cells = tuple(replace(cell, transfers=between) for cell in low.cells)
    assert the("bar1", found(known, None, replace(low, cells=cells))).severity == "warn"


# A card at three quarters of its equals.


def test_a_slow_card_is_in_the_line_of_check_and_in_the_first_sentence(tmp_path):
    slow = ("--machine", "dgx-h200-8", "--fault", "slow sim:3 rate=85%")
    done = called("check", *slow)
    assert "; warn clocks sim:3: clocks are throttled: hardware slowdown" in done.stdout
    done = called("run", "--prefix", "device_to_device_memcpy_read", "--prefix", "host_to_device_",
                  *slow, "--profile", "quick", "--no-report", "--out", tmp_path)  # fmt: skip
    (path,) = tmp_path.rglob("run.json")
    run = judge(read_run(path))
    assert sentence_of(run, outcome_of(run)).endswith(", in part less than their peers")
    assert re.search(
        r"^verdict: +low host_to_device.* sim:3 +reaches +85%", done.stdout, re.MULTILINE
    )
    assert re.search(r"^why: +warn slow +sim:3: in 46 cells", done.stdout, re.MULTILINE)
    # Clocks do not slow copies by copy engines, so they are no reason of it.
    assert re.search(r"^warn clocks +sim:3: .*hardware slowdown", done.stdout, re.MULTILINE)
