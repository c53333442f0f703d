"""`linkgauge as all_reduce_perf` and its siblings print what nccl-tests does."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from collected_kit import collected, unmeasured
from compat_kit import MadeUp, as_rank, of_processes, spoken
from launch_kit import launch
from linkgauge.model.documents.result import RankTimes
from linkgauge.rooms.compat import nccl_tests

DATA = Path(__file__).parents[1] / "data"
BEGIN = "# nccl-tests version"


@pytest.fixture
def perf(monkeypatch):
    """The tool on a simulated machine whose collectives take times by a model, or as a test says;
    on so many `processes`, if any."""
    for name in ("NCCL_TESTS_DEVICE", "NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK",
                 "NCCL_TESTS_MIN_BW"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)

    def run(name, words="", *, made_up=None, processes=None, rank=0, **environment):
        box = None
        if processes is not None:
            as_rank(monkeypatch, rank, processes)
            box = of_processes(processes)
        (made_up or MadeUp(collected())).install(monkeypatch, box)
        on = None if processes else "dgx-h200-8"
        return spoken(f"{name}_perf", words, on=on, **environment)

    return run


def rows(done):
    """The figures of each line: what stands between the heads and the footer."""
    text = getattr(done, "stdout", done)
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def layout(text):
    """Where the figures of each line end."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [[found.end() for found in re.finditer(r"\S+", line)] for line in lines]


def blocks():
    """What nccl-tests printed on two and four H200s."""
    for ranks in (2, 4):
        text = (DATA / f"nccl-tests-{ranks}xH200.txt").read_text()
        for block in text.split(BEGIN)[1:]:
            name = re.search("starting: (.*)", block)[1]
            yield pytest.param(ranks, BEGIN + block, id=f"{ranks}-{name}")


@pytest.mark.parametrize(("ranks", "block"), [*blocks()])
def test_given_the_times_of_h200s_it_prints_what_was_printed_there(perf, ranks, block):
    figures = rows(block)
    program = re.search(r"starting: (\w+)_perf", block)[1]
    most = re.search(r"maxBytes (\d+)", block)[1]
    times = {}
    for at, line in enumerate(figures):
        times[8 << 2 * at] = (float(line[-8]) / 1e6, float(line[-4]) / 1e6)
    made_up = MadeUp(collected(lambda work, size, _: times[size][work.in_place]))
    end = str(8 << 2 * (len(figures) - 1))
    done = perf(program, f"-g {ranks} -b 8 -e {end} -f 4", made_up=made_up)
    own = done.stdout.splitlines()
    theirs = [line for line in block.splitlines() if not line.startswith(" .. ")]
    assert own[7 + ranks - 2 :][:4] == theirs[7 + ranks - 2 :][:4]  # the heads
    assert own[2].replace(end, most) == theirs[2]
    assert layout(done.stdout) == layout(block)
    for mine, there in zip(rows(done), figures, strict=True):
        assert [*mine[:6], mine[8], mine[9], mine[12]] == (
            [*there[:6], there[8], there[9], there[12]]
        )
        for place in (6, 7, 10, 11):
            assert float(mine[place]) == pytest.approx(float(there[place]), rel=0.01, abs=0.011)
    averages = [re.search(r"bandwidth    : (\S+) \n", text)[1] for text in (done.stdout, block)]
    assert float(averages[0]) == pytest.approx(float(averages[1]), rel=1e-3)
    assert own[-1] == ""


def test_cycles_without_end_end_with_ctrl_c(perf):
    done = perf("all_reduce", "-g2 -N0", made_up=MadeUp(collected(), cells=7))
    assert done.returncode == 130
    assert len(rows(done)) == 3
    assert "Avg bus" not in done.stdout


