"""`linkgauge as TransferBench` prints what a reader of TransferBench's output finds."""

import csv
import io
import os
import re
from pathlib import Path

import pytest

from compat_kit import ONE_DEVICE, interrupted_after, speak, where
from linkgauge.compat import base, copy_cells, transferbench
from linkgauge.compat.base import Where
from linkgauge.compat.transferbench_environment import Common, Variables

GOLDEN = Path(__file__).parent / "golden"
FILE = """\
# not repeated
## Kernels
1 4 (G0->G0->G1)
## Copy engines, each with its own size
-2 (G0->D0->G1 1 1M) (G1->D1->G0 1 2M)
1 8 (N0->G0->G0)
1 4 (C0->C0->N0)
"""


@pytest.fixture
def bench(capfd, monkeypatch, tmp_path):
    """The tool on two GPUs unless told otherwise, with these variables and no others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIDE_ENV", "1")

    def run(*arguments, on=None, **variables):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, str(value))
            return speak(capfd, "TransferBench", *arguments, on=on or where("riscv-2gpu"))

    return run


def compare(name, done):
    path = GOLDEN / f"transferbench_{name}.txt"
    text = f"{done.out}\n--- stderr\n{done.err}"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def read_transfers(text):
    """GB/s by transfer, as scripts read them: the columns have either border, or commas."""
    bar = " *[│,|] *"
    line = rf"Transfer (\d+){bar}([\d.]+) GB/s{bar}([\d.]+) ms{bar}(\d+) bytes{bar}(.+?)[ ,]*$"
    found = re.findall(line, text, re.MULTILINE)
    return {path: (float(rate), float(ms), int(size)) for _, rate, ms, size, path in found}


class TestOutput:
    def test_a_file_of_tests(self, bench):
        Path("tests.cfg").write_text(FILE)
        done = bench("tests.cfg", "64M", HIDE_ENV=0)
        assert done.code == 0
        compare("file", done)
        found = read_transfers(done.out)
        assert found["G0 -> G0:4 -> G1"][2] == 64 << 20
        assert found["G1 -> D1:1 -> G0"][2] == 2 << 20, "its own size"
        for rate, ms, size in found.values():
            assert rate == pytest.approx(size / ms / 1e6, rel=0.05)

    def test_the_peer_to_peer_matrix(self, bench):
        done = bench("p2p", "64M")
        assert done.code == 0
        compare("p2p", done)

    def test_all_pairs(self, bench):
        done = bench("a2a", "64M", USE_DMA_EXEC=1, SHOW_DETAILS=1)
        assert done.code == 0
        compare("a2a", done)
        row = re.search(r"│  GPU 00 │ +N/A +([\d.]+) │ +([\d.]+) │ +([\d.]+) │", done.out)
        rate = read_transfers(done.out)["G0 -> D0:1 -> G1"][0]
        assert [float(figure) for figure in row.groups()] == pytest.approx([rate] * 3, abs=0.006)

    def test_from_one_to_all(self, bench):
        done = bench("one2all", "16M", on=where("dgx-h200-8"), NUM_GPU_DEVICES=3, SWEEP_EXE="D")
        assert done.code == 0
        compare("one2all", done)

    def test_iterations_one_by_one(self, bench):
        done = bench("cmdline", "16M", "1 1 G0->D0->G1", SHOW_ITERATIONS=1, NUM_ITERATIONS=3)
        times = [float(ms) for ms in re.findall(r"Iter \d{3} .*?([\d.]+) ms", done.out)]
        assert len(times) == 3
        assert times == sorted(times)
        assert "StandardDev" in done.out

    def test_csv_has_columns_and_no_borders(self, bench):
        done = bench("cmdline", "16M", "1 1 G0->D0->G1", OUTPUT_TO_CSV=1, HIDE_ENV=0)
        rows = [row for row in csv.reader(io.StringIO(done.out)) if len(row) == 6]
        assert [row[0].split()[0] for row in rows] == ["Executor:", "Transfer", "Aggregate"]
        assert re.search(r"NUM_ITERATIONS\s*,\s*10,", done.out)
        assert "│" not in done.out
        assert read_transfers(done.out)["G0 -> D0:1 -> G1"][0] > 100

    def test_usage_names_presets_and_devices(self, bench):
        done = bench()
        assert done.code == 0
        assert "Usage: TransferBench config <N>" in done.out
        assert "p2p - Peer-to-peer" in done.out
        assert "2 GPU device(s)" in done.out
        assert bench("--help").code == 0


class TestMeaning:
    def test_executors_are_engines(self, bench):
        """Of what runs at the same time, each executor's line sums up its own transfers."""
        done = bench("cmdline", "64M", "3 2 G0->D0->G1 G0->G0->N C0->C0->N")
        heads = re.findall(r"Executor: (\w+) (\d\d)", done.out)
        assert heads == [("CPU", "00"), ("GPU", "00"), ("DMA", "00")]

    def test_size_0_is_a_range(self, bench):
        done = bench("cmdline", "0", "1 1 G0->D0->G1", NUM_ITERATIONS=1)
        sizes = [int(size) for size in re.findall(r"Transfer 0.*?(\d+) bytes", done.out)]
        assert sizes == [1 << power for power in range(10, 30)]

    def test_samples_between_powers(self, bench):
        done = bench("cmdline", "0", "1 1 G0->D0->G1", NUM_ITERATIONS=1, SAMPLING_FACTOR=2)
        sizes = [int(size) for size in re.findall(r"Transfer 0.*?(\d+) bytes", done.out)]
        assert sizes[:4] == [1024, 1536, 2048, 3072]
        assert sizes[-1] == 1 << 29

    def test_remote_reads_are_by_the_destination(self, bench):
        done = bench("p2p", "16M", USE_REMOTE_READ=1, P2P_MODE=1, NUM_CPU_DEVICES=1)
        assert "SRC\\EXE+DST" in done.out
        row = re.search(r"CPU 00  -> +[\d.]+ +([\d.]+) +([\d.]+)$", done.out, re.MULTILINE)
        assert min(map(float, row.groups())) > 50, "GPUs pull what the CPU cannot push"
        assert "Bidirectional" not in done.out

    def test_write_only_copies_have_no_source(self, bench):
        done = bench("a2a", "16M", A2A_MODE=2, SHOW_DETAILS=1, A2A_LOCAL=1)
        assert "N -> G0:8 -> G0" in done.out

    def test_variables_without_meaning_are_named(self, bench):
        done = bench("cmdline", "4M", "1 4 F0->G0->B0", GFX_UNROLL=8, USE_SINGLE_STREAM=1)
        assert done.code == 0
        for said in (
            "SIMULATED riscv-2gpu",
            "GFX_UNROLL has no meaning here",
            "USE_SINGLE_STREAM has no meaning here",
            "F is measured as G",
            "B is measured as C",
            "SubExecutors has no effect on backend sim",
        ):
            assert said in done.err

    def test_a_preset_takes_no_further_words(self, bench):
        done = bench("a2a", "4M", "8")
        assert done.code == 0
        assert "'8' has no effect: variables set presets" in done.err

    def test_sources_hold_the_pattern(self, bench):
        assert bench("cmdline", "4M", "1 1 G0->D0->G1", FILL_PATTERN="DEADBEEF").code == 0
        common = Common.read(Variables({"FILL_PATTERN": "DEADBEEF"}))
        assert common.pattern == 0xDEADBEEFDEADBEEF

    def test_negative_iterations_are_seconds(self):
        settings = Common.read(Variables({"NUM_ITERATIONS": "-3"})).settings(None, 4)
        assert (settings.samples, settings.max_time, settings.precision) == (None, 3.0, 0.0)

    def test_a_host_alone(self, bench):
        done = bench("cmdline", "1M", "1 1 C0->C0->C0", on=Where("host"), NUM_ITERATIONS=2)
        assert done.code == 0
        assert "C0 -> C0:1 -> C0" in read_transfers(done.out)


