"""A file that is no run is refused in one line, in bounded memory."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.engine.kept import runs
from linkgauge.engine.kept.runs import read_run
from linkgauge.model.errors import InputError
from linkgauge.report.files import write_run

GOLDEN = Path(__file__).parents[1] / "report" / "golden" / "run.json"
WHOLE = GOLDEN.read_bytes()
HEAD = b'{"schema": "linkgauge.run/1", "results": ['
ROOM = 512 << 20
"""Bytes of address space that reading may take beside what the interpreter has."""


def written(folder, content, name="run.json"):
    path = folder / name
    path.write_bytes(content)
    return path


def refusal(path):
    with pytest.raises(InputError) as refused:
        read_run(path)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2
    return str(refused.value)


def test_a_later_schema_is_named_with_the_one_that_is_read(tmp_path):
    document = json.loads(WHOLE) | {"schema": "linkgauge.run/12"}
    path = written(tmp_path, json.dumps(document).encode())
    assert refusal(path) == (
        f"{path} comes from a later linkgauge (linkgauge.run/12, not linkgauge.run/3): "
        "use that version"
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"not json", "it is not JSON"), (b"", "it is empty"),
        (b"[1]", "it is JSON, but not an object"),
        (b"[", "it is JSON, but not an object"), (b"null", "it is JSON, but not an object"),
        (b"{}", "it is JSON without linkgauge's schema (linkgauge.run/3)"),
        (b"\x89PNG\r\n\x1a\n\0", "it is a PNG picture"), (b"%PDF-1.7", "it is a PDF"),
        (b"<!doctype html><html>", "it is a page for a browser"), (b"\x7fELF\0", "it is binary"),
        (b"\x1f\x8b\x08", "give a capture to linkgauge devices --root"),
        (b"\x28\xb5\x2f\xfd\0", "what linkgauge pack writes is read if its name ends in .tar.zst"),
        (b"SQLite format 3\0", "linkgauge history --history FILE reads a history"),
        (b'{"schema": "linkgauge.vary/1"}', "it compares settings: linkgauge show reads it"),
        (b'{"schema": "linkgauge.baseline/1"}', "linkgauge gate --baseline"),
        (b'{"schema": "linkgauge.scale/1"}', "it belongs to a run: give its folder"),
        (b'{"schema": "linkgauge.gate/1"}', "it is what linkgauge gate --json prints"),
        (b'{"schema": "mine/9"}', "its schema is 'mine/9', not 'linkgauge.run/3'"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_named_with_what_reads_it(content, what, tmp_path):
    path = written(tmp_path, content, "some.json")
    assert refusal(path).startswith(f"{path} is not a run of linkgauge: ")
    assert what in refusal(path)


def test_beside_its_journal_it_says_where_the_figures_are(tmp_path):
    journal = written(tmp_path, b"", "journal.jsonl")
    assert str(journal) in refusal(written(tmp_path, WHOLE[:1000]))


def kept(folder, run_id="golden"):
    """The files of a run: run.json and samples.bin."""
    folder.mkdir(exist_ok=True)
    path = write_run(folder, replace(read_run(GOLDEN), id=run_id))
    return path, path.with_name("samples.bin")


def test_without_its_own_samples_a_run_is_refused_with_the_remedy(tmp_path):
    (path, samples), (_, other) = kept(tmp_path / "a"), kept(tmp_path / "b", "other")
    whole, journal = samples.read_bytes(), written(tmp_path / "a", b"", "journal.jsonl")
    for content, why in (
        (other.read_bytes(), "belongs to the run 'other', not to 'golden'"),
        (whole[:-9], f"is cut off: it has {len(whole) - 9} of {len(whole)} bytes"),
        (whole[:-1] + b"!", "is not what was written with it"),
    ):
        samples.write_bytes(content)
        assert refusal(path) == f"{samples} {why}: copy the run again"
    samples.unlink()
    assert refusal(path).startswith(f"{samples}, which has the samples, is missing: copy it too")
    assert refusal(path).endswith(f"; {journal} also has what was measured")


@pytest.mark.parametrize(
    ("field", "change", "why"),
    [
        ("lengths", lambda v: v[:-1], "iterative unpacking requires"),
        ("lengths", lambda v: b"\xff\xff\xff\xff" + v[4:], "it has too few samples"),
        ("values", lambda v: v[8:], "it has too few samples"),
        ("values", lambda v: v + v, "it has samples of no cell"),
        ("values", lambda v: b"\xff" * 8 + v[8:], "a sample is no number"),
        ("summaries", lambda v: b"", "it has too few summaries"),
        ("summaries", lambda v: v + v, "it has samples of no cell"),
        ("summaries", lambda v: v[:8] + b"\xff" * 8 + v[16:], "a figure is no number"),
    ],
)
def test_samples_that_fit_no_cell_are_refused(tmp_path, field, change, why):
    path, samples = kept(tmp_path)
    found = msgspec.msgpack.decode(samples.read_bytes())
    changed = msgspec.msgpack.encode(found | {field: change(found[field])})
    samples.write_bytes(changed)
    named = {"bytes": len(changed), "sha256": sha256(changed).hexdigest()}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"samples": named}))
    assert f"samples.bin is damaged: {why}" in refusal(path)


def test_a_folder_in_place_of_the_samples_is_named(tmp_path):
    path, samples = kept(tmp_path / "a")
    samples.unlink()
    samples.mkdir()
    assert refusal(path) == f"cannot read {samples}: Is a directory"


def test_values_are_counted_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "MOST_VALUES", WHOLE.count(b",") - 1)
    assert "it is not a run" in refusal(written(tmp_path, WHOLE))
    monkeypatch.setattr(runs, "MOST_VALUES", WHOLE.count(b","))
    assert read_run(tmp_path / "run.json").label == "golden"


def sparse(path):
    """Ten GB that take no room on the disk."""
    path.write_bytes(HEAD)
    os.truncate(path, 10_000_000_000)


def many(path):
    """More values than any run has."""
    path.write_bytes(HEAD + b"0," * (runs.MOST_VALUES + 1) + b"0]}")


def samples(path):
    """A run of which the samples are ten GB."""
    os.truncate(kept(path.parent)[1], 10_000_000_000)


def empty_lines(path):
    path.write_bytes(b'{"record"' + b"\n" * (64 << 20))


@pytest.mark.parametrize("content", [sparse, many, empty_lines, samples])
def test_memory_stays_bounded(content, tmp_path):
    path = tmp_path / "run.json"
    content(path)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(ROOM), str(path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "Traceback" not in done.stderr


LIMITED = """
import resource, sys
from linkgauge.cli.main import main
from linkgauge.engine.kept import runs
room, path = sys.argv[1:]
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + int(room),) * 2)
sys.argv = ["linkgauge", "show", path]
main()
"""