def test_how_each_is_measured(perf):
    made_up = MadeUp(collected())
    perf("all_reduce", "-g2 -n5 -c0 -G1 -m3 -z2 -R2 -T7", made_up=made_up)
    (settings,) = made_up.settings
    assert (settings.samples, settings.loops, settings.verify) == (1, 5, False)
    assert (settings.timeout, settings.engines.tuned) == (7.0, False)
    out, within = made_up.works
    assert (out.in_place, within.in_place) == (False, True)
    assert (out.graphed, out.aggregated, out.blocking, out.registered) == (
        True, 3, True, "symmetric"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "words", "environment", "code", "says"),
    [
        ("all_reduce", "-g2", {"NCCL_TESTS_MIN_BW": "1e6"}, 1, r"bandwidth    : \S+ FAILED\n"),
        ("all_reduce", "-g2", {"NCCL_TESTS_MIN_BW": "1"}, 0, r"bandwidth    : \S+ OK\n"),
        ("hypercube", "-g3", {}, 4, "nRanks 3 is not a power of 2, skipping\n"),
        ("all_reduce", "-g2", {"NCCL_TESTS_DEVICE": "5"}, 0, r"Rank  1 .* device  6 \["),
        ("all_reduce", "-g4", {"NCCL_TESTS_DEVICE": "5"}, 5, "9 GPUs are needed, and there are 8"),
        ("all_reduce", "-g2", {"NCCL_TESTS_SPLIT": "MOD 2"}, 0, "SPLIT needs several processes"),
        ("all_reduce", "-g2", {"NCCL_TESTS_SPLIT": "XOR 3"}, 5, "give AND, OR, MOD or DIV"),
        ("all_reduce", "-b 1024G -e 1024G -g2", {}, 0, "# Reducing maxBytes to .* due to memory"),
        ("all_reduce", "-g2 -S1", {}, 0, r"0  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n"),
        ("all_reduce", "-z3 -I1 -K2 -p1 -b1M -e2M -i1M -c0 -t2 -g2 -N2 -m2", {}, 0, "Avg bus"),
        ("all_reduce", "-g2", {"NCCL_TESTS_SPLIT": "MOD 0"}, 5, "give AND, OR, MOD or DIV"),
        ("all_reduce", "-g2", {"NCCL_TESTS_SPLIT_MASK": "-1"}, 5, "give a mask in hexadecimal"),
        ("all_reduce", "-g2", {"NCCL_TESTS_MIN_BW": "1 GB/s"}, 5, "'1 GB/s' is not a number"),
        ("all_reduce", "-g2", {"NCCL_TESTS_DEVICE": "x"}, 5, "NCCL_TESTS_DEVICE='x': 'x' is not"),
        ("gather", "-g2 -h", {}, 0, r"\[-h,--help\]\n"),
    ],
)  # fmt: skip
def test_what_it_says(perf, name, words, environment, code, says):
    done = perf(name, words, **environment)
    assert done.returncode == code
    says = says if "\\" in says or ".*" in says else re.escape(says)
    assert re.search(says, done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-w 5", "-w 5: linkgauge warms each size up by itself"),
        ("-G 2", "-G 2: the iterations are one graph, launched once"),
        ("-c 2", "-c 2: each result is checked once"),
        ("-z 1", "-z 1: the host waits as with -z 2, without a barrier"),
        ("-M 1", "-M: linkgauge does not report the memory used"),
        ("-x 0", "-x: the library chooses its CTA policy itself"),
        ("-y 1 -p 0 -x-1 -V 4 -D0", ""),
    ],
)
def test_what_is_different_is_said(perf, words, says):
    done = perf("all_reduce", f"-g2 {words}")
    assert done.returncode == 0
    said = "".join(line for line in done.stderr.splitlines() if "SIMULATED" not in line)
    assert said.endswith(says)
    assert bool(said) == bool(says)


def test_a_copy_says_what_went_wrong_or_is_left_out(perf, tmp_path):
    few, none = tmp_path / "few.json", tmp_path / "none.json"
    assert perf("all_reduce", f"-g 99 -J {few}").returncode == 5
    assert "99 GPUs are needed, and there are 8" in json.loads(few.read_text())["errors"][0]
    lost = MadeUp(collected(change=lambda cell, _: unmeasured(cell, "error", "lost")))
    assert perf("all_reduce", f"-g2 -J {none}", made_up=lost).returncode == 3
    told = json.loads(none.read_text())
    assert told["errors"] == [f"float sum{side}, 32 MiB: error: lost" for side in ("", " in place")]
    assert (told["results"], "average_bus_bandwidth" in told) == ([], False)
    done = perf("all_reduce", f"-g2 -J {tmp_path / 'no' / 'a.json'}")
    assert done.returncode == 0
    assert done.stdout.startswith("# skipping json output; ")
    assert "must end in .json" in perf("all_reduce", f"-g2 -J {tmp_path / 'a.txt'}").stderr


