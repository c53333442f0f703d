"""`linkgauge as TransferBench` prints what a reader of TransferBench's output finds."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat_kit import MadeUp, rated, spoken

ONE_COPY = "'1 1 G0->D0->G1'"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIDE_ENV", "1")


def bench(words, on="riscv-2gpu", **more):
    return spoken("TransferBench", words, on=on, **more)


@pytest.mark.parametrize(
    ("factor", "sizes"),
    [(1, [1 << power for power in range(10, 30)]), (2, [1024, 1536, 2048, 3072])],
)
def test_size_0_is_a_range(factor, sizes):
    done = bench(f"cmdline 0 {ONE_COPY}", NUM_ITERATIONS=1, SAMPLING_FACTOR=factor)
    found = [int(size) for size in re.findall(r"Transfer 0.*?(\d+) bytes", done.stdout)]
    assert found[: len(sizes)] == sizes
    assert found[-1] == 1 << 29


@pytest.mark.parametrize(
    ("words", "variables", "says"),
    [
        ("one2all 16M", {"SWEEP_EXE": "D"}, "GPU"),
        ("a2a 16M", {"A2A_MODE": 2, "SHOW_DETAILS": 1, "A2A_LOCAL": 1}, "N -> G0:8 -> G0"),
        ("a2a 4M 8", {}, "'8' has no effect: variables set presets"),
        ("cmdline 4M '1 4 F0->G0->B0'", {"GFX_UNROLL": 8}, "GFX_UNROLL has no meaning here"),
        ("cmdline 4M '1 4 F0->G0->B0'", {}, "F is measured as G"),
        ("cmdline 4M '1 4 F0->G0->B0'", {}, "B is measured as C"),
        ("cmdline 4M '1 4 F0->G0->B0'", {}, "SubExecutors has no effect on backend sim"),
        ("", {}, "p2p - Peer-to-peer"),
        ("", {}, "2 GPU device(s)"),
    ],
)
def test_presets_and_variables(words, variables, says):
    done = bench(words, **variables)
    assert done.returncode == 0
    assert says in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variables", "name", "value"),
    [
        ({"FILL_PATTERN": "DEADBEEF"}, "pattern", 0xDEADBEEFDEADBEEF),
        ({"NUM_ITERATIONS": "-3"}, "max_time", 3.0),
    ],
)
def test_variables_reach_the_settings(monkeypatch, variables, name, value):
    made_up = MadeUp(rated())
    made_up.install(monkeypatch)
    assert bench(f"cmdline 4M {ONE_COPY}", **variables).returncode == 0
    settings = made_up.settings[0]
    assert getattr(settings, name, getattr(settings.engines, name, None)) == value


@pytest.mark.parametrize(
    ("lines", "variables", "shapes"),
    [
        (["1 4 (G0->G0->G1)", "1 1 (G0->D0->G1)", "1 4 (G1->G1->G0)", "1 8 (G0->G0->G1)"], {},
         {(4, 256), (8, 256)}),
        (["1 4 (G0->G0->G1)"], {"GFX_BLOCK_SIZE": 512}, {(4, 512)}),
        (["1 0 (G0->G0->G1)"], {}, {(None, None)}),
        (["-2 (G0 G0 G1 4 0) (G1 G1 G0 8 0)"], {}, {(None, None)}),
        (["1 1 (G0->D0->G1)", "1 4 (C0->C0->C0)"], {}, {(None, None)}),
    ],
)  # fmt: skip
def test_sub_executors_of_a_gpu_are_the_blocks_of_its_kernel(monkeypatch, lines, variables, shapes):
    """0 and several numbers leave it to the backend; copy engines and threads have none."""
    made_up = MadeUp(rated())
    made_up.install(monkeypatch)
    Path("tests.cfg").write_text("\n".join(lines))
    assert bench("tests.cfg 1M", **variables).returncode == 0
    found = {(one.engines.blocks, one.engines.threads) for one in made_up.settings}
    assert found == shapes


def test_lines_that_are_not_measured_keep_their_numbers():
    """As in the tool's own example.cfg, which ends with a broadcast."""
    Path("tests.cfg").write_text("1 16 (G0->G0->G0G1)\n1 1 (G0->D0->G1)\n")
    done = bench("tests.cfg 1M")
    assert done.returncode == 0
    assert re.findall(r"^Test (\d):", done.stdout, re.MULTILINE) == ["2"]
    assert "line 1 is left out: G0G1: a transfer has one source and one" in done.stderr
    Path("tests.cfg").write_text("1 1 (G0->I0->G1)\n")
    done = bench("tests.cfg 1M")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no test" in done.stderr


@pytest.mark.parametrize(
    ("words", "fault", "code", "says"),
    [
        (f"cmdline 4M {ONE_COPY}", "flip sim:1", 1, "sim:1 is wrong at byte 0"),
        ("cmdline 4M '1 1 G0->D1->C0'", "flip sim:1 cells=9", 4, "sim:1 holds neither end"),
    ],
)
def test_what_cannot_be_measured_is_no_figure(words, fault, code, says):
    done = bench(words, faults=[fault])
    assert done.returncode == code
    assert "N/A" in done.stdout
    assert says in done.stderr


def test_after_ctrl_c_the_rest_is_not_available(monkeypatch):
    MadeUp(rated(), cells=0).install(monkeypatch)
    done = bench("p2p 4M", P2P_MODE=1)
    assert done.returncode == 130
    assert "GPU 01  ->       N/A" in done.stdout


