"""Reports in a real browser without a screen: what one clicks, points at and reads."""

import os
import re
from itertools import product
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.engine.kept.runs import run_of as read_back
from linkgauge.report.reading import page_of_run
from linkgauge.report.render.drawing import Drawer
from linkgauge.report.render.html import html_of
from page_kit import HOSTILE, chromium, hostile, whole  # noqa: F401  # a fixture

sync_api = pytest.importorskip("playwright.sync_api", reason="no wheels for this machine")
axe_api = pytest.importorskip("axe_playwright_python.sync_playwright")

FIRST = "#benchmarks table.sortable"
COPY = "host_to_device_memcpy_ce"
READABLE = (Path(__file__).parent / "readable.js").read_text()
DATA = Path(__file__).parents[1] / "data"
KEPT = ("collectives", "failures", "host", "latencies", "sizes", "workloads")
WIDE, NARROW = 1400, 390
FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"


@pytest.fixture(scope="module")
def browser(chromium):  # noqa: F811
    """One for all tests of this file."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Files of a run with everything and of one with hostile text everywhere."""
    pages = {"whole": page_of_run(whole()), "hostile": page_of_run(hostile(" ".join(HOSTILE)))}
    folder = tmp_path_factory.mktemp("reports")
    for name, page in pages.items():
        with Drawer() as drawer:
            (folder / f"{name}.html").write_text(html_of(page, drawer), "utf-8")
    return folder


class Repetition:
    """A report that is open, what it asked for and what it complained of."""

    def __init__(self, browser, path, **how):
        self.context = browser.new_context(viewport={"width": 1000, "height": 800}, **how)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())

    def column(self, number, table=FIRST):
        cells = self.page.locator(f"{table} tbody tr > :nth-child({number})")
        return [text.strip() for text in cells.all_inner_texts()]

    @property
    def tip(self):
        return self.page.locator("#tip").inner_text()


@pytest.fixture
def repetition(browser, reports):
    opened = []

    def open_report(name="whole", **how):
        opened.append(Repetition(browser, reports / f"{name}.html", **how))
        return opened[-1]

    yield open_report
    for one in opened:
        inside = ("data:", "blob:", one.page.url)
        assert [url for url in one.requests if not url.startswith(inside)] == []
        assert one.complaints == []
        one.context.close()


def test_the_fault_and_its_remedy_are_in_the_first_screenful(repetition):
    one = repetition()
    for width in (400, 1000, 1600):
        one.page.set_viewport_size({"width": width, "height": 800})
        for text in ("9 of 18 links are not active", "nvidia-smi nvlink -s"):
            box = one.page.get_by_text(text, exact=False).first.bounding_box()
            assert box["y"] + box["height"] < 800
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_click_on_a_head_sorts_and_another_one_turns_it(repetition):
    one = repetition()
    head = one.page.locator(f"{FIRST} thead th").nth(5)
    before = one.column(6)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert one.column(6) == sorted(before, key=int) != before
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert one.column(6) == sorted(before, key=int, reverse=True)


def test_pointing_tells_what_a_place_and_a_point_are(repetition):
    one = repetition()
    one.page.locator("table.heat tbody td", has_text="200.0").first.hover()
    assert one.tip.splitlines()[0] == "0, 1"
    assert "200.0▼ · 50%" in one.tip
    assert "expected 400.0 GB/s, 44% of theoretical" in one.tip
    one.page.locator("#figures svg [data-tip]").last.hover()
    assert one.tip == "0 base, 128 KiB: 9 ns"
    one.page.keyboard.press("Escape")
    assert one.page.locator("#tip").is_hidden()


def test_files_come_out_as_they_went_in(repetition, tmp_path):
    one = repetition()
    with one.page.expect_download() as waiting:
        one.page.get_by_role("button", name="run.json").click()
    waiting.value.save_as(tmp_path / "run.json")
    read = read_back((tmp_path / "run.json").read_bytes(), tmp_path / "run.json")
    assert read.id == whole().run.id
    assert [len(r.cells) for r in read.results] == [len(r.cells) for r in whole().run.results]


def test_commands_are_copied_without_their_comment(repetition):
    one = repetition(permissions=["clipboard-read", "clipboard-write"])
    one.page.get_by_role("button", name="Copy").first.click()
    assert one.page.evaluate("navigator.clipboard.readText()") == "nvidia-smi nvlink -s"


def test_without_script_everything_can_be_read(repetition):
    one = repetition(java_script_enabled=False)
    assert one.page.locator("svg").count() > 3
    assert one.page.locator("button.download").first.is_hidden()


