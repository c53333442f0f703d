"""What README.md and docs/ tell people to type can be typed; where they point, there is something.

`make docs` checks the links within docs/; this checks those from the README and CONTRIBUTING.md.
"""

import re

import pytest
import yaml
from click.exceptions import Exit
from markdown.extensions.toc import slugify

from docs_kit import PAGES, ROOT, SYNOPSIS, TYPED, in_blocks, words
from linkgauge.backends.sim.description import shipped
from linkgauge.cli.main import COMMANDS, application
from linkgauge.registry import named as offered
from worker_threads import worker_threads

PARSERS = application().loaded()


def in_sentences(text):
    for code in re.findall(r"`([^`\n]+)`", text):
        found = TYPED.search(code)
        if found:
            yield found[1]


def of_pages(extract):
    return [
        pytest.param(line, id=f"{page.stem}: {line}")
        for page in PAGES
        for line in dict.fromkeys(extract(page.read_text("utf-8")))
    ]


@pytest.mark.parametrize("line", of_pages(in_blocks))
def test_a_command_line_of_a_block_parses(line):
    name, *arguments = words(line)
    try:
        context = PARSERS[name].make_context(name, arguments)
    except Exit:  # --list-faults
        return
    assert name != "as" or context.params["tool"] in offered("tools")


@pytest.mark.parametrize("line", of_pages(in_sentences))
def test_the_options_in_a_sentence_exist(line):
    name, *arguments = line.split()
    options = {option for parameter in PARSERS[name].params for option in parameter.opts}
    tool = next(
        (n for n, word in enumerate(arguments) if name == "as" and word in offered("tools")), None
    )
    named = {word for word in arguments[:tool] if re.fullmatch(r"--[a-z-]+", word)}
    assert named <= options | {"--help"}


def on_machines():
    """The command lines of all pages that name a machine which is shipped, as words."""
    found = {}
    for page in PAGES:
        text = page.read_text("utf-8")
        for line in (*in_blocks(text), *in_sentences(text)):
            if "--machine" in line and not SYNOPSIS.search(line):
                name, *arguments = words(line)
                if set(shipped()) & set(arguments):
                    found.setdefault((name, *arguments), f"{page.stem}: {line}")
    return [pytest.param(typed, id=of) for typed, of in found.items()]


SHORTENED = {
    "run": ("--dry-run",),
    "scale": ("--size", "64K", "--samples", "1"),
    "watch": ("--size", "1M", "--samples", "1", "--probes", "1"),
}


@pytest.mark.parametrize("typed", on_machines())
def test_a_command_line_works_on_the_machine_that_it_names(typed, tmp_path, monkeypatch):
    """It has the devices, the links, the benchmarks: nothing is refused, nothing is an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "history.db"))
    # It would serve until it is ended, at one port for all.
    monkeypatch.setattr("linkgauge.rooms.exporter.command._serve", lambda page, listen: 0)
    name, *arguments = typed
    shortened = [word for word in SHORTENED.get(name, ()) if word not in arguments]
    with worker_threads():
        code = application()(
            [name, *arguments, *shortened], standalone_mode=False, prog_name="linkgauge"
        )
    assert code in (None, 0, 1)  # 1: what is found of the machine


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_links_of_a_page_beside_the_site_lead_somewhere(page):
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text("utf-8"))
    for link in links:
        if not link.startswith("http"):
            path, _, anchor = link.partition("#")
            target = ROOT / (path or page)
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link
    assert links


def anchors(page):
    return {
        slugify(re.sub(r"[`*]", "", title), "-")
        for title in re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    }


def test_every_page_is_in_the_sites_menu_and_every_command_has_a_page():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    pages = [
        page
        for section in menu
        for entry in next(iter(section.values()))
        for page in entry.values()
    ]
    assert sorted(pages) == sorted(page.name for page in PAGES[1:])
    assert {f"{name}.md" for name in COMMANDS} <= set(pages)


REFERENCE = ("How numbers are taken", "Beside other tools", "Reference")
"""The parts of the menu that are looked up, not read."""


def test_a_page_that_is_read_is_short():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    pages = [
        ROOT / "docs" / page
        for section in menu
        for name, entries in section.items()
        if name not in REFERENCE
        for entry in entries
        for page in entry.values()
    ]
    words = {page.name: len(page.read_text("utf-8").split()) for page in pages}
    assert {page: count for page, count in words.items() if count > 1500} == {}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120
