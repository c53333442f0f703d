"""A tool that reports wrong data is believed: the figure fails, whoever compared the bytes
(tests/data/judge/wrong.yml)."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from command_kit import called
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.rooms.judge_files.failures import meaning_of
from linkgauge.rooms.judge_files.judging import run_of_texts
from linkgauge.rooms.judge_files.readers import read_text

DATA = Path(__file__).parents[1] / "data/judge"
CASES = yaml.safe_load((DATA / "wrong.yml").read_text())
FAILED_CALLS = yaml.safe_load((DATA / "failed_calls.yml").read_text())
each_case = pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])


def _judged(text):
    run = judge(run_of_texts(read_text("log", text), None, "x"))
    return run, [cell for result in run.results for cell in result.cells]


@each_case
def test_wrong_data_fail(case):
    run, cells = _judged(case["wrong"])
    failed = [cell for cell in cells if cell.status == "fail"]
    assert run.tool.name == case["tool"]
    assert len(failed) == case["cells"]
    assert all(cell.reason.startswith(f"{case['tool']} says: ") for cell in failed)
    assert {cell.kind for cell in failed} <= {"wrong-bytes", "reported"}
    outcome = outcome_of(run)
    assert outcome.code == 1
    kinds = {cell.kind for cell in failed}
    assert kinds <= {one.check for one in outcome.findings if one.severity == "fail"}


@each_case
def test_right_data_do_not_fail(case):
    logs = [log for text in read_text("log", case["right"]) for log in text.logs]
    assert logs
    assert not any(log.failures for log in logs)
    assert not any(one.failure for log in logs for one in log.figures)


@pytest.mark.parametrize("case", FAILED_CALLS, ids=[one["name"] for one in FAILED_CALLS])
def test_a_call_that_failed_is_an_error_in_the_tools_words(case):
    run, cells = _judged(case["text"])
    assert run.tool.name == case["tool"]
    assert [(cell.status, cell.kind) for cell in cells] == [("error", "call")]
    assert cells[0].reason == f"{case['tool']} says: {case['says']}"
    assert outcome_of(run).code == 3


def test_notices_are_no_failures():
    text = """\
