"""`linkgauge as nvbandwidth` prints what versions 0.9 and 0.10 print, to the byte."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from compat_kit import MadeUp, as_rank, of_processes, rated, spoken
from fakes import device, machine
from linkgauge.model.stats.summary import summarize
from linkgauge.rooms.judge_files.readers import read_text
from nvbandwidth_reader import read_tests

FOLDER = Path(__file__).parents[1] / "data" / "nvbandwidth"
LOGS = [
    (file.stem, number, "nvbandwidth Version" + run)
    for file in sorted(FOLDER.glob("*.txt"))
    for number, run in enumerate(file.read_text().split("nvbandwidth Version")[1:])
]
LISTED = """
device_to_device_memcpy_read_tma device_to_device_memcpy_write_tma
device_to_device_bidirectional_memcpy_read_tma device_to_device_bidirectional_memcpy_write_tma
device_local_copy device_local_copy_sm device_local_read_sm device_local_write_sm
device_to_device_latency_tma device_local_copy_tma
""".split()
"""Tests 34 to 43 as nvbandwidth 0.10 lists them."""


def box(count, driver="595.71.05 CUDA 13.2"):
    """A machine with so many GPUs."""
    devices = tuple(
        replace(
            device(n, "cuda", pci=f"0000:{n + 1:02x}:00.0"),
            model="NVIDIA GeForce RTX 5060 Ti",
            driver=driver,
            memory_bytes=1 << 38,
            uuid=f"GPU-{n}",
        )
        for n in range(count)
    )
    made = machine()
    return replace(made, host=replace(made.host, hostname="a-host"), devices={"cuda": devices})


def box_of(run):
    """A machine whose GPUs, driver and CUDA are those of a log."""
    cuda = re.search(r"CUDA Runtime Version:.*?(\d+)0(\d)0\b", run)
    driver = re.search(r"^Driver Version: (\S+)", run, re.MULTILINE)[1]
    count = max(len(table.columns) for test in read_tests(run) for table in test.tables)
    return box(count, f"{driver} CUDA {int(cuda[1])}.{int(cuda[2])}")


def figures_of(run):
    tables = {test.name: [table.figures() for table in test.tables] for test in read_tests(run)}

    def figure(name, cell, number):
        """The log's figure; of a latency in ns, where rates are in GB/s."""
        found = tables[name][min(number, len(tables[name]) - 1)]
        return found[cell.row, cell.column] / (1e18 if "latency" in name else 1)

    return figure


def masked(text):
    """Without figures and versions; each digit of a figure keeps its place."""
    text = re.sub(r"^Built from.*", "Built", text, flags=re.MULTILINE)
    return re.sub(r"\d", "9", text)


@pytest.mark.parametrize(("name", "number", "run"), LOGS, ids=[f"{a}-{b}" for a, b, _ in LOGS])
def test_is_printed_to_the_byte(monkeypatch, name, number, run):
    tests = [test.name for test in read_tests(run)]
    MadeUp(rated(figures_of(run))).install(monkeypatch, box_of(run))
    version = name.partition("-")[0]
    done = spoken("nvbandwidth", f"--emulate {version} -t {' '.join(tests)}", on=None)
    ours, printed = done.stdout, run.rstrip("\n") + "\n"
    if "NOTE: " not in printed:  # the log ends within the run
        ours = ours[: ours.index("\nNOTE: ")]
    assert masked(ours).rstrip("\n") == masked(printed).rstrip("\n")
    for mine, theirs in zip(read_tests(ours), read_tests(printed), strict=True):
        assert mine.summed == pytest.approx(theirs.summed, abs=0.3)  # of figures cut to cents


def test_the_newest_is_the_default_and_has_44_tests():
    listed = re.findall(r"^(\d+), (\w+):$", spoken("nvbandwidth", "-l").stdout, re.MULTILINE)
    assert [int(number) for number, _ in listed] == list(range(44))
    assert [name for _, name in listed[34:]] == LISTED
    older = re.findall(
        r"^\d+, (\w+):$", spoken("nvbandwidth", "-l --emulate 0.9").stdout, re.MULTILINE
    )
    assert older == [name for _, name in listed[:34]] + ["device_local_copy"]


def test_the_version_alone():
    shown = spoken("nvbandwidth", "--version").stdout
    assert re.fullmatch(r"nvbandwidth Version: v0\.10\.0\nBuilt from Git version: .*\n\n", shown)
    assert spoken("nvbandwidth", "--emulate 0.7 -l").returncode == 1


