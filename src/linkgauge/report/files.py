"""Writes the files of a run: `run.json` with its `samples.bin`, and `samples.csv`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from operator import methodcaller
from pathlib import Path
from shlex import quote

import msgspec
from msgspec.structs import replace

from linkgauge.engine.kept.journal import RUN_FILE, read_opening
from linkgauge.engine.kept.packed import SAMPLES_BIN, PackedRun
from linkgauge.engine.kept.stored import share_texts, stored
from linkgauge.judge.findings import Finding, Undetectable
from linkgauge.model.cell_id import bytes_of
from linkgauge.model.documents.result import CellResult, Run, RunVerdict
from linkgauge.model.errors import InputError, ResultsError, unwritable
from linkgauge.model.notation import encode_hook
from linkgauge.model.printable import escaped
from linkgauge.report.words.sentences import program, sentence

from .csv_text import csv_text
from .rows import OneRun, SampleRow, samples_of

SAMPLES_FILE = "samples.csv"
_PIECE = 1 << 18
_MOST_KEPT = 1 << 16
"""The most samples of a result whose text is kept, in 35 bytes each, for cells that share them."""
_LENGTHS = 4
_START = "\0"
_Pieces = Iterable[bytes | memoryview]


def json_document(value: object) -> str:
    """Returns a value as indented JSON. docs/run.schema.json defines the JSON of a run."""
    if isinstance(value, OneRun):
        return judged_document(document_of(value.run), *value.outcome.answer)
    return _indented(value).decode()


def judged_document(
    value: msgspec.Struct | Mapping[str, object],
    verdict: RunVerdict,
    code: int,
    findings: Sequence[Finding],
    undetectable: Sequence[Undetectable] = (),
) -> str:
    """Returns a document as JSON, with verdict, exit code, findings and undetectable losses."""
    known = msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else dict(value)
    first = {"schema": known.pop("schema"), "verdict": verdict, "exit_code": code}
    more = {"undetectable": undetectable} if undetectable else {}
    fields = first | {"findings": findings} | more | known
    return json_document({name: one for name, one in fields.items() if one is not msgspec.UNSET})


def document_of(run: Run) -> Run:
    """Returns the run as run.json has it: notes also as sentences, shared texts in the results."""
    return share_texts(run.with_cells(with_words))


def _indented(value: object) -> bytes:
    document = msgspec.json.encode(value, enc_hook=encode_hook)
    return escaped(msgspec.json.format(document, indent=1)) + b"\n"


def with_words(cell: CellResult) -> CellResult:
    return replace(cell, warnings=tuple(map(sentence, cell.notes))) if cell.notes else cell


def samples_csv(one: OneRun) -> str:
    """Returns all samples of a run as CSV. There may be millions of them."""
    return b"".join(sample_lines(one.run)).decode()


def sample_lines(run: Run) -> Iterator[bytes]:
    yield csv_text([SampleRow.__struct_fields__]).encode()
    further = cache(lambda field: csv_text([("", field)])[:-1])  # most are met again
    for result in run.results:
        head = csv_text([(run.id, result.benchmark, result.backend)])[:-1]
        end = csv_text([(result.unit, result.simulated)])
        series = [(cell, list(samples_of(cell))) for cell in result.cells]
        longest = max((len(samples) for _, own in series for _, samples in own), default=0)
        form = lru_cache(_LENGTHS)(partial(_form, end.replace("%", "%%")))
        numbered = lru_cache(_MOST_KEPT // (longest or 1))(partial(_numbered, form))
        for cell, own in series:
            place = bytes_of(cell, result.size), cell.row, cell.column
            for transfer, samples in own:
                before = head + "".join(map(further, (*place, transfer)))
                yield numbered(samples).replace(_START, before).encode()


def _form(end: str, count: int) -> str:
    return "".join([f"{_START},{number},%r,{end}" for number in range(count)])


def _numbered(form: Callable[[int], str], samples: Sequence[float]) -> str:
    return form(len(samples)) % tuple(samples)


def sample_pieces(one: OneRun) -> Iterator[bytes]:
    """Yields the samples as CSV, from samples.csv if just written (ResultsError if unreadable)."""
    if not one.is_written or one.folder is None:
        yield from sample_lines(one.run)
        return
    path = one.folder / SAMPLES_FILE
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
    except OSError as error:
        raise ResultsError(f"cannot read {path}: {error.strerror}") from error


def run_files(run: Run) -> dict[str, bytes]:
    return {path.name: b"".join(pieces) for path, pieces in _run_pieces(run, Path()).items()}


def _run_pieces(run: Run, folder: Path) -> dict[Path, _Pieces]:
    samples = PackedRun(run)
    return {
        folder / SAMPLES_BIN: samples,
        folder / RUN_FILE: map(
            escaped, stored(run, samples, methodcaller("with_cells", with_words))
        ),
    }


def write_run(folder: Path, run: Run) -> Path:
    """Writes run.json after all other files. Raises ResultsError, whose text says how to resume."""
    try:
        _write_kept({folder / SAMPLES_FILE: sample_lines(run)})
        _write_kept(_run_pieces(run, folder))
    except ResultsError as error:
        raise resumable(error, folder) from error
    return folder / RUN_FILE


def resumable(error: ResultsError, folder: Path | None) -> ResultsError:
    """Returns the error, with the command that resumes the run or, for several ranks, shows it."""
    try:
        by_ranks = folder is not None and bool(read_opening(folder).machine.ranks)
    except (OSError, InputError):
        folder = None
    if folder is None:
        return error
    verb, words = ("show", "show") if by_ranks else ("resume", "run --resume")
    how = f"{program()} {words} {quote(str(folder))}"
    return ResultsError(f"{error}: measured cells are kept; to {verb}: {how}")


def write_document(path: Path, value: object) -> Path:
    """Writes a file as a whole or not at all. Raises ResultsError with the path."""
    _write_kept({path: (_indented(value),)})
    return path


def write_asked(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all. Raises ResultsError if the disk is full or fails, and
    InputError if the path cannot be written."""
    try:
        _write({path: (data,)})
    except OSError as error:
        raise unwritable(path, error) from error


def _write_kept(files: Mapping[Path, _Pieces]) -> None:
    try:
        _write(files)
    except OSError as error:
        raise ResultsError(f"cannot write {error.filename}: {error.strerror}") from error


def _write(files: Mapping[Path, _Pieces]) -> None:
    """Writes complete files. The last file appears after the others. Raises OSError with a path."""
    partials = {path: path.with_name(path.name + ".partial") for path in files}
    path = last = next(reversed(partials))
    try:
        for path, pieces in files.items():
            with partials[path].open("wb") as partial:
                partial.writelines(pieces)
        if len(files) > 1:
            last.unlink(missing_ok=True)
        for path in files:
            partials[path].replace(path)
    except OSError as error:
        for left in partials.values():
            with suppress(OSError):
                left.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
