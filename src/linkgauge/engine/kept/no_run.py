"""Recognizes files that are not runs, and names the command that reads each kind."""

from __future__ import annotations

from pathlib import Path

import msgspec

from linkgauge.machine.captures.zstd import MAGIC
from linkgauge.model.documents.result import SCHEMA
from linkgauge.model.errors import InputError

from .journal import JOURNAL_FILE

_KINDS = (
    (b"\x89PNG", "it is a PNG picture"),
    (b"%PDF", "it is a PDF"),
    (b"PAR1", "it is what linkgauge export --parquet writes, for data frames"),
    (b"SQLite format 3", "it is a database: linkgauge history --history FILE reads a history"),
    (b"\x1f\x8b", "it is packed: gunzip a run; give a capture to linkgauge devices --root"),
    (MAGIC, "it is an archive: what linkgauge pack writes is read if its name ends in .tar.zst"),
    (b"\x85\xa6schema", "it holds a run's samples: give the run's folder"),
    (b"PK\x03\x04", "it is a ZIP archive"),
    (b"<!DOCTYPE html", "it is a page for a browser"),
)
"""The first bytes of files that are no runs, with their kinds."""
_DOCUMENTS = {
    "vary": "it compares settings: linkgauge show reads it",
    "scale": "it belongs to a run: give its folder",
    "samples": "it holds a run's samples: give the run's folder",
    "summary": "it is what linkgauge export writes: give the run's folder",
    "baseline": "it is a baseline: linkgauge gate --baseline and linkgauge compare read it",
    "capture": "it describes a captured machine: linkgauge devices --root reads the archive",
    "comparison": "it is what linkgauge show --json prints of several runs",
    "runs-compared": "it is what linkgauge compare --json prints",
    "gate": "it is what linkgauge gate --json prints",
    "findings": "it is what linkgauge doctor --json prints",
    "trend": "it is what linkgauge history trend --json prints",
    "history": "it is what linkgauge history --json prints",
    "vm": "it is what linkgauge vm --json prints",
}
"""The documents that linkgauge writes, by the name in their schema."""


class _Head(msgspec.Struct):
    schema: str = ""


def why_no_run(path: Path, data: bytes, error: Exception) -> InputError:
    """Returns an error that says what kind of file this is and which command reads it. `data` is
    the file's content, or only its first byte if that is not `{`."""
    if not data.startswith(b"{"):
        return InputError(f"{path} is not a run of linkgauge: {_kind(_head(path, data))}")
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return InputError(f"{path} is damaged or incomplete: {error}{lies_near(path)}")
    return InputError(f"{path} {_of_schema(schema, error)}")


def lies_near(path: Path) -> str:
    """Returns `; PATH also has what was measured` if a journal is in the folder, else no text."""
    journal = path.with_name(JOURNAL_FILE)
    return f"; {journal} also has what was measured" if journal.exists() else ""


def _of_schema(schema: str, error: Exception) -> str:
    family, _, version = schema.rpartition("/")
    known, _, own = SCHEMA.rpartition("/")
    if family == known and version.isdecimal() and int(version[:9]) > int(own):
        later = f"{known}/{version[:9]}"
        return f"comes from a later linkgauge ({later}, not {SCHEMA}): use that version"
    if family == known:
        why = str(error)
    elif not schema:
        why = f"it is JSON without linkgauge's schema ({SCHEMA})"
    else:
        otherwise = f"its schema is {schema[:40]!r}, not {SCHEMA!r}"
        why = _DOCUMENTS.get(family.removeprefix("linkgauge."), otherwise)
    return f"is not a run of linkgauge: {why}"


def _head(path: Path, data: bytes) -> bytes:
    if not path.is_file():  # a pipe, of which no byte comes twice
        return data
    with path.open("rb") as file:
        return file.read(256)


def _kind(head: bytes) -> str:
    if not head:
        return "it is empty"
    known = (what for first, what in _KINDS if head.upper().startswith(first.upper()))
    if b"\0" in head:
        otherwise = "it is binary"
    else:
        otherwise = "it is JSON, but not an object" if _is_json(head) else "it is not JSON"
    return next(known, otherwise)


def _is_json(head: bytes) -> bool:
    if head.lstrip().startswith(b"["):
        return True
    try:
        msgspec.json.decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
