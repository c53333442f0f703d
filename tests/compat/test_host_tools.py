"""`linkgauge as stream` and `as sysbench cpu run` print what the tools do, and what public scripts
read of them.

tests/data/stream-5.10.txt and sysbench-1.0.20.txt are what STREAM (15 threads) and Debian's package
of sysbench (4 threads of a Raspberry Pi 5) printed, from public notes, without prompts and names.
The expressions are those of
- Ramble: GoogleCloudPlatform/ramble, var/ramble/repos/builtin/applications/stream (figures of
  merit), and a driver of hpcbench (Copy, Scale, Add, Triad with their four columns);
- scripts that take `events per second:` by a regular expression or by `awk '{print $NF}'`: each of
  the first ten of either that a search of public code gives."""

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import MadeUp, spoken
from fakes import machine
from linkgauge.model.counters import Counters, ThreadSteps
from linkgauge.model.documents.result import CellResult
from linkgauge.model.stats.summary import summarize

DATA = Path(__file__).parents[1] / "data"
STREAM, SYSBENCH = (
    (DATA / name).read_text() for name in ("stream-5.10.txt", "sysbench-1.0.20.txt")
)
COLUMNS = re.compile(
    r"^(Copy|Scale|Add|Triad):\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", re.MULTILINE
)
EVENTS = re.compile(r"events per second:\s*([\d.]+)")
BYTES = 80_000_000
COUNTED = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
TIMES = {  # of nine runs of a kernel, so that least, mean and most are those of the output
    name: (float(least), float(most), *[(9 * float(mean) - float(least) - float(most)) / 7] * 7)
    for name, _, mean, least, most in COLUMNS.findall(STREAM)
}
RATES = {name: float(rate) * 1e6 for name, rate, *_ in COLUMNS.findall(STREAM)}


def streamed(cell, settings, table):
    """The rates of a kernel's runs; the best one has more digits than its printed time."""
    name = cell.operation.removeprefix("stream-").title()
    rates = [BYTES * COUNTED[name] / time for time in TIMES[name]]
    return passed(cell, (RATES[name], *rates[1:]))


def passed(cell, samples, **more):
    return CellResult(
        cell.row, cell.column, cell.transfers, cell.report, "pass", samples=samples,
        summary=summarize(samples), operation=cell.operation, **more,
    )  # fmt: skip


def searched(cell, settings, table):
    events = (10_300, 10_310, 10_340, 10_345)
    threads = tuple(ThreadSteps(n, own, 9.9987, 0) for n, own in enumerate(events))
    return passed(cell, (4128.44,), counters=Counters(seconds=40.0, threads=threads))


def not_measured(which, status, result):
    def change(cell, settings, table):
        if cell.operation != which:
            return result(cell, settings, table)
        more = {"samples": (1e9,), "summary": summarize((1e9,))} if status == "fail" else {}
        return CellResult(cell.row, cell.column, cell.transfers, cell.report, status, "lost",
                          operation=cell.operation, **more)  # fmt: skip

    return change


@pytest.fixture
def on(monkeypatch):
    """A tool's command line on a machine of 16 CPUs, whose cells come to what `result` says."""

    def run(words, result, **environment):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        MadeUp(result).install(monkeypatch, machine(nodes=8))
        tool, *more = shlex.split(words)
        return spoken(tool, "", *more, on=None, **environment)

    return run


def test_stream_is_printed_to_the_byte(on):
    done = on("stream", streamed, OMP_NUM_THREADS="15,2")
    assert (done.returncode, done.stderr) == (0, "")
    took = {"1618": str(round(min(TIMES["Copy"]) * 1e6))}  # STREAM times another loop for it
    assert done.stdout == STREAM.replace("1618", took["1618"])


