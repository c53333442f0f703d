"""JUnit XML is what Jenkins' schema asks for (xunit-plugin, junit-10.xsd), whoever writes it."""

import re
from typing import NamedTuple
from xml.etree.ElementTree import fromstring

import pytest
from msgspec.structs import replace

from linkgauge.judge.outcome import Outcome
from linkgauge.report.formats import formats
from linkgauge.report.rows import JudgedRun, cell_rows
from report.samples import RUN
from report.test_exports import FINDINGS, HOSTILE, hostile
from report.test_gate_text import GATE


class Rule(NamedTuple):
    """What the schema says of an element: the attributes that it must and may have, and which
    elements may be in it, in any order and number."""

    must: frozenset
    may: frozenset
    inside: frozenset = frozenset()


def rule(must="", may="", inside=""):
    return Rule(*(frozenset(names.split()) for names in (must, may, inside)))


RULES = {
    "testsuites": rule("", "name time tests failures errors", "testsuite"),
    "testsuite": rule(
        "name tests failures errors",
        "group time skipped timestamp hostname id package file log url",
        "testsuite properties testcase system-out system-err",
    ),
    "testcase": rule("name", "time classname group", "skipped error failure system-out system-err"),
    "failure": rule("", "type message"),
    "error": rule("", "type message"),
    "skipped": rule("", "type message"),
    "system-out": rule(),
    "system-err": rule(),
}
SECONDS = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")
"""The schema's type of a suite's time."""
WRITTEN = {
    "run": ("summary", JudgedRun(RUN, Outcome(3, FINDINGS))),
    **{
        f"hostile {n}": ("summary", JudgedRun(hostile(text), Outcome(3, FINDINGS)))
        for n, text in enumerate(HOSTILE)
    },
    "gate": ("gate", GATE),
}


def written(name):
    kind, value = WRITTEN[name]
    return fromstring(formats()["junit"].render(kind, value))


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_valid_for_jenkins(name):
    tree = written(name)
    assert tree.tag == "testsuites"
    for element in tree.iter():
        own = RULES[element.tag]
        assert own.must <= set(element.attrib) <= own.must | own.may, element.tag
        assert {child.tag for child in element} <= own.inside
        assert SECONDS.fullmatch(element.get("time", "")), element.tag
        if own.inside:
            assert not (element.text or "").strip()


@pytest.mark.parametrize("name", WRITTEN)
def test_every_case_and_suite_has_its_time(name):
    tree = written(name)
    for element in (tree, *tree):
        cases = [float(case.get("time")) for case in element.iter("testcase")]
        assert float(element.get("time")) == pytest.approx(sum(cases), abs=0.01)
        assert int(element.get("tests")) == len(cases)
    assert sum(int(suite.get("skipped")) for suite in tree) == len([*tree.iter("skipped")])


def test_the_time_of_a_cell_is_how_long_it_was_sampled():
    first = RUN.results[0]
    timed = [replace(cell, seconds=1.25 * (n + 1)) for n, cell in enumerate(first.cells)]
    run = replace(RUN, results=(replace(first, cells=tuple(timed)), *RUN.results[1:]))
    tree = fromstring(formats()["junit"].render("summary", JudgedRun(run, Outcome(0))))
    assert [case.get("time") for case in tree[0]] == ["1.250", "2.500"]
    assert len([*tree.iter("testcase")]) == len([*cell_rows(run)])


def test_these_are_all_writers():
    assert formats()["junit"].renderers.keys() == {kind for kind, _ in WRITTEN.values()}
