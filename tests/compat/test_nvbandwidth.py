"""`linkgauge as nvbandwidth` is what scripts around nvbandwidth expect."""

import json
import re
from pathlib import Path
from statistics import fmean

import pytest

from compat_kit import MadeUp, document, rated, spoken
from nvbandwidth_reader import read_tests

REAL = json.loads((Path(__file__).parents[1] / "data/nvbandwidth-2xH200.json").read_text())
REAL = REAL["nvbandwidth"]
NAMES = [test["name"] for test in REAL["testcases"]]
QUICK = "-b 1 -i 2"


def nvbandwidth(words="", **more):
    return spoken("nvbandwidth", words, **more)


def test_json_is_laid_out_as_the_real_one_to_the_byte():
    def layout(text):
        """The text with its figures and names replaced; keys stay."""
        return re.sub(r'"[^"]*"(?!:)|[0-9.e+-]+(?=,?\n)', "#", text)

    real = (Path(__file__).parents[1] / "data/nvbandwidth-2xH200.json").read_text()
    assert layout(nvbandwidth("--emulate 0.8 -j -i 1", on="riscv-2gpu").stdout) == layout(real)


def test_json_figures_are_texts_of_six_digits_whose_sum_has_all():
    single, both, latency = document(nvbandwidth(f"{QUICK} -j -v -t 4 6 32"))["testcases"]
    for test, last in ((single, 8), (both, 8), (latency, 1)):
        texts = [text for row in test["bandwidth_matrix"] for text in row if text != "N/A"]
        assert all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) for text in texts)
        assert all(len(text.replace(".", "").lstrip("0")) <= 6 for text in texts)
        rows = test["bandwidth_matrix"][-last:]
        figures = [float(text) for row in rows for text in row if text != "N/A"]
        assert sum(figures) == pytest.approx(test["sum"], rel=1e-4)
        assert test["min"] == pytest.approx(min(figures), rel=1e-5)
        assert test["max"] == pytest.approx(max(figures), rel=1e-5)
        assert test["average"] == pytest.approx(fmean(figures), rel=1e-4)
    assert [row.index("N/A") for row in both["bandwidth_matrix"]] == [*range(8)] * 3


@pytest.mark.parametrize(
    ("words", "figures"),
    [
        ("", (512 << 20, 3, 16, True, True)),
        ("-b 64 -i 5 -s -d --loopCount 4", (64 << 20, 5, 4, False, False)),
        ("--bufferSize=64 --testSamples 5 -s true --disableAffinity true --loopCount=4",
         (64 << 20, 5, 4, False, False)),
        ("--buf 64 -i5 -sd --loop 4", (64 << 20, 5, 4, False, False)),
    ],
)  # fmt: skip
def test_settings_are_the_tools_never_the_tuned_ones(monkeypatch, words, figures):
    made_up = MadeUp(rated())
    made_up.install(monkeypatch)
    assert nvbandwidth(f"{words} -t 0").returncode == 0
    (used,) = made_up.settings
    engines = used.engines
    assert (*used.sizes, used.samples, used.loops, used.verify, engines.affinity) == figures
    assert (engines.tuned, engines.streams, engines.kernel) == (False, 1, None)
    assert (engines.blocks, engines.threads) == (None, None)


def test_wrong_bytes_are_an_error_and_cost_their_cell_only():
    fault = {"faults": ["flip sim:3 offset=54321"]}
    done = nvbandwidth(f"{QUICK} -t 0 1", **fault)
    assert done.returncode == 1
    first, _ = read_tests(done.stdout)
    assert first.tables[0].rows["0"][3] == "N/A"
    assert len(first.tables[0].figures()) == 7
    assert nvbandwidth(f"{QUICK} -t 0 1 -s", **fault).returncode == 0
    test, _ = document(nvbandwidth(f"-j {QUICK} -t 0 1", **fault))["testcases"]
    assert test["status"] == "Error"
    assert "wrong at byte 54321" in test["error"]
    assert test["bandwidth_matrix"][0][3] == "N/A"


@pytest.mark.parametrize("count", [0, 3])
def test_after_ctrl_c_what_was_measured_is_told(monkeypatch, count):
    MadeUp(rated(), cells=count).install(monkeypatch)
    done = nvbandwidth(f"-j {QUICK} -t 0 1")
    assert done.returncode == 130
    cut = document(done)["testcases"][:1]
    if count == 0:
        assert cut == []
        return
    assert (cut[0]["name"], cut[0]["status"]) == (NAMES[0], "Error")
    assert cut[0]["error"] == "interrupted after 3 cells"
    assert [figure != "N/A" for figure in cut[0]["bandwidth_matrix"][0]] == (
        [True] * 3 + [False] * 5
    )