Intel(R) Memory Latency Checker - v3.9
*** Unable to modify prefetchers (try executing 'modprobe msr')
ALL Reads        :      34419.9
[  4]   0.00-11.83  sec   294 MBytes   209 Mbits/sec                  receiver
iperf3: interrupt - the client has terminated
"""
    logs = [log for one in read_text("log", text) for log in one.logs]
    assert {log.tool for log in logs} == {"Intel MLC", "iperf3"}
    assert not any(log.failures for log in logs)


def test_at_least_eight_tools_are_tried():
    assert len({case["tool"] for case in CASES}) >= 8
    assert len(CASES) >= 20


_HEAD = """\
#  Rank  0 Group  0 Pid  1000 on      node1 device  0 [0x10] NVIDIA A100-SXM-64GB
#  Rank  1 Group  0 Pid  1001 on      node1 device  1 [0x18] NVIDIA A100-SXM-64GB
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
"""
_COUNTS = st.sampled_from(["0", "0", "0", "1", "12", "1e+06", "1.67772e+07", "N/A"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_COUNTS, _COUNTS), min_size=1, max_size=6), st.booleans())
def test_exactly_the_rows_with_wrong_elements_fail(rows, has_foot):
    lines = [
        f"{1 << (20 + n)} {1 << (18 + n)} float sum -1 {100 << n} 10 10 {a} {100 << n} 10 10 {b}"
        for n, (a, b) in enumerate(rows)
    ]
    wrong = sum(one not in ("0", "N/A") for row in rows for one in row)
    foot = [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"] if has_foot else []
    _, cells = _judged(_HEAD + "\n".join([*lines, *foot]))
    told = [one not in ("0", "N/A") for row in rows for one in row]
    assert [cell.status == "fail" for cell in cells] == told
    assert {cell.kind for cell in cells if cell.status == "fail"} <= {"wrong-bytes"}


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("Error: data mismatch at 0x7 (expected 1 found 2)", "fail"),
        ("Result = FAIL", "fail"),
        ("[CUDA_ERROR_OUT_OF_MEMORY] out of memory in expression cuMemAlloc(…)", "error"),
        ("Failed to initialize NVML: Driver/library version mismatch", "error"),
        ("[CUDA_ERROR_ILLEGAL_ADDRESS] … in memcmpPatternHelper()", "error"),
        ("it was waived: GPUs reach no peers", "skip"),
    ],
)
def test_what_words_mean(said, status):
    assert meaning_of(said).status == status


def test_every_output_says_so(tmp_path):
    (case,) = (one for one in CASES if one["name"] == "nccl-rows")
    (tmp_path / "log").write_text(case["wrong"])
    shown = called("judge", "log", "--out", "kept", cwd=tmp_path)
    assert shown.returncode == 1
    assert "verdict:   fail wrong-bytes" in shown.stdout
    assert "nccl-tests says: 12 wrong elements" in shown.stdout
    as_json = called("judge", "log", "--json", cwd=tmp_path)
    assert as_json.returncode == 1
    (result,) = json.loads(as_json.stdout)["results"]
    assert [cell["status"] for cell in result["cells"]] == ["fail", "fail", "pass", "pass"]
    assert called("judge", "log", "--csv", cwd=tmp_path).returncode == 1
    (file,) = tmp_path.rglob("run.json")
    for form in ("junit", "sarif", "markdown"):
        document = called("export", f"--{form}", file, cwd=tmp_path).stdout
        assert "wrong-bytes" in document, form
    called("report", file, "-o", "page.html", cwd=tmp_path)
    assert "copied wrong bytes" in (tmp_path / "page.html").read_text()


def test_a_host_with_wrong_data_is_shown_first(tmp_path):
    row = "67108864 16777216 float sum -1 1017 66.00 66.00 {} 1017 66.00 66.00 0"
    for name, wrong in (("a", 0), ("b", 5), ("c", 0)):
        (tmp_path / name).write_text(_HEAD.replace("node1", name) + row.format(wrong) + "\n")
    done = called("judge", "a", "b", "c", cwd=tmp_path)
    assert done.returncode == 1
    assert "All else here is of b." in done.stdout
    assert "says: 5 wrong elements" in done.stdout


def test_a_failed_call_costs_its_test_and_no_other(tmp_path):
    (case,) = (one for one in CASES if one["name"] == "nvbandwidth-pattern")
    head = case["wrong"].partition(" Invalid value")[0]
    error = "[CUDA_ERROR_OUT_OF_MEMORY] out of memory in expression cuMemAlloc(&d, size) in run()"
    run, cells = _judged(f"{head}{error}\n")
    assert [cell.status for cell in cells] == ["pass", "pass", "error"]
    assert outcome_of(run).code == 3


@pytest.mark.parametrize(
    "tool",
    [
        ("nvbandwidth", "-t", "0"),
        ("nvbandwidth", "-j", "-t", "0"),
        ("all_reduce_perf", "-b", "64M", "-e", "64M", "-g", "2"),
        ("p2pBandwidthLatencyTest",),
        ("bandwidthTest",),
    ],
    ids=" ".join,
)
def test_what_linkgauge_prints_as_a_tool_of_wrong_bytes_fails(tool):
    fault = "flip sim:0 offset=54321 bit=3"
    done = called("as", "--machine", "islands-2x4", "--fault", fault, *tool)
    assert done.returncode == 1
    run, cells = _judged(done.stdout + done.stderr)
    assert any(cell.status == "fail" for cell in cells)
    assert outcome_of(run).code == 1


@pytest.mark.parametrize("other", ["alike", "slow", "wrong"])
def test_a_call_that_failed_on_one_of_several_hosts_is_an_error(tmp_path, other):
    """Also if another host has low figures or wrong data."""
    (case,) = (one for one in CASES if one["name"] == "nvbandwidth-pattern")
    whole = case["wrong"].partition("Running device_to_host")[0]
    head, _, table = whole.partition("memcpy CE")
    error = "[CUDA_ERROR_OUT_OF_MEMORY] out of memory in expression cuMemAlloc(&d, size) in run()"
    slow = f"{head}memcpy CE{table.replace('55.2', '27.0')}"
    (tmp_path / "a").write_text(whole)
    (tmp_path / "b").write_text(f"{head}{error}\n")
    (tmp_path / "c").write_text({"alike": whole, "slow": slow, "wrong": case["wrong"]}[other])
    done = called("judge", "a", "b", "c", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    (verdict,) = (line for line in done.stdout.splitlines() if line.startswith("verdict   "))
    assert "fail" in verdict.split()


def test_hosts_that_all_fail_are_several(tmp_path):
    error = "[CUDA_ERROR_OUT_OF_MEMORY] out of memory in expression cuMemAlloc(&d, size) in run()"
    for name in "ab":
        text = f"nvbandwidth Version: v0.8\n\nRunning host_to_device_memcpy_ce.\n{error}\n"
        (tmp_path / name).write_text(text)
    done = called("judge", "a", "b", cwd=tmp_path)
    assert done.returncode == 1
    assert "2 texts, each a run of its own" in done.stdout


@pytest.mark.parametrize("tool", ["rocm-bandwidth-test", "rocm-bandwidth-test-v", "transferbench"])
def test_a_kept_text_of_wrong_bytes_fails(tool):
    run, cells = _judged((DATA / f"printed/{tool}-wrong.txt").read_text())
    assert any(cell.status == "fail" for cell in cells)
    assert outcome_of(run).code == 1


def test_a_local_copy_of_nothing_is_read(tmp_path):
    """Its matrix has no faster copy of the device that could stand for it."""
    matrix = (
        "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
        "Device: 0, NVIDIA A100, pciBusID: 7, pciDeviceID: 0, pciDomainID:0\n"
        "Device: 1, NVIDIA A100, pciBusID: f, pciDeviceID: 0, pciDomainID:0\n"
        "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n"
        "   D\\D     0      1\n"
        "     0   0.00  17.82\n"
        "     1  17.70 1300.50\n"
    )
    (read,) = read_text("p2p.txt", matrix)
    rates = [one.figure for log in read.logs for one in log.figures]
    assert sorted(rates) == [0.0, 17.70e9, 17.82e9, 650.25e9]
