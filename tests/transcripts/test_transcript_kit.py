"""The runner: what a transcript says is what is compared."""

import pytest

import transcript_kit
from transcript_kit import check, commands, executed

TEXT = """\
# A remark.
$ cat > given.txt
> one
>
> two

$ cat given.txt | grep -v two | head -5
  one


$ linkgauge list \\
> --prefix nothing_
! linkgauge: no benchmark begins with 'nothing_': see 'linkgauge list'
? 2
"""


def test_a_transcript_is_executed_as_it_is_written(tmp_path):
    (first, second, third) = commands(TEXT)
    assert (first.remarks, first.given) == (("# A remark.",), "one\n\ntwo\n")
    assert second.given == ""
    assert third.text == "linkgauge list --prefix nothing_"
    (tmp_path / "there").mkdir()
    assert executed(TEXT, tmp_path / "there") == TEXT


def test_what_the_shell_lacks_says_so(tmp_path):
    assert executed("$ cat home/x > y\n", tmp_path).endswith("! cat: FileNotFoundError: "
        "[Errno 2] No such file or directory: 'FOLDER/home/x'\n? 1\n")  # fmt: skip


@pytest.mark.parametrize(
    ("what", "instead"), [("  one", "  two"), ("? 2\n", ""), ("! linkgauge", "! linkgage")]
)
def test_what_is_printed_otherwise_is_shown_as_a_difference(what, instead, tmp_path, monkeypatch):
    monkeypatch.setattr(transcript_kit, "UPDATES", False)
    path = tmp_path / "x.txt"
    path.write_text(TEXT.replace(what, instead))
    (tmp_path / "there").mkdir()
    with pytest.raises(pytest.fail.Exception) as failed:
        check(path, tmp_path / "there")
    assert f"\n+{what.splitlines()[0]}" in str(failed.value)


def test_an_update_writes_what_is_printed_now(tmp_path, monkeypatch):
    monkeypatch.setattr(transcript_kit, "UPDATES", True)
    path = tmp_path / "x.txt"
    path.write_text("\n".join(line for line in TEXT.splitlines() if line[:1] in "#$>"))
    (tmp_path / "there").mkdir()
    check(path, tmp_path / "there")
    assert path.read_text() == TEXT
