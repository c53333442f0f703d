"""The comparisons of copies by UCX: the plain program, and what is made of the rates."""

import shutil

import pytest

import ucx_gpus
import ucx_programs
from ucx_programs import Failed

needs_wheel = pytest.mark.skipif(
    ucx_programs.libucx() is None or shutil.which("gcc") is None, reason="no gcc, or no libucx"
)


@needs_wheel
@pytest.mark.parametrize("direction", ["put", "get"])
def test_the_plain_program_moves_bytes_and_checks_them(tmp_path, direction):
    program = ucx_programs.compiled(tmp_path)
    shared = {"UCX_TLS": "posix,sysv,cma,self"}
    assert ucx_programs.plain(program, "huge", 1 << 16, 4, 0.0, shared, direction) > 0


def test_a_program_that_fails_or_hangs_is_named_with_its_words():
    failing = ["sh", "-c", "echo why >&2; exit 3"]
    with pytest.raises(Failed, match=r"(?s)exit codes \[3\].why"):
        ucx_programs.together([failing], [{}])
    with pytest.raises(Failed, match=r"sleep 60\nstill ran after 0 s"):
        ucx_programs.together([["sleep", "60"]], [{}], 0.1)


@pytest.mark.parametrize(
    ("theirs", "good"), [([1.0, 1.0, 9.0], True), ([1.1, 1.1, 1.1], False)], ids=str
)
def test_the_median_of_neighbours_ratios_has_to_be_within_the_bar(theirs, good, capsys):
    rates = {"linkgauge": [1.0, 1.02, 1.0], "ucx_perftest": theirs}
    assert ucx_gpus.report(rates) is good
    assert ("MISSED" in capsys.readouterr().out) is not good


def test_linkgauge_alone_shows_nothing():
    assert not ucx_gpus.report({"linkgauge": [1.0]})


def test_what_fails_drops_out_and_counts(monkeypatch):
    def fails():
        raise Failed("gone")

    monkeypatch.setattr(ucx_gpus.ucx_programs, "linkgauge", lambda *_, **__: 1.0)
    runs = {"linkgauge": lambda: 1.0, "ucx_perftest": fails, "plain program": lambda: 2.0}
    rates, broken = ucx_gpus.alternate(runs, 0.0, "cuda:0@0 -> cuda:1@1 by ucx")
    assert broken
    assert {name: len(own) for name, own in rates.items()} == {"linkgauge": 3, "plain program": 3}
