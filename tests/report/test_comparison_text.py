"""Configurations side by side, against golden files (UPDATE_GOLDEN=1 writes them anew)."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configurations_kit import THREE, cell, measured, result, run_of
from linkgauge.judge.configurations import compare
from linkgauge.report.comparison_text import (
    comparison_csv,
    comparison_document,
    comparison_lines,
    digits,
    percent,
)
from report.test_output import compare as compare_with_golden


def lines(*comparisons):
    return [line.plain for line in comparison_lines(comparisons)]


def test_three_labels_on_one_screen():
    shown = lines(compare("nvidia-h200", THREE))
    compare_with_golden("comparison.txt", "\n".join(shown) + "\n")
    assert len(shown) <= 30
    assert max(map(len, shown)) <= 100


def test_three_guests_of_one_host_fit_80_by_24():
    guests = [
        run_of(label, *measured(scale), started=f"2026-11-21T20:1{n}:00Z")
        for n, (label, scale) in enumerate((("pinned", 1), ("isolated", 1.01), ("free", 0.8)))
    ]
    shown = lines(compare("nvidia-h200", guests))
    assert len(shown) <= 24
    assert max(map(len, shown)) <= 80


def test_a_single_label_has_nothing_to_differ_from():
    shown = lines(compare("cpu", [run_of("default", *measured(devices=0))]))
    assert shown[0] == "cpu: 1 configuration"
    assert "H2D" not in "\n".join(shown)
    assert not any("(" in line or line.startswith("what differs") for line in shown)


def test_what_was_not_measured_is_a_dash():
    one = run_of("a", result("cpu_primes_single", cell("0", "1", 1500.0)))
    other = run_of("b", result("cpu_primes_all", cell("0", "8", 9000.0)))
    shown = lines(compare("cpu", [one, other]))
    assert [line.split() for line in shown if line.startswith(("a ", "b "))] == [
        ["a", "1500", "±0.5%", "-"],
        ["b", "-", "1125", "±0.5%"],
    ]


def test_a_long_label_is_cut_and_a_simulated_run_marked():
    run = run_of("x" * 60, *measured(), simulated=True)
    shown = lines(compare("cpu", [run]))
    assert shown[0].endswith("SIMULATED")
    assert max(map(len, shown)) <= 100


def test_several_accelerators_have_a_table_each():
    one, other = compare("a", THREE[:1]), compare("b", THREE[1:])
    shown = lines(one, other)
    assert [line for line in shown if ": 1 conf" in line or ": 2 conf" in line] == [
        "a: 1 configuration",
        "b: 2 configurations against host",
    ]


def test_documents_hold_every_figure():
    comparison = compare("nvidia-h200", THREE)
    rows = list(csv.DictReader(io.StringIO(comparison_csv([comparison]))))
    document = json.loads(comparison_document([comparison]))
    (read,) = document["comparisons"]
    figures = {
        (configuration["label"], one["name"]): figure["median"]
        for one in read["compared"]
        for configuration, figure in zip(read["configurations"], one["figures"], strict=True)
        if figure is not None
    }
    assert {(row["label"], row["figure"]): float(row["median"]) for row in rows} == figures
    assert {row["ratio"] for row in rows if row["label"] == "host"} == {""}


@given(st.floats(1e-9, 1e12))
def test_a_figure_keeps_four_digits(value):
    text = digits(value)
    assert float(text) == pytest.approx(value, rel=0.001)
    assert len(text) <= 13


@given(st.floats(0, 100))
def test_a_share_is_rounded_to_a_digit_or_two(share):
    assert float(percent(share)[:-1]) == pytest.approx(share * 100, rel=0.051, abs=0.051)
    assert len(percent(share)) <= 6
