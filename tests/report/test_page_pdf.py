"""The report as PDF: the same in words, whatever the run holds."""

import io

import pytest

from linkgauge.model.errors import InputError, MissingPackage
from linkgauge.report.page.contents import page_of_run
from linkgauge.report.page.drawing import Drawer
from linkgauge.report.page.pdf import pdf_of
from linkgauge.report.page.writing import check_name
from page_kit import HOSTILE, hostile, whole
from report.test_page import Undrawn

pypdf = pytest.importorskip("pypdf")


def text_of(one, drawer):
    pytest.importorskip("typst", reason="no wheels for this machine")
    with drawer:
        content = pdf_of(page_of_run(one), drawer)
    reader = pypdf.PdfReader(io.BytesIO(content))
    return reader, " ".join("\n".join(page.extract_text() for page in reader.pages).split())


def test_it_says_what_the_page_says():
    reader, text = text_of(whole(), Drawer())
    first = reader.pages[0].extract_text()
    for expected in ("9 of 18 links are not active", "nvidia-smi nvlink -s", "they cost half"):
        assert expected in first
    for expected in ("fabric-links · x:0", "200.0▼", "driver 580.1", "Bill of materials",
                     "level 2: 9.00 ns"):  # fmt: skip
        assert expected in text
    assert reader.metadata.title == "box · before"


def test_hostile_text_is_text():
    """No markup of typst's, no code, no link; and what is too long is cut."""
    reader, text = text_of(hostile(" ".join(sorted(HOSTILE, key=len))), Undrawn())
    assert "document.title" in text
    assert '#eval("1") $x$ *a* @b <c>' in text
    assert "{{ 7 * 7 }}" in text
    assert "x" * 5000 not in text.replace(" ", "")
    links = [a for page in reader.pages for a in page.get("/Annots", [])]
    assert links == []


def test_without_typst_it_says_what_installs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "typst", None)
    with pytest.raises(MissingPackage, match=r"linkgauge\[report\]"):
        pdf_of(page_of_run(whole()), Undrawn())


def test_a_report_is_html_or_pdf(tmp_path):
    with pytest.raises(InputError, match=r"a report is \.html or \.pdf"):
        check_name(tmp_path / "report.docx")
