"""The sanitizer's run reaches every kernel, and is clean only if all of it is."""

import ctypes
import sys
import textwrap

import pytest

import sanitize
import sanitize_cases
from cuda_kit import FakeCompiler, gpu
from linkgauge.backends.cuda import flags, group, load, matmul, memory, queue, work

EVERY = [
    "arrays.arrays", "bulk.copy", "bulk_chase.chase", "chase.chase", "chase.link",
    "compute.multiply_add", "content.count_wrong", "content.fill", "copy.copy", "flags.answer",
    "flags.bounce", "flags.nothing", "gate.gate", "load.load",
    "matmul.compare", "matmul.draw", "matmul.fold", "pattern.compare", "pattern.fill",
    "pieces.copy", "stream.read", "stream.write",
]  # fmt: skip
RAN = "".join(f"ran {name} 2 30\n" for name in EVERY)
CLEAN = "========= ERROR SUMMARY: 0 errors\n"
HAZARD = "========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)\n"


def test_every_entry_point_is_known():
    assert sanitize.entry_points() == EVERY


def test_every_kernel_is_launched(monkeypatch):
    monkeypatch.setattr(work, "IN_KERNEL_LOOPS", work.IN_KERNEL_LOOPS)
    monkeypatch.setattr(group, "GATE_SECONDS", group.GATE_SECONDS)
    monkeypatch.setattr(group.StartGate, "shut", group.StartGate.shut)
    for name in ("BlasHandle", "open_cublas"):
        monkeypatch.setattr(matmul, name, getattr(matmul, name))
    monkeypatch.setattr(memory, "read_word", lambda *arguments: (1 << 64) - 1)
    for module in (flags, load):
        monkeypatch.setattr(module, "LIMIT", module.LIMIT)
    nothing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
    address = ctypes.cast(nothing, ctypes.c_void_p).value
    monkeypatch.setattr(queue, "address_of", lambda name: address)
    driver = sanitize.Recorder(gpu())
    sanitize.run_kernels(driver, FakeCompiler())
    ran = driver.ran()
    assert list(ran) == EVERY
    assert ran["arrays.arrays"][0] == 2 * 6
    assert {ran[f"matmul.{name}"][0] for name in ("draw", "fold", "compare")} == {3}
    # Each copies, and with its progress recorded.
    assert (ran["bulk.copy"][0], ran["pieces.copy"][0]) == (6, 3)
    assert ran["copy.copy"][0] >= 4 * len(sanitize_cases.PLAIN)


@pytest.mark.parametrize(
    ("status", "output", "problems"),
    [
        (0, RAN + CLEAN, []),
        (0, RAN.replace("bulk.copy", "") + CLEAN, ["bulk.copy did not run"]),
        (86, RAN + HAZARD, ["3 hazard(s) found"]),
        (1, RAN + "wrong: 17 bytes\n" + CLEAN, ["wrong: 17 bytes"]),
        (0, RAN, ["the tool gave no summary"]),
        (9, RAN + CLEAN, ["exit status 9"]),
        (None, RAN + CLEAN, ["exit status None"]),
    ],
)
def test_what_is_not_clean_is_told(status, output, problems):
    assert sanitize.problems_of(status, output) == problems


@pytest.mark.parametrize(("summary", "code"), [(CLEAN, 0), (HAZARD, 1), (None, 3)])
def test_both_tools_are_run(tmp_path, monkeypatch, capsys, summary, code):
    tool = tmp_path / "compute-sanitizer"
    if summary is not None:
        body = f"import sys\nprint({RAN + summary!r})\nassert sys.argv[-1] == 'kernels'\n"
        tool.write_text(f"#!{sys.executable}\n" + textwrap.dedent(body))
        tool.chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["sanitize", "--sanitizer", str(tool)])
    assert sanitize.main() == code
    said = capsys.readouterr().out
    if code != 3:
        assert all(f"{name}: " in said for name in sanitize.TOOLS)
