"""The catalogue of checks is that of the code: no check without an entry, no entry without one."""

import ast
import json
import os
from pathlib import Path
from typing import get_args

import msgspec

from command_kit import called
from linkgauge.judge.doctor.catalogue import catalogue, checks
from linkgauge.report.render.markdown import as_markdown
from linkgauge.report.sections.catalog import check_blocks
from linkgauge.rooms.check.health import Reason

HERE = Path(__file__).parents[2]
PAGE = HERE / "docs" / "checks.md"
HEAD = """# The catalogue of checks

Each check of [doctor](doctor.md), of a run's findings and of [check](check.md) has an id that
stays, so that [waivers](waivers.md), tickets and alerts can name it. This page is made from the
code; `linkgauge doctor --checks --json` prints the same for programs
([schema](checks.schema.json)). Below are the tests of NVIDIA's and Azure's tools, each with the
checks that find the same; `none` says what has no counterpart. Checks of a virtual machine's
definition are those of [vm](vm.md), those of other tools' texts are those of [judge](judge.md).
"""


def emitted():
    """The ids and severities that the doctor's code writes as literals."""
    for path in (HERE / "src/linkgauge/judge").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Finding":
                check, severity = call.args[:2]
                for word in ast.walk(severity):
                    if isinstance(check, ast.Constant) and isinstance(word, ast.Constant):
                        yield check.value, word.value


def test_each_check_of_the_code_has_an_entry_with_its_severities():
    known = {one.id: one.severity for one in checks() if one.of == "doctor"}
    found = set(emitted())
    assert len({check for check, _ in found}) > 40
    assert not [(check, severity) for check, severity in found if severity not in known[check]]
    literals = {
        node.value for path in (HERE / "src/linkgauge/judge").rglob("*.py")
        if path.name != "catalogue.py"
        for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)
    }  # fmt: skip
    assert known.keys() - literals <= {"link-speed", "link-width"}


def test_reasons_of_check_are_those_of_the_code():
    reasons = {one.id for one in checks() if one.of == "check"}
    assert reasons == {*get_args(Reason)} - {"LinksHealthy"}


def test_ids_are_unique_and_counterparts_name_checks_or_say_why_not():
    made = catalogue()
    ids = [one.id for one in made.checks]
    assert len(ids) == len({*ids})
    for one in made.counterparts:
        assert {*one.checks} <= {*ids}
        assert one.checks or one.note.startswith(("none", "not seen"))
    assert len({one.tool for one in made.counterparts}) == 4


def test_the_document_and_the_page_are_the_catalogue():
    shown = json.loads(called("doctor", "--checks", "--json").stdout)
    assert shown["schema"] == "linkgauge.checks/1"
    assert msgspec.convert(shown, type(catalogue())) == catalogue()
    _, _, body = as_markdown("", check_blocks(catalogue())).partition("\n")
    made = f"{HEAD}{body}"
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(made)
    assert PAGE.read_text() == made
