"""Packs a run's folder into one archive, .tar.zst."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from linkgauge.engine.kept.folder import label_name
from linkgauge.engine.kept.journal import JOURNAL_FILE, RUN_FILE, line_of, records_of
from linkgauge.engine.kept.runs import is_run, read_run, run_of
from linkgauge.machine.captures import zstd
from linkgauge.machine.captures.archive import tar_of
from linkgauge.machine.given import read_given
from linkgauge.machine.tree import Captured
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.report.files import SAMPLES_FILE, run_files, sample_lines

from .anonymous import anonymised, anonymised_record, shared_texts

MOST_BYTES = 1 << 30


class PackedRun(NamedTuple):
    """An archive with files `names` in a folder `id`. Files in `left_out` cannot be anonymised."""

    content: bytes
    id: str
    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def pack_run(folder: Path, *, anonymous: bool = False) -> PackedRun:
    """Packs a run's folder; equal folders give equal archives. Files that an interrupted run lacks
    are made from its journal. Raises InputError if there is no run, MissingPackage without zstd."""
    if not folder.is_dir() or not is_run(folder):
        raise InputError(f"{folder} is not a run's folder: give the run's own folder")
    run = read_run(folder)
    files = _files(folder)
    if RUN_FILE not in files:
        files |= run_files(run)
    left_out: tuple[str, ...] = ()
    if anonymous:
        files, left_out = _anonymised(run, files)
        run = run_of(files[RUN_FILE], folder / RUN_FILE, files)
    files.setdefault(SAMPLES_FILE, b"".join(sample_lines(run)))
    top = label_name(run.id)
    tree = Captured({f"{top}/{name}": content for name, content in files.items()})
    content = zstd.compressed(tar_of(tree, _time(run)))
    return PackedRun(content, top, tuple(sorted(files)), left_out)


def _files(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left = MOST_BYTES
    try:
        for path in sorted(folder.iterdir()):
            if path.is_file() and not path.is_symlink() and path.suffix != ".partial":
                files[path.name] = read_given(path, left)
                left -= len(files[path.name])
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error
    return files


def _anonymised(run: Run, files: dict[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    who = shared_texts()
    kept = run_files(anonymised(run, who))
    if JOURNAL_FILE in files:
        records = records_of(files[JOURNAL_FILE])
        lines = (line_of(anonymised_record(who, one)) for one in records)
        kept[JOURNAL_FILE] = b"".join(piece for line in lines for piece in line)
    made = {*kept, SAMPLES_FILE}
    return kept, tuple(name for name in files if name not in made)


def _time(run: Run) -> int:
    try:
        return max(0, int(datetime.fromisoformat(run.finished or run.started).timestamp()))
    except (ValueError, OverflowError):
        return 0
