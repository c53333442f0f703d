"""What a tool cannot read or do ends it with the tool's own exit code, and is said."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat_kit import ONE, spoken
from linkgauge.cli import tool as base
from linkgauge.model.errors import InputError

TOOLS = {
    "nvbandwidth": (1, "ppu-8"),
    "sailbandwidth": (1, "ppu-8"),
    "bandwidthTest": (1, ONE),
    "p2pBandwidthLatencyTest": (1, "ppu-8"),
    "bandwidth_test": (1, ONE),
    "ping_pong": (2, ONE),
    "rblnBandwidthLatencyTest": (1, "rbln-32"),
    "gc-hosttraffictest": (1, "ipu-m2000"),
    "rocm-bandwidth-test": (1, "riscv-2gpu"),
    "TransferBench": (1, "riscv-2gpu"),
    "all_reduce_perf": (5, "ppu-8"),
    "run_vcpu_benchmark": (1, ONE),
}
"""The exit code of a wrong command line, and a machine."""


def cases(tool, *lines):
    return [pytest.param(tool, words, says, id=f"{tool} {words}") for words, says in lines]


CASES = [
    *cases(
        "nvbandwidth",
        ("-b", "expected one argument"),
        ("-b 64M", "'64M'"),
        ("-b 1 -b 2", "more than once"),
        ("--test 0", "could match"),
        ("-s false", "'false'"),
        ("device_local_copy", "'device_local_copy'"),
        ("-v=1", "ignored explicit argument"),
        ("-p bogus", "prefixes did not match any testcases"),
        ("-t 44", "ERROR: Testcase index 44 out of bound!"),
        ("--useNormalCopy", "--useNormalCopy"),
    ),
    *cases(
        "sailbandwidth",
        ("--nBlocks 0", "'0' is not a number of blocks, or -1"),
        ("--nThreads 100", "'100' is not a multiple of 64 up to 1024, or -1"),
        ("--nThreads 64 --nThreads 128", "more than once"),
        ("--useBulkCopy", "--useBulkCopy"),
    ),
    *cases(
        "bandwidthTest",
        ("h2d", "Unknown option h2d"),
        ("--memory", "Missing value - write --memory=VALUE"),
        ("--csv=1", "--csv takes no value"),
        ("--mode=slow", "Invalid mode - valid modes are quick, range, or shmoo"),
        ("--mode=range", "Must specify a starting size in range mode"),
        ("--mode=range --start=1", "Must specify an end size in range mode"),
        ("--mode=range --start=1 --end=2", "Must specify an increment in user mode"),
        ("--mode=range --start=3 --end=2 --increment=1", "start is greater than end"),
        ("--mode=range --start=1 --end=2 --increment=0", "increment must be greater than zero"),
        ("--mode=range --start=x --end=2 --increment=1", "start must be a number"),
        ("--device=first", "Illegal argument - device must be a number"),
    ),
    *cases(
        "p2pBandwidthLatencyTest",
        ("--numElems=0", "Illegal argument - numElems must be greater than zero"),
        ("--sm_copy=1", "--sm_copy takes no value"),
    ),
    *cases(
        "bandwidth_test",
        ("--size", "argument --size: expected one argument"),
        ("--size 0", "--size: size 0 moves nothing"),
        ("--iter 1_0", "argument --iter: invalid whole value: '1_0'"),
        ("--out ''", "--out: give the name of a file"),
    ),
    *cases(
        "ping_pong",
        ("--iter 0", "--iter: give 1 to 1000000"),
        ("--out missing/x.csv", "cannot write missing/x.csv: No such file or directory"),
    ),
    *cases(
        "rblnBandwidthLatencyTest",
        ("tc", "unrecognized arguments: tc"),
        ("--tc three", "argument --tc: 'three' is not a whole number"),
        ("--tc 7", "unknown test case 7: --test_list shows 0 to 6"),
        ("--tc -1", "unknown test case -1"),
        ("--test_size 4X", "--test_size: size '4X' is not understood"),
        ("--npu_id_list 0,,1", "--npu_id_list '0,,1': give numbers"),
        ("--npu_id_list 1,1", "NPU listed twice"),
        ("--npu_id_list 0,32", "no NPU 32"),
        ("--tc 3 -n 40", "no NPU 40"),
        ("--tc 4 --npu_id_list 3", "needs two"),
        ("--only_d2d --npu_id_list 3", "needs two"),
        ("-i 0", "--iteration_cnt 0: give 1 to"),
        ("-t 0", "--timeout 0: give 1 or more"),
        ("--get_perf 3", "--get_perf 3: give 0 to 2"),
        ("--priority 5", "--priority 5: give 0 to 4"),
        ("--data_pattern -1", "--data_pattern -1: give 0 to"),
        ("--test_env_info --skip_test_env_info", "contradict"),
        ("--test_env_info --tc 1", "leave out --tc"),
    ),
    *cases(
        "gc-hosttraffictest",
        ("-d", "the required argument for option '--device-id' is missing"),
        ("-d x", "the argument ('x') for option '--device-id' is invalid"),
        ("-d 0 --frob", "unrecognised option '--frob'"),
        ("-d 0 ''", "too many positional options"),
        ("-d 0 -d 1", "option '--device-id' cannot be specified more than once"),
        ("-d 0 --ti", "option '--ti' is ambiguous"),
        ("-d 0 -i 1_000", "('1_000') for option '--iterations' is invalid"),
        ("-d 0 --test-duration 1_0", "('1_0') for option '--test-duration' is"),
        ("-d 0 --test-duration nan", "'--test-duration' is invalid"),
        ("-d 0 -n 33", "('33') for option '--num-tiles' is invalid"),
        ("-d 0 -p 3", "('3') for option '--payload-blocks' is invalid"),
        ("-d 0 -R 0", "('0') for option '--repeat' is invalid"),
        ("-d 0 --host --min-tile-bandwidth 1", "no tile transfers"),
        ("-d 0 --tile --min-host-bandwidth 1", "no host transfers"),
    ),
    *cases(
        "rocm-bandwidth-test",
        ("-x", "invalid option -- 'x'"),
        ("-s", "option requires an argument -- 's'"),
        ("0", "no option takes '0'"),
        ("-s 0 -d 1 -a", "-a, -d, -s exclude each other"),
        ("-l", "-a excludes -l"),
        ("-A -m 4", "-A excludes -m"),
        ("-b 0,1 -v", "-b excludes -v"),
        ("-k 0,1,2", "-k and -K take pairs"),
        ("-s 0,,1 -d 2", "-s '0,,1': give numbers with commas"),
        ("-s 0,0 -d 2", "-s 0,0: device listed twice"),
        ("-s 0 -d 3", "no device 3: there are 0 to 2"),
        ("-s 0 -d 0", "no copy between two nodes"),
        ("-s 0 -d 1 -m 0", "-m: give 1 to"),
        ("-i pi", "-i 'pi' is not a number"),
    ),
    *cases(
        "TransferBench",
        ("healthcheck", "preset healthcheck: not measured here: it knows the limits"),
        ("nicp2p", "NIC executors are not there yet"),
        ("schmoo", "preset schmoo: not measured here: it sweeps"),
        ("p2p 3", "3 bytes: give a multiple of 4"),
        ("p2p 0", "preset p2p: give a size"),
        ("cmdline 4M", "no test: write one"),
        ("cmdline 4M '1 4 G0->G0->G7'", "no GPU 7: there are 0 to 1"),
        ("cmdline 4M '1 4 C1->G0->G0'", "no CPU 1: there are 0 to 0"),
        ("cmdline 4M '2 0 G0->G0->G1 G0->D0->G1'", "only a GPU kernel's number"),
        ("cmdline 4M '-2 (G0 G0 G1 0 0) (G0 G0 G1 1 0)'", "are for all transfers"),
    ),
    *cases(
        "all_reduce_perf",
        ("-D 1 -R 2", "-D"),
        ("-u 1", "-u"),
        ("-C 1", "-C"),
        ("-g x", "-g"),
        ("-n 0", "-n"),
        ("-b 0", "-b"),
        ("-i 0", "-i, -f"),
        ("-f -2", "-i, -f"),
        ("-a 4", "-a"),
        ("-z 4", "-z"),
        ("-R 3", "-R"),
        ("-t -1", "-t"),
        ("-e inf", "larger than any memory"),
        ("-g 9", "Invalid number of GPUs: 9 requested but only 8 were found."),
    ),
    *cases(
        "run_vcpu_benchmark",
        ("''", "CONFIG: give the configuration a name"),
        ("a --nccl-max-msg x", "--nccl-max-msg: size 'x' is not understood"),
        ("a --nccl-max-msg 7", "--nccl-max-msg 7: give at least 8"),
    ),
]


@pytest.mark.parametrize(("tool", "words", "says"), CASES)
def test_what_is_wrong_is_said_and_nothing_is_left(tool, words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, machine = TOOLS[tool]
    done = spoken(tool, words, on=machine)
    assert done.returncode == code
    assert says in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "variables", "says"),
    [
        ("p2p 4M", {"P2P_MODE": 3}, "P2P_MODE=3: give 0 to 2"),
        ("p2p 4M", {"NUM_GPU_DEVICES": 9}, "NUM_GPU_DEVICES=9: there are 2 GPUs"),
        ("p2p 4M", {"CPU_MEM_TYPE": 3}, "CPU_MEM_TYPE=3: give one of 0, 1, 2, 4"),
        ("p2p", {"NUM_ITERATIONS": 0}, "NUM_ITERATIONS=0 would run without end"),
        ("p2p", {"NUM_ITERATIONS": "x"}, "NUM_ITERATIONS=x: give a number"),
        ("p2p", {"GFX_BLOCK_SIZE": 100}, "GFX_BLOCK_SIZE=100: give a multiple of 64"),
        ("p2p", {"FILL_PATTERN": "ABC"}, "FILL_PATTERN=ABC: give 2, 4, 8 or 16"),
        ("a2a", {"A2A_MODE": "2:1"}, "A2A_MODE=2:1: give a number"),
        ("a2a", {"USE_DMA_EXEC": 1, "A2A_MODE": 1}, "USE_DMA_EXEC=1 copies"),
        ("a2a", {"NUM_QUEUE_PAIRS": 1}, "NIC executors are not measured"),
        ("one2all", {"EXE_INDEX": 2}, "EXE_INDEX=2: give 0 to 1"),
        ("one2all", {"SWEEP_EXE": "C"}, "SWEEP_EXE=C: give G or D"),
    ],
)
def test_transferbenchs_variables_are_checked(words, variables, says):
    done = spoken("TransferBench", words, on="riscv-2gpu", **variables)
    assert done.returncode == 1
    assert says in done.stderr


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("bandwidthTest", "--htod"),
        ("p2pBandwidthLatencyTest", ""),
        ("bandwidth_test", ""),
        ("rocm-bandwidth-test", "-a"),
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
            patch.setattr(base, "opened_session", nothing_opens)
            done = spoken(tool, "", *arguments, on=TOOLS[tool][1])
        assert done.returncode in (0, 1, 2, 5, 255)
        assert done.stdout or done.stderr

    check()


def nothing_opens(request):
    raise InputError("nothing opens")