@pytest.fixture(scope="module")
def kinds(tmp_path_factory, reports):
    """A page of every kind: of a run, healthy, faulty and large, for hours, of collectives, AI and
    so on; of several runs; of a scaling and of settings compared."""
    folder = tmp_path_factory.mktemp("kinds")
    at = {"cwd": folder, "LINKGAUGE_NO_REPORT": ""}
    few = ("--size", "1M", "--samples", "2", "--machine")
    called("run", COPY, *few, "vm-degraded", "--label", "before", **at)
    called("run", COPY, *few, "vm-degraded", "--fault", "slow host:0-sim:0 rate=25%", **at)
    called("run", COPY, "--machine", "ring-8", "--for", "5s", "--out", "soak", **at)
    called("run", COPY, *few, "rbln-32", "--out", "large", **at)
    called("scale", "all_reduce", *few, "riscv-2gpu", "--out", "scale", **at)
    called("share", "soak", "-o", "shared.html", **at)
    kept = ["results", DATA / "varied/rounds.json", *folder.glob("scale/**/scale.json")]
    kept += [DATA / f"made/{name}.json" for name in KEPT]
    for number, each in enumerate(kept):
        called("report", each, "-o", f"{number}.html", **at)
    return [*folder.rglob("*.html"), reports / "whole.html"]


AXE = """options => axe.run(document, {resultTypes: ["violations"], ...options})
    .then(found => found.violations.map(one => [one.id, one.nodes[0].html]))"""
TWO_FRAMES = "() => new Promise(then => requestAnimationFrame(() => requestAnimationFrame(then)))"
"""The page hears of a new width in the next frame."""
ALL, BLACK_AND_WHITE = {}, {"rules": {"color-contrast": {"enabled": False}}}
COLOURS, LAYOUT = {"runOnly": ["color-contrast"]}, {"runOnly": ["scrollable-region-focusable"]}
"""Rules of axe. Contrast costs it the most; only layout depends on the width."""


def views(pages):
    """Each page, in the ways that may show what no page before it does; if FULL, in all ways."""
    seen = set()
    for path in sorted(pages, key=lambda path: path.stat().st_size):
        names = {
            n for some in re.findall('class="([^"]*)"', path.read_text()) for n in some.split()
        }
        new = not names <= seen
        seen |= names
        if FULL:
            yield from product([path], ("light", "dark"), (WIDE, NARROW), [ALL])
            continue
        yield path, "light", WIDE, ALL if new else BLACK_AND_WHITE
        yield path, "light", NARROW, LAYOUT
        if new:
            yield path, "dark", WIDE, COLOURS


def complaints(page, scheme, width, rules):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.evaluate(TWO_FRAMES)
    if page.evaluate("!window.axe"):
        page.evaluate(axe_api.Axe().axe_script)
    return page.evaluate(AXE, rules) + page.evaluate(READABLE)


def test_every_kind_of_page_can_be_read_by_all(browser, kinds):
    """axe finds nothing of any impact; no text is cut, no word broken, and what scrolls says so."""
    assert len(kinds) == 10 + len(KEPT)
    with browser.new_context(bypass_csp=True) as context:
        page = context.new_page()
        for path, *view in views(kinds):
            if page.url != path.as_uri():
                page.goto(path.as_uri())
            assert complaints(page, *view) == [], (path, view)


def test_what_cannot_be_read_is_complained_of(repetition):
    page = repetition(bypass_csp=True).page
    for style, complaint, width in (
        ("p { color: #aaa }", "color-contrast", WIDE),
        ("h2, h3 { width: 3rem }", "broken word", NARROW),
        (".scroll { overflow: hidden }", "cut: ", NARROW),
        (".scroll { box-shadow: none }", "goes on without a hint", NARROW),
        (".rows tbody th { position: static }", "name scrolls away", NARROW),
        ("nav ol { flex-wrap: nowrap }", "beyond the page", NARROW),
    ):
        harm = page.add_style_tag(content=style.replace(" }", " !important }"))
        rules = COLOURS if width == WIDE else LAYOUT
        assert complaint in str(complaints(page, "light", width, rules))
        harm.evaluate("style => style.remove()")


def test_hostile_text_does_nothing(repetition):
    one = repetition("hostile")
    assert "harm" in one.page.title()
    assert one.page.evaluate("document.title !== 'harm'")
    assert one.page.locator("img").count() == 0
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 1000
