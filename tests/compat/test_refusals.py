"""What a tool cannot read or do ends it with the tool's own exit code, and is said."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat_kit import ONE, spoken
from linkgauge.model.errors import InputError
from linkgauge.uses import measuring

TOOLS = {
    "nvbandwidth": (1, "ppu-8"),
    "sailbandwidth": (1, "ppu-8"),
    "bandwidthTest": (1, ONE),
    "p2pBandwidthLatencyTest": (1, "ppu-8"),
    "bandwidth_test": (1, ONE),
    "ping_pong": (2, ONE),
    "rblnBandwidthLatencyTest": (1, "rbln-32"),
    "gc-hosttraffictest": (1, "ipu-m2000"),
    "all_reduce_perf": (255, "ppu-8"),
    "run_vcpu_benchmark": (1, ONE),
}
"""The exit code of a wrong command line, and a machine."""


def cases(tool, *lines):
    return [pytest.param(tool, words, says, id=f"{tool} {words}") for words, says in lines]


CASES = [
    *cases(
        "nvbandwidth",
        ("-b", "expected one argument"),
        ("-b 64M", "--bufferSize 64M: '64M' is not a whole number"),
        ("-i 0", "--testSamples 0: give 1 to 1000000000"),
        ("--test 0", "could match"),
        ("-s false", "unrecognized arguments: false"),
        ("device_local_copy", "device_local_copy"),
        ("-v=1", "ignored explicit argument"),
        ("-F xml", "--format xml: give one of text, json, perf"),
        ("-P 0", "--targetNumPairs 0: give 1 to"),
        ("-t 0 -p host", "-t and -p exclude each other"),
        ("--useNormalCopy", "--useNormalCopy"),
    ),
    *cases(
        "sailbandwidth",
        ("--nBlocks 0", "--nBlocks 0: give 1 or more"),
        ("--nThreads 100", "--nThreads 100: give a multiple of 64 up to 1024, or -1"),
        ("--useBulkCopy", "--useBulkCopy"),
    ),
    *cases(
        "bandwidthTest",
        ("h2d", "unrecognized arguments: h2d"),
        ("--memory", "--memory: expected one argument"),
        ("--csv=1", "--csv: ignored explicit argument"),
        ("--mode=slow", "--mode slow: give one of quick, range, shmoo"),
        ("--mode=range --start=1 --end=2", "--mode=range needs --start, --end and --increment"),
        ("--start=1 --end=2 --increment=1", "no other mode"),
        ("--mode=range --start=3 --end=2 --increment=1", "--start is greater than --end"),
        ("--increment=0", "--increment 0: give 1 to"),
        ("--device=first", "--device first: 'first' is not a whole number"),
        ("--wc --memory=pageable", "--wc needs --memory=pinned"),
    ),
    *cases("p2pBandwidthLatencyTest", ("--numElems=0", "--numElems 0: give 1 or more")),
    *cases(
        "bandwidth_test",
        ("--size 0", "--size 0: size 0 moves nothing"),
        ("--iter 1_0", "--iter 1_0: '1_0' is not a whole number"),
        ("--out ''", "--out : give the name of a file"),
    ),
    *cases("ping_pong", ("--iter 0", "--iter 0: give 1 to 1000000")),
    *cases(
        "rblnBandwidthLatencyTest",
        ("--tc 7", "--tc 7: give 0 to 6"),
        ("--npu_id_list 0,,1", "--npu_id_list 0,,1: '' is not a whole number"),
        ("--npu_id_list 1,1", "NPU listed twice"),
        ("--npu_id_list 0,32", "no NPU 32"),
        ("--tc 3 -n 40", "no NPU 40"),
        ("--tc 4 --npu_id_list 3", "needs two"),
        ("--only_d2d --npu_id_list 3", "needs two"),
        ("--data_pattern -1", "--data_pattern -1: give 0 to"),
        ("--test_env_info --tc 1", "leave out the other options"),
    ),
    *cases(
        "gc-hosttraffictest",
        ("", "give the id of the device"),
        ("-d 0 --ti", "--ti could match"),
        ("-d 0 --test-duration nan", "--test-duration nan: give 0.001 to"),
        ("-d 0 -p 3", "--payload-blocks 3: give one of 2, 4"),
        ("-d 0 --host --min-tile-bandwidth 1", "no tile transfers"),
        ("-d 0 --tile --min-host-bandwidth 1", "no host transfers"),
        ("-d 0 --use-secondary", "only a C600"),
        ("-d 0 --hel", "--hel"),
    ),
    *cases(
        "all_reduce_perf",
        ("-q", "-q"),
        ("8", "8"),
        ("-g x", "--ngpus x: 'x' is not a whole number"),
        ("-b 0", "--minbytes 0: give 1 or more"),
        ("-e 8B", "--maxbytes 8B: '8B' is not a number"),
        ("-e inf", "--maxbytes inf: give a size that memory can have"),
        ("-i 0", "-i, -f"),
        ("-f -2", "--stepfactor -2: give 0 or more"),
        ("-a 4", "--average 4: give 0 to 3"),
        ("-d int7", "--datatype int7: give one of int8"),
        ("-b 2G -e 1G", "-b, -e: the smallest size is above the largest"),
        ("-I 1 -G 1", "-I and -G exclude each other"),
        ("-z 3 -G 1", "-z 3 and -G exclude each other"),
        ("-K 1", "-K needs -I 1"),
        ("-I1 -K20", "-K: give less than the iterations"),
    ),
    *cases(
        "run_vcpu_benchmark",
        ("''", "CONFIG: give the configuration a name"),
        ("a --nccl-max-msg 7", "--nccl-max-msg 7: give 8 or more"),
    ),
]


@pytest.mark.parametrize(("tool", "words", "says"), CASES)
def test_what_is_wrong_is_said_and_nothing_is_left(tool, words, says, tmp_path, monkeypatch):
    """In one line, whatever the tool itself would write."""
    monkeypatch.chdir(tmp_path)
    code, machine = TOOLS[tool]
    done = spoken(tool, words, on=machine)
    assert done.returncode == code
    line = done.stderr.removeprefix(f"SIMULATED {Path(machine).stem}\n")
    assert line.startswith(f"{tool}: ")
    assert line.endswith(f"; see 'linkgauge as {tool} -h'\n")
    assert line.count("\n") == 1
    assert says in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "words", "code", "says"),
    [
        ("nvbandwidth", "-p bogus", 1, "-p: no test begins with bogus"),
        ("nvbandwidth", "-t 44", 1, "ERROR: Testcase index 44 out of bound!"),
        ("ping_pong", "--out missing/x.csv", 2, "cannot write missing/x.csv: No such file"),
        ("all_reduce_perf", "-D 1 -R 2", 5, "-D: linkgauge has no device implementations"),
        ("all_reduce_perf", "-u 1", 5, "-u: linkgauge does not misalign buffers"),
        ("all_reduce_perf", "-C 1", 5, "-C: linkgauge does not time the CPU side"),
        ("all_reduce_perf", "-g 9", 5, "-t, -g: 9 GPUs are needed, and there are 8"),
    ],
)
def test_what_cannot_be_done_is_said(tool, words, code, says):
    done = spoken(tool, words, on=TOOLS[tool][1])
    assert done.returncode == code
    assert says in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("bandwidthTest", "--htod"),
        ("p2pBandwidthLatencyTest", ""),
        ("bandwidth_test", ""),
        ("nvbandwidth", "-t 0"),
    ],
)
def test_a_tool_that_needs_devices_says_that_there_are_none(tool, words):
    done = spoken(tool, words, on=None, LINKGAUGE_BACKEND="host")
    assert done.returncode == 2
    assert "no devices" in done.stdout + done.stderr


WORDS = st.sampled_from(
    "-b -t -p -s -d -j -i -a -A -k -K -m -l -n -N -R 0 1 -1 0,1 4K x 1e999 true --json --size"
    " --iter --out --tc --npu_id_list --csv -CSV --memory=x --mode p2p cmdline --".split()
) | st.text(max_size=8)


@pytest.mark.parametrize("tool", TOOLS)
def test_any_command_line_is_read_or_refused(tool, tmp_path_factory):
    """The machine does not open, so what is read ends there."""
    folder = tmp_path_factory.mktemp("any")

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.lists(WORDS, max_size=6))
    def check(arguments):
        if any("\0" in word for word in arguments):
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(measuring, "opened_by_launch", nothing_opens)
            done = spoken(tool, "", *arguments, on=TOOLS[tool][1])
        assert done.returncode in (0, 1, 2, 5, 255)
        assert done.stdout or done.stderr

    check()


def nothing_opens(request):
    raise InputError("nothing opens")