class TestTrouble:
    def test_lines_that_are_not_measured_keep_their_numbers(self, bench):
        """As in the tool's own example.cfg, which ends with a broadcast."""
        Path("tests.cfg").write_text("1 16 (G0->G0->G0G1)\n1 1 (G0->D0->G1)\n")
        done = bench("tests.cfg", "1M")
        assert done.code == 0
        assert re.findall(r"^Test (\d):", done.out, re.MULTILINE) == ["2"]
        assert "line 1 is left out: G0G1: a transfer has one source and one" in done.err

    def test_a_file_of_nothing_else_is_refused(self, bench):
        Path("tests.cfg").write_text("1 1 (G0->I0->G1)\n")
        done = bench("tests.cfg", "1M")
        assert (done.code, done.out) == (1, "")
        assert "no test" in done.err

    @pytest.mark.parametrize(
        ("arguments", "variables", "says"),
        [
            (["sweep"], {}, "preset sweep: not measured here"),
            (["healthcheck"], {}, "preset healthcheck: not measured here: it knows the limits"),
            (["nicp2p"], {}, "NIC executors are not there yet"),
            (["schmoo"], {}, "preset schmoo: not measured here: it sweeps"),
            (["missing.cfg"], {}, "cannot read missing.cfg: No such file"),
            (["p2p", "3"], {}, "3 bytes: give a multiple of 4"),
            (["p2p", "0"], {}, "preset p2p: give a size"),
            (["p2p", "4M"], {"P2P_MODE": 3}, "P2P_MODE=3: give 0 to 2"),
            (["p2p", "4M"], {"NUM_GPU_DEVICES": 9}, "NUM_GPU_DEVICES=9: there are 2 GPUs"),
            (["p2p", "4M"], {"CPU_MEM_TYPE": 3}, "CPU_MEM_TYPE=3: give one of 0, 1, 2, 4"),
            (["p2p"], {"NUM_ITERATIONS": 0}, "NUM_ITERATIONS=0 would run without end"),
            (["p2p"], {"NUM_ITERATIONS": "x"}, "NUM_ITERATIONS=x: give a number"),
            (["p2p"], {"GFX_BLOCK_SIZE": 100}, "GFX_BLOCK_SIZE=100: give a multiple of 64"),
            (["p2p"], {"FILL_PATTERN": "ABC"}, "FILL_PATTERN=ABC: give 2, 4, 8 or 16"),
            (["a2a"], {"A2A_MODE": "2:1"}, "A2A_MODE=2:1: give a number"),
            (["a2a"], {"USE_DMA_EXEC": 1, "A2A_MODE": 1}, "USE_DMA_EXEC=1 copies"),
            (["a2a"], {"NUM_QUEUE_PAIRS": 1}, "NIC executors are not measured"),
            (["one2all"], {"EXE_INDEX": 2}, "EXE_INDEX=2: GPUs are 0 to 1"),
            (["one2all"], {"SWEEP_EXE": "C"}, "SWEEP_EXE=C: give G or D"),
            (["cmdline", "4M"], {}, "no test: write one"),
            (["cmdline", "4M", "1 4 G0->G0->G7"], {}, "no GPU 7: there are 0 to 1"),
            (["cmdline", "4M", "1 4 C1->G0->G0"], {}, "no CPU 1: there are 0 to 0"),
            (["cmdline", "4M", "2 0 G0->G0->G1 G0->D0->G1"], {}, "only a GPU kernel's number"),
            (["cmdline", "4M", "-2 (G0 G0 G1 0 0) (G0 G0 G1 1 0)"], {}, "are for all transfers"),
        ],
    )
    def test_what_is_wrong_is_said_in_one_line(self, bench, arguments, variables, says):
        done = bench(*arguments, **variables)
        assert done.code == 1
        said = [line for line in done.err.splitlines() if not line.startswith("SIMULATED")]
        assert len(said) == 1
        assert says in said[0]

    def test_a_preset_needs_two_gpus(self, bench):
        assert "needs two GPUs" in bench("a2a", "4M", on=where(ONE_DEVICE)).err

    def test_a_wrong_byte_is_no_figure(self, bench):
        done = bench("cmdline", "4M", "1 1 G0->D0->G1", on=where("riscv-2gpu", "flip sim:1"))
        assert done.code == 1
        assert "N/A GB/s" in done.out
        assert "sim:1 is wrong at byte 0" in done.err

    def test_an_engine_that_owns_neither_end_is_skipped_with_the_reason(self, bench):
        done = bench("cmdline", "4M", "1 1 G0->D1->C0")
        assert done.code == 4
        assert "sim:1 holds neither end" in done.err

    def test_after_ctrl_c_the_rest_is_not_available(self, bench, monkeypatch):
        monkeypatch.setattr(copy_cells, "measure", interrupted_after(0))
        done = bench("p2p", "4M", P2P_MODE=1)
        assert done.code == 130
        assert "GPU 01  ->       N/A" in done.out


