"""What pages, mails, editors and collectors of logs put around a text does not change its reading.
Machines of one text have verdicts of their own, as have runs of one test that differ."""

import json
from itertools import count

import pytest

from command_kit import called
from linkgauge.rooms.judge_files.readers import read_text

COPIES = """\
Device 0: NVIDIA H100 80GB HBM3
Device 1: NVIDIA H100 80GB HBM3

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     {0:.2f}     {1:.2f}

SUM host_to_device_memcpy_ce {2:.2f}
"""
NVBANDWIDTH = COPIES.format(55.2, 54.1, 109.3)
NCCL = """\
# Using devices
#  Rank  0 Group  0 Pid   4000 on      node1 device  0 [0x1b] NVIDIA H20
#  Rank  1 Group  0 Pid   4001 on      node1 device  1 [0x2b] NVIDIA H20
#  Rank  2 Group  0 Pid   4001 on      node1 device  2 [0x3b] NVIDIA H20
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
   268435456      67108864     float     sum      -1   2055.4  130.60  174.13      0   2057.6  130.46  173.95      0
   536870912     134217728     float     sum      -1   3218.6  166.80  222.40      0   3204.9  167.52  223.36      0
"""  # noqa: E501
TOPOLOGY = """\
        GPU0    GPU1    CPU Affinity    NUMA Affinity
GPU0     X      NV4     0-63            0
GPU1    NV4      X      0-63            0
"""
STREAM = """\
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           90014.1     0.031581     0.014220     0.050416
Scale:          91318.6     0.028011     0.014017     0.045802
Triad:          98350.8     0.028845     0.019522     0.037835
"""
TEXTS = NVBANDWIDTH, NCCL, TOPOLOGY, STREAM


def each(form):
    """A decoration of every line, whose number is n."""
    return lambda text: "\n".join(
        form.format(line, n=n, m=n % 60)
        for n, line in zip(count(1), text.split("\n"), strict=False)
    )


def wrapped(text):
    lines = text.split("\n")
    return "\n".join(line[at : at + 80] for line in lines for at in range(0, len(line) or 1, 80))


DECORATIONS = {
    "cat -n": each("{n:6}\t{0}"),
    "grep -n": each("{n}:{0}"),
    "an editor": each("{n:4} | {0}"),
    "a quotation": each("> {0}"),
    "a tight quotation": each(">{0}"),
    "a quotation of a quotation": each(">> {0}"),
    "indented": each("    {0}"),
    "a diff": each("+{0}"),
    "comments": each("# {0}"),
    "comments of C": each("// {0}"),
    "journald": each("Nov 30 02:00:{m:02} gpu-node01 nccl[12345]: {0}"),
    "rsyslog": each("2026-11-30T02:00:{m:02}.123456+00:00 gpu01 run[77]: {0}"),
    "containerd": each("2026-11-30T02:00:{m:02}.123456789Z stdout F {0}"),
    "GitHub": each("bench\tRun nccl\t2026-11-30T02:00:{m:02}.1234567Z {0}"),
    "stern": each("nccl-test-launcher-abcde nccl {0}"),
    "compose": each("nccl-1  | {0}"),
    "a clock": each("02:00:{m:02} {0}"),
    "a clock in brackets": each("[02:00:{m:02}.123] {0}"),
    "ts": each("Nov 30 02:00:{m:02} {0}"),
    "dmesg": each("[{n:5}.123456] {0}"),
    "logging": each("2026-11-30 02:00:{m:02},123 - INFO - {0}"),
    "its usual form": each("INFO:root:{0}"),
    "Ray": each("(RayWorker pid=1234, ip=10.0.0.1) {0}"),
    "torchrun": each("[rank0]: {0}"),
    "prterun": each("[prterun-node1-1234@1,0]<stdout>: {0}"),
    "a host and its time": each("node01: 2026-11-30T02:00:{m:02}Z {0}"),
    "colours": each("\x1b[0;32m{0}\x1b[0m"),
    "colours as a page shows them": each("^[[0;32m{0}^[[0m"),
    "colours without their ESC": each("[0;32m{0}[0m"),
    "docker": lambda text: "\n".join(json.dumps({"log": f"{one}\n"}) for one in text.split("\n")),
    "ansible": lambda text: json.dumps({"stdout_lines": text.split("\n")}, indent=4),
    "a string": lambda text: json.dumps({"output": text}),
    "fences": lambda text: f"What I get:\n```bash\n{text}\n```\nIs that right?",
    "hard blanks": lambda text: text.replace(" ", "\xa0"),
    "entities": lambda text: text.replace("#", "&#35;").replace(">", "&gt;"),
    "empty lines": lambda text: text.replace("\n", "\n\n"),
    "80 columns": wrapped,
    "one block of a page": lambda text: "We ran it.\n\n" * 8 + each("[OUT] {0}")(text.strip()),
}  # fmt: skip


