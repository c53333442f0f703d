"""Faults read and print, and errors point at the fault."""

import re
import signal
from decimal import Decimal
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.backends.sim.faults import (
    FAULTS,
    PARAMETERS,
    Crash,
    Drift,
    Flip,
    Hang,
    Lost,
    NoMem,
    OrdinalRange,
    Slow,
    Stall,
    parameters,
    parse_fault,
)
from linkgauge.model.errors import NotationError, Phase

PHASES = get_args(Phase)[1:]  # what is planned only is not struck

targets = st.sampled_from(["sim:0", "sim:71", "host:1", "sim:0-sim:1", "nvlink/3.a", "*"])
fractions = st.decimals("0.000001", "0.999999", places=6).map(float) | st.floats(1e-6, 1 - 1e-16)
ordinals = st.integers(0, 999_999_999)


@st.composite
def cells(draw):
    first, last = sorted((draw(ordinals), draw(ordinals)))
    return OrdinalRange(first, draw(st.sampled_from([None, first, last])))


VALUES = {
    "cells": cells(),
    "phase": st.sampled_from(PHASES),
    "rate": fractions,
    "per_cell": fractions | fractions.map(lambda value: -value),
    "sigma": fractions,
    "every": st.integers(1, 999_999_999),
    "for": st.integers(1, 10**15 - 1).map(lambda units: float(Decimal(units).scaleb(-9))),
    "offset": st.integers(0, 1 << 60),
    "bit": st.integers(0, 7),
    "signal": st.sampled_from([signal.SIGSEGV, signal.SIGKILL]),
}


@st.composite
def faults(draw):
    kind = draw(st.sampled_from(list(FAULTS.values())))
    values = {
        field.name: draw(VALUES[field.encode_name])
        for field in msgspec.structs.fields(kind)
        if field.encode_name in PARAMETERS and draw(st.booleans())
    }
    if kind is Lost and "cells" in values:
        values["cells"] = OrdinalRange(values["cells"].first, values["cells"].first)
    return kind(draw(targets), **values)


@given(faults())
def test_every_fault_is_read_back_as_it_was_printed(fault):
    assert parse_fault(str(fault)) == fault


NEAR_MISSES = st.text(alphabet="slowflipstrate=.%0123456789 -:*x\tfhang\u0663", max_size=50)


@given(st.text(max_size=50) | NEAR_MISSES | st.builds("slow * {}={}".format, targets, NEAR_MISSES))
def test_no_text_raises_anything_but_a_notation_error(text):
    try:
        fault = parse_fault(text)
    except NotationError as error:
        assert 0 <= error.position <= len(text)
        assert str(error).splitlines()[-1].endswith("^")
    else:
        assert parse_fault(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("slow sim:0-sim:1", Slow("sim:0-sim:1", rate=0.5)),
        ("slow sim:0 rate=25%", Slow("sim:0", rate=0.25)),
        (
            "  crash\tsim:3   signal=KILL cells=5 ",
            Crash("sim:3", OrdinalRange(5, 5), signal=signal.SIGKILL),
        ),
        ("hang * phase=warm-up cells=3..", Hang("*", OrdinalRange(3), "warm up")),
        ("flip sim:3 offset=4K bit=7 cells=0..9", Flip("sim:3", OrdinalRange(0, 9), 4096, 7)),
        ("flip sim:3 offset=0x10", Flip("sim:3", offset=16)),
        ("stall host:0 every=2 for=1.5", Stall("host:0", every=2, seconds=1.5)),
        ("drift sim:0 per_cell=0.2%", Drift("sim:0", per_cell=0.002)),
        ("drift sim:0 per_cell=-0.2%", Drift("sim:0", per_cell=-0.002)),
        ("nomem host:0", NoMem("host:0", phase="allocate")),
    ],
)
def test_what_is_written_is_what_is_meant(text, fault):
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "expected a fault: slow, "),
        ("slwo sim:0", 0, "unknown fault 'slwo', did you mean 'slow'?"),
        ("slow", 4, "the fault 'slow' needs a target"),
        ("slow rate=0.5", 5, "the fault 'slow' needs a target"),
        ("slow sim:0 rat=0.5", 11, "slow takes cells, rate, each as NAME=VALUE"),
        ("slow sim:0 0.5", 11, "slow takes cells, rate"),
        ("slow sim:0 signal=KILL", 11, "slow takes cells, rate"),
        ("slow sim:0 rate=2", 16, "must lie between 0 and 1"),
        ("slow sim:0 rate=", 16, "expected a fraction"),
        ("slow sim:0 rate=0.0000001%", 16, "less than 0.0001%"),
        ("slow sim:0 rate=0.5 rate=0.5", 20, "rate appears twice"),
        ("crash sim:0 signal=TERM", 19, "expected SEGV, KILL"),
        ("hang sim:0 phase=plan", 17, "expected allocate, warm-up, fill, measure, verify"),
        ("flip sim:0 bit=8", 15, "expected a bit, 0 to 7"),
        ("flip sim:0 offset=-1", 18, "negative"), ("stall sim:0 every=0", 18, "1 or more"),
        ("stall sim:0 for=0", 16, "expected seconds"),
        ("hang sim:0 cells=9..3", 17, "the last comes before the first"),
        ("hang sim:0 cells=-1", 17, "expected ordinals"),
        ("lost sim:0 cells=3..9", 17, "stays lost"),
    ],
)  # fmt: skip
def test_the_caret_stands_under_the_character_at_fault(text, position, problem):
    with pytest.raises(NotationError) as caught:
        parse_fault(text)
    assert caught.value.position == position
    assert problem in caught.value.problem


DOCS = (Path(__file__).parents[2] / "docs/faults.md").read_text("utf-8")


def test_the_page_tells_every_kind_with_its_defaults_and_its_examples_parse():
    for name, kind in FAULTS.items():
        (row,) = re.findall(rf"^\| `{name}` .*$", DOCS, re.MULTILINE)
        *_, told = row.strip("| ").split(" | ")
        own = {name: value for name, value in parameters(kind).items() if name != "cells"}
        own |= {"cells": "0"} if kind is Lost else {}
        assert dict(re.findall(r"`(\w+)=(\S+)`", told)) == own
    examples = re.findall(r"--fault '([a-z][^']+)'", DOCS) + re.findall(
        r"^  - (.+)$", DOCS, re.MULTILINE
    )
    assert len(examples) == 6
    for example in examples:
        parse_fault(example)