def _of_rccl():
    """A record of the JSON, as a public test of a reader of rccl-tests' files writes it."""
    return (
        r'\{"numCycle":\d+, "name":"\w+", (?:"gpus":\d+|"nodes":\d+, "ranks":\d+, '
        r'"ranksPerNode":\d+, "gpusPerRank":\d+), "size":\d+, "type":"\w+", "redop":"\w*", '
        r'"inPlace":[01], "time":\d+\.\d{6}, "algBw":\d+\.\d{6}, "busBw":\d+\.\d{6}, '
        r'"wrong":"(?:\d+|N/A)"\},?'
    )


@pytest.mark.parametrize("file", ["-x", "-X", "--output_file", "--rccl_output_file"])
def test_a_file_is_that_of_rccl_tests(perf, tmp_path, file):
    made_up = MadeUp(collected(lambda _, size, __: size * 1e-9))
    name = tmp_path / "lines"
    words = f"-b 1K -e 2K -f 2 -g 2 -N 2 -Z csv {file} {name}"
    done = perf("reduce_scatter", words, made_up=made_up)
    assert (done.returncode, "-x" in done.stderr, ".json" in done.stderr) == (0, False, False)
    first = '0,"ReduceScatter",2,512,"float","sum",0,1.024000,1.000000,0.500000,"0"'
    head, *lines = name.read_text().splitlines()
    assert head == "numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong"
    assert lines[0] == first
    assert lines[1] == first.replace('"sum",0', '"sum",1')
    assert [line[0] for line in lines] == list("00001111")
    assert len(rows(done)) == 4
    perf("reduce_scatter", words.replace("csv", "json"), made_up=MadeUp(made_up.result))
    begin, *records, end = name.read_text().splitlines()
    assert (begin, end, len(records)) == ("[", "]", 8)
    assert all(re.fullmatch(_of_rccl(), record) for record in records)
    assert [one["busBw"] for one in json.loads(name.read_text())] == [0.5] * 8


def test_a_file_of_rccl_tests_keeps_what_was_measured(perf, tmp_path):
    name = tmp_path / "lines"
    words = f"-b 1K -e 8K -f 2 -g 2 -Z json -X {name}"
    assert perf("all_reduce", words, made_up=MadeUp(collected(), cells=3)).returncode == 130
    assert [one["size"] for one in json.loads(name.read_text())] == [1024, 1024]
    perf("all_reduce", words, made_up=MadeUp(collected(), cells=0))
    assert json.loads(name.read_text()) == []
    done = perf("all_reduce", f"-g 2 -Z csv -X {tmp_path / 'no' / 'a'}")
    assert (done.returncode, "cannot write" in done.stderr) == (2, True)
    done = perf("all_reduce", "-g 2 -Z xml -X a")
    assert (done.returncode, "give one of csv, json" in done.stderr) == (255, True)


def test_in_a_guest_nccl_decides_on_nvls_as_there(perf, monkeypatch, tmp_path):
    monkeypatch.setattr(nccl_tests, "needed", lambda *_: {"NCCL_NVLS_ENABLE": "0", "A": "1"})
    assert perf("all_reduce", "-g 2").stderr == "SIMULATED dgx-h200-8\n"
    done = perf("all_reduce", f"-J {tmp_path / 'a.json'}", processes=2)
    assert done.returncode == 0
    assert done.stderr.startswith("all_reduce_perf: unlike nccl-tests, sets NCCL_NVLS_ENABLE=2 A=1")
    assert {"NCCL_NVLS_ENABLE=2", "A=1"} <= {*json.loads((tmp_path / "a.json").read_text())["env"]}