def reading(text):
    read = read_text("log", text)
    return [
        ([log.figures for log in one.logs], [facts.joins for facts in one.facts]) for one in read
    ]


@pytest.mark.parametrize("text", TEXTS, ids=["nvbandwidth", "nccl-tests", "topo -m", "STREAM"])
@pytest.mark.parametrize("decorated", DECORATIONS.values(), ids=DECORATIONS)
def test_what_surrounds_a_text_does_not_count(text, decorated):
    assert reading(decorated(text)) == reading(text) != []


@pytest.mark.parametrize("bar", [" | ", ",", ";", "\t"])
def test_tables_of_pages_and_spreadsheets(bar):
    rows = (line.split() for line in NCCL.splitlines() if line.startswith("  "))
    table = "".join(f"{bar.join(row)}\n" for row in rows)
    (log,) = read_text("log", NCCL.partition("\n   2")[0] + "\n" + table)[0].logs
    assert len(log.figures) == 4


def test_no_figure_is_lost_for_a_line_that_is_understood():
    """A line with a wrong figure stays one, and does not become the end of the line above it."""
    odd = (
        "   536870912     134217728     float     sum      -1"
        + "     27  166.80  222.40      0" * 2
    )
    (log,) = read_text("log", NCCL + odd)[0].logs
    assert len(log.figures) == 4
    assert "1 line left out" in log.remarks[0]


def test_runs_of_copies_have_verdicts_of_their_own(tmp_path):
    slow = COPIES.format(25.2, 25.6, 50.8)
    (tmp_path / "log.txt").write_text(NVBANDWIDTH + slow)
    done = called("judge", tmp_path / "log.txt")
    answer = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "host_to_device_memcpy_ce, run 2 host:0 -> cuda:0 25.20 GB/s" in answer
    assert "host_to_device_memcpy_ce host:0 -> cuda:0 55.20 GB/s 101% of 54.50 ok" in answer
    assert "Runs of host_to_device_memcpy_ce differ in 25.2 GB/s and 55.2 GB/s" in answer


def test_machines_of_one_text_are_not_compared(tmp_path):
    other = COPIES.format(26.1, 26.0, 52.1).replace("H100 80GB HBM3", "A100-SXM4-40GB")
    (tmp_path / "log.txt").write_text(NVBANDWIDTH + other)
    done = called("judge", tmp_path / "log.txt")
    assert done.returncode == 0
    assert "machine 2" in done.stdout
    assert "fail host" not in done.stdout


COLUMNS = "{0} {1} float {2} -1 {3:.2f} {4:.2f} {5:.2f} 0 {3:.2f} {4:.2f} {5:.2f} {6}\n"


@pytest.mark.parametrize(
    ("redop", "ratio", "checked", "name"),
    [
        ("sum", 4 / 3, "0", "all_reduce"),
        ("sum", 2 / 3, "0", "reduce_scatter"),
        ("sum", 1, "N/A", "sendrecv"),
        ("none", 2 / 3, "0", "all_gather"),
        ("none", 2 / 3, "N/A", "alltoall"),
    ],
)
def test_a_table_names_its_collective(redop, ratio, checked, name):
    size, rate = 1 << 28, 90.0
    row = COLUMNS.format(size, size // 4, redop, size / rate / 1e3, rate, rate * ratio, checked)
    (log,) = read_text("log", NCCL.partition("\n   2")[0] + "\n" + row)[0].logs
    assert {one.benchmark for one in log.figures} == {name}


def test_the_first_copy_may_wait_for_the_gpu():
    grid = "   D\\D     0      1\n     0 {} 22.23\n     1  22.32 813.80\n"
    text = "".join(
        f"Unidirectional P2P={state} Bandwidth Matrix (GB/s)\n{grid.format(rate)}"
        for state, rate in (("Disabled", "140.75"), ("Enabled", "802.93"))
    )
    (log,) = read_text("log", text)[0].logs
    own = [one.figure for one in log.figures if one.benchmark == "device_local_copy"]
    assert own == pytest.approx([401.465e9, 406.9e9])
