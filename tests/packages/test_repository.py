"""What a repository offers beside its code: workflow, issue forms, units, citation, changelog."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import linkgauge

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
UNITS = sorted((ROOT / "contrib").glob("*.service"))
SCHEMAS = {
    ROOT / ".github/workflows/ci.yml": "github-workflows",
    ROOT / "CITATION.cff": "citation-file-format",
    ROOT / "contrib/github-action/action.yml": "github-actions",
    **dict.fromkeys(FORMS, "github-issue-forms"),
}


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_it_is_of_the_form_that_its_readers_take(path):
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{SCHEMAS[path]}",
         path], capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_no_fault_in_a_unit(path, tmp_path):
    if shutil.which("systemd-analyze") is None:
        if "systemd" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail("systemd-analyze is not installed")
        pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    unit = tmp_path / path.name
    started = re.sub(r"^(ExecStart=)\S+", r"\1/bin/true", path.read_text(), flags=re.MULTILINE)
    for text, faults in ((started, 0), (started.replace("\nUser=", "\nUsr="), 1)):
        unit.write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True,
                              check=False, timeout=60)  # fmt: skip
        said = [line for line in done.stderr.splitlines() if path.name in line]
        assert len(said) == faults, done.stderr


def test_the_workflow_runs_the_commands_that_the_readme_begins_with():
    readme = (ROOT / "README.md").read_text()
    typed = re.search(r"## Try it\n\n```sh\n(.*?)```", readme, re.DOTALL)[1]
    first, *others = (line.partition("#")[0].strip() for line in typed.splitlines())
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    ran = [step["run"] for step in workflow["jobs"]["readme"]["steps"] if "run" in step]
    assert ran[0] == first
    assert len(ran) == 2
    assert ran[1] in others


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issues_ask_for_a_capture_without_names(path):
    assert "linkgauge capture --anonymize" in path.read_text()


def test_every_place_that_must_state_the_version_states_this_one():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    packaged = re.match(r"linkgauge \((\S+)\)", (ROOT / "debian/changelog").read_text())[1]
    kubernetes = (ROOT / "contrib/kubernetes/base/kustomization.yaml").read_text()
    tagged = yaml.safe_load(kubernetes)["images"][0]["newTag"]
    assert {cited, packaged, tagged} == {linkgauge.__version__}


def test_the_changelog_tells_what_is_new_in_twenty_lines():
    (latest, *_) = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    head, _, detail = latest.partition("### In detail\n")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    headings = re.findall(r"^### (.*)$", head, re.MULTILINE)
    assert headings
    assert set(headings) <= kinds
    assert len(head.splitlines()) <= 21  # with the version's own
    assert detail.count("\n- ") > 10