@pytest.mark.parametrize(
    ("version", "printed"), [("0.8", []), ("0.9", ["0.13"]), ("0.10", ["0.08"])]
)
def test_the_coefficient_is_over_cells_and_later_over_samples(monkeypatch, version, printed):
    """A public output of 0.9 has 0.13 for these cells. Latencies have none."""
    places = [(row, column) for row in "012" for column in "012" if row != column]
    cells = dict(zip(places, [56.51, 41.56, 56.51, 44.82, 45.84, 41.59], strict=True))
    whole = rated(lambda name, cell, number: cells[cell.row, cell.column])

    def sampled(cell, settings, table):
        one = whole(cell, settings, table)
        samples = tuple(part * one.samples[0] for part in (0.9, 1.0, 1.1))
        return replace(one, samples=samples, summary=summarize(samples))

    MadeUp(sampled).install(monkeypatch, box(3))
    words = f"--emulate {version} -t device_to_device_memcpy_read_ce device_to_device_latency_sm"
    shown = spoken("nvbandwidth", words, on=None).stdout
    found = re.findall(
        r"^COEFFICIENT_OF_VARIATION device_to_device_memcpy_read_ce (\S+)$", shown, re.MULTILINE
    )
    assert found == printed
    assert shown.count("COEFFICIENT") == len(printed)


def test_a_pair_is_measured_alone(monkeypatch):
    """As its README shows: a row for the first GPU, a column for each."""
    MadeUp(rated()).install(monkeypatch, box(4))
    words = "-t device_to_device_memcpy_read_sm device_local_copy --pair"
    done = spoken("nvbandwidth", f"{words} GPU-0 GPU-3", on=None)
    pair, local = read_tests(done.stdout)
    assert pair.tables[0].columns == ["0", "1", "2", "3"]
    assert pair.tables[0].rows == {"0": ["N/A", "N/A", "N/A", "100.00"]}
    assert len(local.tables[0].figures()) == 4
    unknown = spoken("nvbandwidth", f"{words} GPU-0 GPU-9", on=None)
    assert unknown.returncode == 2
    assert "no device has the UUID GPU-9" in unknown.stderr
    assert spoken("nvbandwidth", f"{words} GPU-0", on=None).returncode == 1


def test_host_memory_in_huge_pages(monkeypatch):
    """Where a test has host memory; else the option changes nothing, as there."""
    seen = []
    made = MadeUp(
        lambda cell, settings, table: (seen.append(str(cell)), rated()(cell, settings, table))[1]
    )
    made.install(monkeypatch, box(2))
    for words in ("-H -t 0 4", "--emulate 0.9 --useHugePages -t 4"):
        assert spoken("nvbandwidth", words, on=None).returncode == 0
    assert [text for text in seen if "host" in text] == [
        f"host:0/huge -> cuda:{n} by ce" for n in range(2)
    ]
    assert spoken("nvbandwidth", "--emulate 0.8 -H -t 0", on=None).returncode == 1


def test_pairs_of_processes_are_sampled(monkeypatch):
    as_rank(monkeypatch, 0, 4)
    MadeUp(rated()).install(monkeypatch, of_processes(4))
    name = "multinode_device_to_device_memcpy_read_ce"
    (test,) = read_tests(spoken("nvbandwidth", f"-P 5 -t {name}", on=None).stdout)
    assert len(test.tables[0].figures()) == 5
    assert len(test.tables[0].rows) == 4
    (test,) = read_tests(spoken("nvbandwidth", f"-P -1 -t {name}", on=None).stdout)
    assert len(test.tables[0].figures()) == 12


def test_in_one_process_nothing_is_sampled(monkeypatch):
    MadeUp(rated()).install(monkeypatch, box(4))
    done = spoken("nvbandwidth", "-P 5 -t device_to_device_memcpy_read_ce", on=None)
    assert len(read_tests(done.stdout)[0].tables[0].figures()) == 12
    assert "--targetNumPairs has no effect in one process" in done.stderr


@pytest.mark.parametrize("form", ["text", "json", "perf"])
def test_the_form_of_the_output(monkeypatch, form):
    MadeUp(rated()).install(monkeypatch, box(2))
    shown = spoken("nvbandwidth", f"--format {form} -t 0", on=None).stdout
    assert {"text": "SUM host_to_device_memcpy_ce 200.00", "json": '"sum" : 200.0',
            "perf": "&&&& PERF host_to_device_memcpy_ce 200.00 +GB/s"}[form] in shown  # fmt: skip
    if form == "json":
        assert spoken("nvbandwidth", "-j -t 0", on=None).stdout == shown


def test_judge_reads_every_figure_and_line_of_a_public_output():
    text = (FOLDER / "0.10-8xH100.txt").read_text()
    (log,) = read_text("log", text)[0].logs
    figures = {(one.benchmark, one.row, one.column): one.figure for one in log.figures}
    assert len(figures) == 3 * 56 + 2 * 8
    assert figures["device_to_device_latency_sm", "7", "3"] == pytest.approx(821.94e-9)
