"""Golden files (UPDATE_GOLDEN=1 writes them anew), and text that the terminal must not obey."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from command_kit import called
from linkgauge.engine.kept.runs import read_run
from linkgauge.report.files import write_run
from report.samples import RUN

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("options", [(), ("--matrix", "-v"), ("--csv",)])
@pytest.mark.parametrize("text", ["a\x1b]0;title\x07 b\x9b2J", "H200\u202e fast \u2067x", "a\nb"])
def test_text_of_a_file_is_shown_not_obeyed(tmp_path, options, text):
    first, *others = RUN.results
    cells = tuple(replace(cell, row=text, reason=text) for cell in others[1].cells)
    run = replace(RUN, label=text, results=(first, replace(others[1], cells=cells)))
    write_run(tmp_path, run)
    done = called("show", tmp_path, *options, FORCE_COLOR="1" if not options else "")
    plain = done.stdout.replace("\x1b[", "")
    assert not set(plain) & set("\x1b\x07\x9b\u202e\u2067")
    assert text not in done.stdout
    assert ("\x1b[" in done.stdout) <= (not options)


@pytest.mark.parametrize("path", sorted((GOLDEN / "old").glob("*.json")), ids=lambda p: p.name)
def test_files_of_earlier_versions_still_load_and_show(path):
    assert read_run(path).results
    assert "GB/s" in called("show", path).stdout


@pytest.mark.parametrize("size", ["", " 7", "wide", "0", "-5", "²", "7.5", "9" * 30])
def test_what_is_no_size_of_a_terminal_hides_nothing(size):
    words = "devices", "--machine", "ppu-2x2"
    done = called(*words, COLUMNS=size, LINES=size)
    assert done.stdout == called(*words, COLUMNS="100000").stdout
    assert "sim:0" in done.stdout