class TestProcesses:
    """As mpirun starts it: a process for each device, or for each share of the hosts' memories."""

    def test_a_rank_is_a_process(self, perf):
        done = perf("all_reduce", processes=4)
        assert (done.returncode, done.stderr) == (0, "")
        found = re.findall(r"#  Rank.*", done.stdout)
        assert found[::3] == [
            "#  Rank  0 Group  0 Pid    100 on      first device  0 [0000:10:00] Fake Card X1",
            "#  Rank  3 Group  0 Pid    103 on     second device  1 [0000:11:00] Fake Card X1",
        ]

    @pytest.mark.parametrize(
        ("environment", "groups"),
        [
            ({}, "0000"),
            ({"NCCL_TESTS_SPLIT": "DIV 2"}, "0011"),
            ({"NCCL_TESTS_SPLIT": "/ 0x2"}, "0011"),
            ({"NCCL_TESTS_SPLIT": "mod2"}, "0101"),
            ({"NCCL_TESTS_SPLIT": "& 1"}, "0101"),
            ({"NCCL_TESTS_SPLIT_MASK": "0x1", "NCCL_TESTS_SPLIT": "DIV 2"}, "0101"),
            ({"NCCL_TESTS_SPLIT": "OR 0b11"}, "3333"),
        ],
    )
    def test_groups_work_at_the_same_time(self, perf, environment, groups):
        made_up = MadeUp(collected())
        done = perf("gather", "-r -1", made_up=made_up, processes=4, **environment)
        found = re.findall(r"Rank  \d Group  (\d)", done.stdout)
        assert "".join(found) == groups
        assert {work.split is None for work in made_up.works} == {not environment}
        largest = max(groups.count(one) for one in groups)
        assert [line[4] for line in rows(done)] == [str(n) for n in range(largest)]

    def test_a_file_of_rccl_tests_has_the_processes(self, perf, tmp_path):
        name = tmp_path / "lines"
        perf("all_reduce", f"-Z csv -X {name}", processes=4)
        head, first, _ = name.read_text().splitlines()
        assert head.startswith("numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,")
        assert first.startswith('0,"AllReduce",2,4,2,1,33554432,"float","sum",0,')

    def test_a_hypercube_is_of_a_group(self, perf):
        split = {"NCCL_TESTS_SPLIT_MASK": "1"}
        assert perf("hypercube", processes=6, **split).returncode == 4
        assert perf("hypercube", processes=4, **split).returncode == 0

    @pytest.mark.parametrize(("average", "microseconds"), [(0, 8), (1, 10), (2, 8), (3, 13)])
    def test_which_rank_is_reported(self, perf, average, microseconds):
        def change(_, result):
            own = tuple(RankTimes(n, (each * 2e-6,) * 4) for n, each in enumerate((8, 9, 13)))
            return replace(result, iterations=own)

        made_up = MadeUp(collected(lambda *_: 10e-6, change))
        (line,) = rows(perf("all_reduce", f"-a {average}", made_up=made_up, processes=3))
        assert float(line[5]) == microseconds

    @pytest.mark.parametrize(
        ("words", "environment", "says"),
        [
            ("-g 2", {}, "-t, -g: each process that mpirun starts uses one device\n"),
            ("-t 2", {}, "-t, -g: each process that mpirun starts uses one device\n"),
            ("", {"NCCL_TESTS_DEVICE": "1"}, "NCCL_TESTS_DEVICE: each process uses the device"),
        ],
    )
    def test_a_process_has_the_device_of_its_number(self, perf, words, environment, says):
        done = perf("all_reduce", words, processes=2, **environment)
        assert (done.returncode, done.stdout) == (5, "")
        assert says in done.stderr
        assert perf("all_reduce", words, processes=2, rank=1, **environment).stderr == ""

    def test_without_gpus_they_have_the_memories_of_their_hosts(self, tmp_path):
        done = launch(tmp_path, 2, "as", "all_reduce_perf", "-b", "8", "-e", "32", "-f", "4")
        lines = re.findall(
            r"^#  Rank  \d Group  0 Pid +\d+ on +\S+ device .*$", done.stdout, re.MULTILINE
        )
        assert len(lines) == 2
        assert all(re.search(r"\[host:\d+\] host memory$", line) for line in lines)
        assert done.stdout.count("# Collective test starting: all_reduce_perf") == 1