def test_sysbench_is_printed_to_the_byte_but_for_single_events(on):
    done = on("sysbench cpu --cpu-max-prime=20000 --threads=4 run", searched)
    assert (done.returncode, done.stderr) == (0, "")
    theirs, own = SYSBENCH.splitlines(), done.stdout.splitlines()
    assert own[0].startswith("sysbench 1.0.20 (using linkgauge ")
    differ = {their.split(":")[0].strip() for their, mine in zip(theirs, own, strict=True)
              if their != mine} - {theirs[0]}  # fmt: skip
    assert differ == {"total time", "min", "max", "95th percentile", "sum", "events (avg/stddev)"}
    digits = re.compile(r"[\d.]+(?=s?$|/)|\d[\d.]*$|N/A$")
    for their, mine in zip(theirs[1:], own[1:], strict=True):
        if "percentile" not in their and their != mine:
            assert digits.sub("#", mine).replace(" ", "") == digits.sub("#", their).replace(" ", "")
            assert len(mine) == pytest.approx(len(their), abs=1)  # 9.9987s for 10.0010s


@pytest.mark.parametrize(("status", "code"), [("fail", 1), ("error", 3), ("skip", 4)])
def test_a_kernel_without_a_figure_is_read_by_none(on, status, code):
    done = on("stream", not_measured("stream-scale", status, streamed), OMP_NUM_THREADS="15")
    assert (done.returncode, "stream: " in done.stderr) == (code, True)
    assert ("Solution Validates" in done.stdout) is False
    assert ("Failed Validation on array b[]" in done.stdout) == (status == "fail")
    read = [name for name, *_ in COLUMNS.findall(done.stdout)]
    assert read == [name for name in COUNTED if name != "Scale" or status == "fail"]
    assert COLUMNS.findall(done.stdout)[-1][1] == "133629.8"


@pytest.mark.parametrize(("status", "code"), [("error", 3), ("skip", 4)])
def test_a_search_without_a_figure_is_read_by_none(on, status, code):
    done = on("sysbench cpu run", not_measured("primes", status, searched))
    assert done.returncode == code
    assert EVENTS.findall(done.stdout) == []
    assert done.stdout.endswith("Threads started!\n")


@pytest.mark.parametrize("text", [SYSBENCH, None], ids=["theirs", "ours"])
def test_what_scripts_take_of_sysbench(on, text):
    text = text or on("sysbench --num-threads=4 --max-time=1 --test=cpu run", searched).stdout
    (line,) = (one for one in text.splitlines() if "events per second" in one)
    assert EVENTS.findall(text) == ["4128.44"] == [line.split()[-1]] == [line.split()[3]]
    assert re.search(r"total time:\s+([\d.]+)s", text)
    assert re.search(r"total number of events:\s+41295", text)
    assert re.search(r"avg:\s+0\.97\n", text)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("sysbench --version", 0, "sysbench 1.0.20"),
        ("sysbench memory run", 1, "of sysbench, only `cpu run` is measured"),
        ("sysbench cpu", 1, "only `cpu run` is measured"),
        ("sysbench cpu --cpu-max-prime=5 run", 1, "--cpu-max-prime 5: give 10000 or 20000"),
        ("sysbench cpu --threads=17 run", 1, "17 threads: give 1 to 16"),
        ("sysbench cpu --threads=x run", 1, "--num-threads x: 'x' is not a whole number"),
        ("sysbench cpu --events=9 run", 0, "--events: the time alone limits it"),
        ("stream -DNTIMES=1", 1, "give 2 or more"),
        ("stream 5", 1, "unrecognized arguments: 5; see 'linkgauge as stream -h'"),
    ],
)
def test_what_they_say(on, words, code, says):
    done = on(words, searched)
    assert (done.returncode, says in done.stdout + done.stderr) == (code, True), done.stderr


VALUES = ("stream -DNTIMES=", "sysbench cpu run --threads=", "sysbench cpu run --time=")


@given(st.sampled_from(VALUES), st.text(max_size=12))
def test_any_value_is_a_number_or_refused_in_one_line(words, written):
    with pytest.MonkeyPatch.context() as patch:
        MadeUp(lambda cell, *_: passed(cell, (1e9,))).install(patch, machine(nodes=8))
        tool, *more = words.split(" ")
        more[-1] += written
        done = spoken(tool, "", *more, on=None)
    assert done.returncode in (0, 1)
    assert (done.returncode == 1) == ("; see 'linkgauge as " in done.stderr)