def asked_of(lines, monkeypatch, on="ppu-8"):
    """What is measured of a file's lines: paths by test, as the output names them, with sizes."""
    MadeUp(rated()).install(monkeypatch)
    Path("tests.cfg").write_text("\n".join(lines))
    done = bench("tests.cfg 1M", on=on)
    assert done.returncode in (0, 1), done.stderr
    blocks = re.split(r"^Test \d+:.*$", done.stdout, flags=re.MULTILINE)[1:]
    line = r"Transfer \d+ *│.*?│.*?│ *(\d+) bytes *│ *(.+?) *$"
    return [re.findall(line, block, re.MULTILINE) for block in blocks]


MIB = str(1 << 20)


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("1 4 (G0->G0->G1)", [(MIB, "G0 -> G0:4 -> G1")]),
        ("1 4 (C0->G2->G0)", [(MIB, "C0 -> G2:4 -> G0")]),
        ("2 4 G0->G0->G1 G1->G1->G0", [(MIB, "G0 -> G0:4 -> G1"), (MIB, "G1 -> G1:4 -> G0")]),
        ("2 4 (G0 G0 G1) (G1 G1 G0)", [(MIB, "G0 -> G0:4 -> G1"), (MIB, "G1 -> G1:4 -> G0")]),
        ("-2 (G0 G0 G1 4 1M) (G1 G1 G0 2 2M)",
         [(MIB, "G0 -> G0:4 -> G1"), (str(2 << 20), "G1 -> G1:2 -> G0")]),
        ("-1 (G0->D0->G1 1 0)", [(MIB, "G0 -> D0:1 -> G1")]),
        ("1 32 (N0->G0->G0)", [(MIB, "N -> G0:32 -> G0")]),
        ("1 4 n g0 f1", [(MIB, "N -> G0:4 -> F1")]),
    ],
)  # fmt: skip
def test_the_pages_examples_are_read(line, test, monkeypatch):
    assert asked_of(["", "# a comment", "any words", line], monkeypatch) == [test]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0 4 (G0->G0->G1)", "0 transfers: give 1 to"),
        ("1x 4 (G0->G0->G1)", "'1x' is not a number of transfers"),
        ("1", "the number of SubExecutors is missing"),
        ("1 x (G0->G0->G1)", "'x' is not a number of SubExecutors"),
        ("1 4 (G0->G0)", "the destination of transfer 0 is missing"),
        ("1 4 (G0->G0->G1) G0", "'G0' follows the last of 1 transfers"),
        ("-1 (G0->G0->G1 4 3)", "3 bytes: give a multiple of 4"),
        ("-1 (G0->G0->G1 4 1T)", "'1T' is not a number of bytes"),
        ("1 4 (X0->G0->G1)", "'X0' is not a memory"),
        ("1 4 (G0->F0->G1)", "'F0' is not an executor"),
        ("1 4 (N0->G0->N0)", "a source or a destination"),
        ("1 1 (N0->D0->G0)", "D0 copies from one memory to another"),
        ("1 0 (C0->C0->C0)", "only a GPU kernel's number is left to linkgauge"),
        ("1 1 (G0->N0.1->G1)", "N0.1: NIC executors are not measured"),
        ("1 1 (G0->D0.1->G1)", "D0.1: parts of an executor cannot be chosen"),
        ("1 4 (U0->G0->G0)", "U0: uncached GPU memory is not measured"),
        ("1 4 (R0G0->G0->G1)", "R0G0: ranks are not measured"),
        ("1 4 (K0->G0->G1)", "K0: uncached host memory"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(line, says):
    done = bench(f"cmdline 1M '{line}'")
    assert (done.returncode > 0, done.stdout) == (True, "")
    assert len([one for one in done.stderr.splitlines() if says in one]) == 1


ENDS = st.builds("{}{}".format, st.sampled_from("CGF"), st.just(0)) | st.just("N")
TRANSFERS = st.tuples(
    ENDS, st.sampled_from(["C0", "G0", "G1"]), ENDS, st.integers(1, 999), st.integers(1, 1 << 20)
).filter(lambda one: {one[0], one[2]} != {"N"})


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TRANSFERS, min_size=1, max_size=3), st.booleans())
def test_what_is_written_is_read(monkeypatch, transfers, plain):
    each = [f"({a}->{by}->{b} {subs} {4 * quarter})" for a, by, b, subs, quarter in transfers]
    line = f"-{len(each)} {' '.join(each)}"
    if plain:
        line = line.replace("->", " ").replace("(", "").replace(")", "")
    ((*found,),) = asked_of([line], monkeypatch, on="riscv-2gpu")
    assert sorted(found) == sorted(
        (str(4 * quarter), f"{a} -> {by}:{subs} -> {b}") for a, by, b, subs, quarter in transfers
    )


WORDS = st.lists(
    st.sampled_from(["1", "-1", "2", "4", "G0", "C0", "N0", "D1", "->", "(", ")", "1M", "U0"]),
    max_size=12,
).map(" ".join)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("CGDNIRUKMx0129-> ().#\t", max_size=24) | WORDS)
def test_any_line_is_read_or_refused(monkeypatch, line):
    MadeUp(rated()).install(monkeypatch)
    Path("tests.cfg").write_text(f"{line}\n")
    done = bench("tests.cfg 1M")
    assert done.returncode in (0, 1, 2)
    assert done.returncode == 0 or done.stderr
