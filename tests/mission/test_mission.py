"""What the documents name that this program has to do is shown: mission.yml says by what."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml

from launch_kit import launch

ROOT = Path(__file__).parents[2]
TRANSCRIPTS = ROOT / "tests" / "transcripts"
TABLE = yaml.safe_load((Path(__file__).parent / "mission.yml").read_text("utf-8"))
DOCUMENTS = {
    "gc-hosttraffictest.txt", "nvlink-riscv-benchmark-suite.txt", "rblnBandwidthLatencyTest.txt",
    "sailbandwidth.txt", "vcpu-benchmark.txt",
}  # fmt: skip
GROUPS = [group for groups in TABLE.values() for group in groups]


def of_kind(name):
    return [group for group in GROUPS if name in group]


FIGURE = r"[0-9]+\.[0-9]+|[0-9]{6,}"
"""A number that is measured: with decimals, or of so many digits."""


def words(text):
    return " ".join(text.split())


def texts(group):
    """The document's words of each row."""
    rows = [*group.get("rows", ()), *group.get("figures", ())]
    return [words(row if isinstance(row, str) else row[0]) for row in rows]


def share(percent):
    return float(percent.removesuffix("%")) / 100


def holds(output, figures, within):
    """Whether a text has these words, each of their numbers nearly."""
    text = words(figures)
    between = [re.escape(part).replace("…", ".*?") for part in re.split(FIGURE, text)]
    found = re.search(f"({FIGURE})".join(between), output)
    assert found, figures
    expected = list(map(float, re.findall(FIGURE, text)))
    return list(map(float, found.groups())) == pytest.approx(expected, rel=within)


@cache
def printed(path):
    """What each command of a transcript prints, by the command."""
    _, *parts = re.split(r"^\$ ", path.read_text("utf-8"), flags=re.MULTILINE)
    found = {}
    for part in parts:
        command, _, output = part.replace("\\\n> ", "").partition("\n")
        found[words(command)] = words(re.sub(r"^[!?] ", "", output, flags=re.MULTILINE))
    return found


@cache
def named_in(path):
    """The names of tests in a file: functions, classes, and their methods, inherited ones too."""
    found = set()
    classes = {}
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            for base in node.bases:
                methods |= classes.get(ast.unparse(base), set())
            classes[node.name] = methods
            found |= {f"{node.name}::{method}" for method in methods}
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}


def test_each_document_has_rows():
    assert TABLE.keys() == DOCUMENTS
    assert all(groups and all(map(texts, groups)) for groups in TABLE.values())


def test_no_row_appears_twice():
    for document, groups in TABLE.items():
        rows = Counter(row for group in groups for row in texts(group))
        assert [row for row, count in rows.items() if count > 1] == [], document


@pytest.mark.parametrize("group", of_kind("transcript"), ids=lambda group: group["command"])
def test_a_transcript_has_the_command_and_what_it_prints(group):
    output = printed(TRANSCRIPTS / group["transcript"])[words(group["command"])]
    for row in group.get("rows", ()):
        assert words(row if isinstance(row, str) else row[1]) in output
    for figures in group.get("figures", ()):
        assert holds(output, figures, share(group["within"])), figures


@pytest.mark.parametrize("group", of_kind("ranks"), ids=lambda group: group["command"])
def test_simulated_ranks_print_the_figures(group, tmp_path):
    ended = launch(tmp_path, group["ranks"], *group["command"].split()[1:])
    assert set(ended.exits.values()) == {0}, ended.stderr
    for figures in group["figures"]:
        assert holds(words(ended.stdout), figures, share(group["within"])), figures


@pytest.mark.parametrize("group", of_kind("test"), ids=lambda group: group["test"])
def test_a_test_is_there(group):
    path, _, name = group["test"].partition("::")
    assert name in named_in(path)


@pytest.mark.parametrize("group", of_kind("docs"), ids=lambda group: group["sentence"])
def test_a_page_says_so(group):
    assert words(group["sentence"]) in words((ROOT / group["docs"]).read_text("utf-8"))
