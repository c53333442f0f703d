"""Files of a run: `run.json` and `samples.csv`, written and read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from linkgauge.engine.journal import JOURNAL_FILE, assemble, read_records
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.result import CellResult, Run

from .texts import share_texts, spread_texts

RUN_FILE = "run.json"
SAMPLES_FILE = "samples.csv"

SIMULATED = "SIMULATED"

COLUMNS = (
    "run",
    "benchmark",
    "backend",
    "size",
    "row",
    "column",
    "transfer",
    "sample",
    "value",
    "unit",
    "simulated",
)
"""`transfer` is empty for the headline figure, else the notation of the single transfer;
`simulated` says SIMULATED or nothing."""


def json_document(value: object) -> str:
    """Indented JSON with a last newline; of a Run, the document of docs/run.schema.json."""
    return _indented(value).decode()


def _indented(value: object) -> bytes:
    if isinstance(value, Run):
        value = share_texts(value)
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def samples_csv(run: Run) -> str:
    """Every raw sample, a line each, in the result's base unit."""
    lines = [_row(COLUMNS)]
    for result in run.results:
        after = _row((result.unit, SIMULATED if result.simulated else ""))
        for cell in result.cells:
            head = (run.id, result.benchmark, result.backend, result.size, cell.row, cell.column)
            for transfer, samples in _samples(cell):
                before = _row((*head, transfer))  # once: quoting takes time
                lines += [f"{before},{n},{value!r},{after}" for n, value in enumerate(samples)]
    return "\n".join((*lines, ""))


def _row(fields: Iterable[object]) -> str:
    """A line of CSV, or a part of one, without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue()[:-1]


def _samples(cell: CellResult) -> Iterator[tuple[str, Sequence[float]]]:
    yield "", cell.samples
    for part in cell.parts:
        yield cell.transfers[part.transfer], part.samples


def write_run(folder: Path, run: Run) -> Path:
    """Writes both files and returns the path of run.json. Raises ResultsError with the path."""
    _write(folder / SAMPLES_FILE, samples_csv(run).encode())
    _write(folder / RUN_FILE, _indented(run))
    return folder / RUN_FILE


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all: a reader never sees half a file."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error


def read_run(path: Path) -> Run:
    """The run of a run.json, a journal.jsonl or the folder of either. Raises InputError."""
    if path.is_dir():
        whole = path / RUN_FILE
        path = whole if whole.exists() else path / JOURNAL_FILE
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if path.suffix == ".jsonl" or data.startswith(b'{"record"'):
        run = assemble(read_records(data))
    else:
        try:
            run = msgspec.json.decode(data, type=Run)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path} is not a run of linkgauge: {error}") from error
    run = spread_texts(run)
    for result in run.results:
        for cell in result.cells:
            if any(not 0 <= part.transfer < len(cell.transfers) for part in cell.parts):
                raise InputError(f"{path}: a part of {result.benchmark} is of no transfer")
    return run


def run_schema() -> dict[str, object]:
    """The JSON Schema of run.json, made from its types; docs/run.schema.json is this."""
    schema = msgspec.json.schema(Run)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
