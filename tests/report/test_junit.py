"""JUnit XML is what Jenkins' schema asks for (xunit-plugin, junit-10.xsd), whoever writes it."""

import gzip
import re
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from command_kit import called

DATA = Path(__file__).parents[1] / "data"


def rule(must="", may="", inside=""):
    """What the schema says of an element: the attributes that it must and may have, and which
    elements may be in it, in any order and number."""
    return tuple(frozenset(names.split()) for names in (must, may, inside))


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
RUNS = sorted((DATA / "made").glob("*.json"))


@pytest.fixture(params=[*RUNS, "gate"], ids=lambda given: Path(given).stem)
def tree(request, tmp_path):
    """What `export` writes of each run, and `gate` of two."""
    if request.param != "gate":
        return fromstring(called("export", request.param, "--junit").stdout)
    for name in ("01", "busy-card-1"):
        packed = (DATA / "runs-2xH100" / f"{name}.json.gz").read_bytes()
        (tmp_path / f"{name}.json").write_bytes(gzip.decompress(packed))
    sides = "--baseline", tmp_path / "01.json", "--current", tmp_path / "busy-card-1.json"
    return fromstring(called("gate", *sides, "--force", "--junit").stdout)


def test_it_is_valid_for_jenkins_and_has_times(tree):
    assert tree.tag == "testsuites"
    for element in tree.iter():
        must, may, inside = RULES[element.tag]
        assert must <= set(element.attrib) <= must | may, element.tag
        assert {child.tag for child in element} <= inside
        assert SECONDS.fullmatch(element.get("time", "")), element.tag
        if inside:
            assert not (element.text or "").strip()
    for element in (tree, *tree):
        cases = [float(case.get("time")) for case in element.iter("testcase")]
        assert float(element.get("time")) == pytest.approx(sum(cases), abs=0.01)
        assert int(element.get("tests")) == len(cases)
    assert sum(int(suite.get("skipped")) for suite in tree) == len([*tree.iter("skipped")])
