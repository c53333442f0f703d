"""contrib/linkgauge.rules.yml: promtool finds no fault, each alert fires when it should and not
before, and asks for metrics that there are."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from exporter_kit import PATIENT, families, nvml, page, program
from exporter_kit import RESULTS as SHOWN

ROOT = Path(__file__).parents[2]
RULES = ROOT / "contrib" / "linkgauge.rules.yml"
TESTS = sorted(Path(__file__).parent.glob("rules*_test.yml"))
ALERTS = [
    rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]
]


def promtool(*arguments):
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], cwd=ROOT, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_promtool_finds_no_fault():
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert (code, "SUCCESS" in said) == (0, True), said


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should(path):
    code, said = promtool("test", "rules", path)
    assert code == 0, said


def test_each_alert_has_a_case_and_an_entry_in_the_docs():
    tests = "".join(path.read_text("utf-8") for path in TESTS)
    page = (ROOT / "docs" / "exporter.md").read_text("utf-8")
    for rule in ALERTS:
        assert f'alertname="{rule["alert"]}"' in tests
        assert f"`{rule['alert']}`" in page


def test_alerts_ask_for_metrics_that_there_are():
    with nvml():
        found = families(page(SHOWN).text(PATIENT)).values()
    names = {sample.name for family in found for sample in family.samples}
    asked = {name for rule in ALERTS for name in re.findall(r"linkgauge_\w+", rule["expr"])}
    assert asked <= names


def test_each_alert_says_what_is_wrong_and_where():
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert re.search(r"\$labels\.(host|instance)", rule["annotations"]["summary"])
        assert rule["annotations"]["description"].strip()