class TestKernels:
    """SubExecutors of a GPU are the blocks of its kernel, where a backend takes them (cuda)."""

    @pytest.fixture
    def shapes(self, bench, monkeypatch):
        """The blocks and threads of each session in which the lines of a file are measured."""

        def of(*lines, **variables):
            found = []

            def recording(where, settings, **more):
                found.append((settings.engines.blocks, settings.engines.threads))
                return base.opened(where, settings, **more)

            monkeypatch.setattr(transferbench, "opened", recording)
            Path("tests.cfg").write_text("\n".join(lines))
            assert bench("tests.cfg", "1M", **variables).code == 0
            return found

        return of

    def test_each_number_opens_the_machine_once(self, shapes):
        lines = "1 4 (G0->G0->G1)", "1 1 (G0->D0->G1)", "1 4 (G1->G1->G0)", "1 8 (G0->G0->G1)"
        assert shapes(*lines) == [(4, 256), (8, 256)]

    def test_their_threads(self, shapes):
        assert shapes("1 4 (G0->G0->G1)", GFX_BLOCK_SIZE=512) == [(4, 512)]

    def test_0_and_several_numbers_leave_it_to_the_backend(self, shapes):
        assert shapes("1 0 (G0->G0->G1)") == [(None, None)]
        assert shapes("-2 (G0 G0 G1 4 0) (G1 G1 G0 8 0)") == [(None, None)]

    def test_copy_engines_and_threads_have_none(self, shapes):
        assert shapes("1 1 (G0->D0->G1)", "1 4 (C0->C0->C0)") == [(None, None)]
