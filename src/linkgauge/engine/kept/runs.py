"""Finds and reads stored runs and comparisons of runs, and defines the names of their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from errno import ENOENT
from pathlib import Path
from shlex import quote
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from linkgauge.machine.given import read_given
from linkgauge.machine.host import this_host
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import cell_id
from linkgauge.model.documents.result import SCHEMA, Result, Run
from linkgauge.model.documents.stored import SamplesFile, StoredRun
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.model.notation import decode_hook

from .fitting import check_figures
from .folder import label_name
from .journal import JOURNAL_FILE, RUN_FILE, records_of
from .no_run import lies_near, why_no_run
from .outline import outline_of
from .packed import SAMPLES_BIN
from .ranges import with_todays_ranges
from .reading import MOST_SAMPLES, Once, PackedSeries, ResultReader, current, in_todays_words
from .run_state import state_of
from .stored import spread_texts

VARY_FILE = "vary.json"
PACKED = ".tar.zst"
RESULTS = Path("results")
"""The folder in which runs are kept unless another one is asked for."""
_HEAD = 100
"""The first bytes of a document, which contain its schema."""
MOST_BYTES = 1 << 30
"""The most bytes of a run: the full profile of eight devices has a tenth of a GiB."""
MOST_VALUES = 1 << 25
"""The most commas in a run. Each may separate values that take 32 bytes of memory once read."""


_Kept = TypeVar("_Kept")
_Say = Callable[[str], object]
"""Takes messages for people, a line each."""
DEPTH = 3
"""The levels of folders from the folder of all runs down to a run: accelerator, label, run."""


def is_run(path: Path) -> bool:
    return not path.is_dir() or any((path / name).exists() for name in (RUN_FILE, JOURNAL_FILE))


def run_folders(path: Path, also: Iterable[str] = ()) -> list[Path]:
    """Returns the sorted folders below `path` that hold a run, or a file with a name in `also`."""
    found = {
        file.parent
        for depth in range(1, DEPTH + 1)
        for name in (RUN_FILE, JOURNAL_FILE, *also)
        for file in path.glob("/".join([*["*"] * depth, name]))
    }
    return sorted(found)


def usable(folders: Iterable[Path], say: _Say) -> Iterator[tuple[Path, Run]]:
    """Yields readable runs with paths. Calls `say` for each damaged or profiled run it skips."""
    for path in folders:
        try:
            run = read_run(path)
        except InputError as error:
            say(f"left out: {error}")
            continue
        if run.is_profiled:
            say(f"left out: {path} was measured under a profiler")
        else:
            yield path, run


def in_order(folders: Iterable[Path]) -> list[Path]:
    """Sorts folders of runs by the runs' start, latest first."""
    return sorted(folders, key=_began, reverse=True)


class _Latest(NamedTuple):
    """The latest run of this machine with figures (`own`), and later runs: of other machines with
    figures (`other`), and of this machine without figures (`empty`)."""

    own: Path | None
    other: Path | None
    empty: Path | None


def _latest(folders: Iterable[Path], also: Iterable[str] = ()) -> _Latest:
    """Finds the latest runs. An unreadable run counts as this machine's, so its error is shown."""
    other: Path | None = None
    empty: Path | None = None
    for folder in in_order(folders):
        outline = outline_of(_document_of(folder, also))
        if outline is None or (outline.is_own and outline.is_measured):
            return _Latest(folder, other, empty)
        if outline.is_measured:
            other = other or folder
        elif outline.is_own:
            empty = empty or folder
    return _Latest(None, other, empty)


def latest_run(below: Path, label: str | None = None, also: Iterable[str] = ()) -> Path:
    """Returns the folder of the latest run (with `label`, if given). Prefers runs of this machine
    with figures, then runs of other machines with figures. Raises InputError if there is no run."""
    also = tuple(also)
    folders = run_folders(below, also)
    labels = dict.fromkeys(folder.parent.name for folder in folders)
    if not labels:
        raise none_in(below)
    if label is not None:
        folders = [folder for folder in folders if folder.parent.name == label_name(label)]
    if not folders:
        near = hint(label or "", labels)
        raise InputError(f"{label!r} is not a file, and no run in {below} has that label{near}")
    found = _latest(folders, also)
    return found.own or found.other or in_order(folders)[0]


def _document_of(folder: Path, also: Iterable[str]) -> Path:
    path = run_file(folder)
    others = (folder / name for name in also) if not path.exists() else ()
    return next((other for other in others if other.exists()), path)


def none_in(folder: Path) -> InputError:
    """Returns the error for a folder without runs, which may hold a comparison instead."""
    if (folder / VARY_FILE).exists():
        return InputError(
            f"{folder} compares settings: linkgauge show {folder} reads it; its runs are kept "
            f"beside it, by setting, below {folder.parent.parent}"
        )
    return InputError(f"no runs in {folder}: measure one with linkgauge run")


def _began(folder: Path) -> tuple[str, int]:
    moment, _, number = folder.name.partition("-")
    return moment, int(number) if number.isdecimal() else 1


def own_run(below: Path = RESULTS, command: str = "show", say: _Say = lambda _: None) -> Path:
    """Returns this machine's latest run that has figures, and calls `say` if a later run has none.
    Without such a run, raises InputError, which suggests `linkgauge COMMAND` with another run."""
    found = _latest(run_folders(below))
    if found.own is not None:
        if found.empty is not None:
            say(f"passed over, because it measured nothing: {found.empty}")
        return found.own
    other = found.empty or latest_run(below)
    lacks = " with figures" if found.empty else ""
    raise InputError(
        f"{below} has no run of this machine ({this_host()}){lacks}; the latest one "
        f"{outline_of(run_file(other))}: linkgauge {command} {quote(str(other))}"
    )


def find_run(
    asked: Path | None,
    below: Path = RESULTS,
    command: str = "show",
    also: Iterable[str] = (),
    say: _Say = lambda _: None,
) -> Path:
    """Returns the path `asked` if it exists, else the latest run with this label; for None, this
    machine's latest run. Files named in `also` count as runs. Raises InputError without a run."""
    if asked is None:
        return own_run(below, command, say)
    if asked.exists():
        return asked
    if len(asked.parts) != 1:
        raise InputError(f"cannot read {asked}: {os.strerror(ENOENT)}")
    return latest_run(below, str(asked), also)


def one_run(asked: Path | None, command: str = "show") -> Path:
    """Returns the run that the user named; for a folder of runs, the latest run in it."""
    path = find_run(asked, command=command)
    return path if is_run(path) else latest_run(path)


def run_named(text: str) -> Path | None:
    """Returns the path of the run that a folder, file or label names, or None. A .json file is
    returned unread, so it may be no run."""
    path = Path(text)
    may_be = path.is_dir() or path.suffix == ".json" if path.exists() else len(path.parts) == 1
    try:
        return one_run(path) if may_be else None
    except InputError:
        return None


def place_of_run(file: Path) -> Path:
    """Returns the path by which users name a run: its folder, or `file` if it has another name."""
    return file.parent if file.name in (RUN_FILE, JOURNAL_FILE) else file


def run_file(path: Path) -> Path:
    """Returns a run's file: run.json or, if missing, the journal. Returns other files as given."""
    if not path.is_dir():
        return path
    whole = path / RUN_FILE
    return whole if whole.exists() else path / JOURNAL_FILE


def read_run(path: Path) -> Run:
    """Reads a run's file, its folder, or an archive of `linkgauge pack`. Raises InputError."""
    if path.name.endswith(PACKED):
        content, beside = _packed(path)
        return run_of(content, path, beside)
    path = run_file(path)
    try:
        return run_of(read_given(path, MOST_BYTES, begins=b"{"), path)
    except OSError as error:
        raise InputError(f"cannot read {error.filename or path}: {error.strerror}") from error


def run_of(data: bytes, path: Path, beside: Mapping[str, bytes] | None = None) -> Run:
    """Reads a run from `data`, the content of its file at `path`. `beside` holds the folder's other
    files if they are not on disk. Raises InputError with the path if the content is no run."""
    if data.count(b",") > MOST_VALUES:
        raise InputError(f"{path} has more than {MOST_VALUES} values: it is not a run")
    if path.suffix == ".jsonl" or data.startswith(b'{"record"'):
        try:
            return with_todays_ranges(state_of(records_of(data)).run())
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
    try:
        run = _decoded(data, path, beside)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise why_no_run(path, data, error) from error
    return with_todays_ranges(_checked(run, path))


class _Outline(StoredRun, frozen=True, kw_only=True):
    results: tuple[msgspec.Raw, ...]  # type: ignore[assignment]


def _decoded(data: bytes, path: Path, beside: Mapping[str, bytes] | None) -> Run:
    hook = decode_hook()
    if f'"{SCHEMA}"'.encode() not in data[:_HEAD]:  # each word is a pass over all of the file
        data = in_todays_words(data)
    try:
        outline = msgspec.json.decode(data, type=_Outline, dec_hook=hook)
        if outline.samples is msgspec.UNSET:
            decoder = msgspec.json.Decoder(Result, dec_hook=hook)
            once = Once()
            results = tuple(_read(decoder.decode(one), once) for one in outline.results)
        else:
            results = _with_samples(outline, outline.samples, path, beside)
    except (msgspec.DecodeError, UnicodeDecodeError):
        msgspec.json.decode(data, type=StoredRun, dec_hook=hook)  # names the place in the file
        raise
    return by_name(Run, outline, schema=SCHEMA, results=results)


def _with_samples(
    of: _Outline, file: SamplesFile, path: Path, beside: Mapping[str, bytes] | None
) -> tuple[Result, ...]:
    own = path.with_name(SAMPLES_BIN)
    name = own if beside is None else f"{SAMPLES_BIN} of {path}"
    try:
        content = read_given(own, MOST_SAMPLES) if beside is None else beside[SAMPLES_BIN]
    except (FileNotFoundError, KeyError) as error:
        remedy = f"copy it too, or take what `linkgauge pack` makes{lies_near(path)}"
        raise InputError(f"{name}, which has the samples, is missing: {remedy}") from error
    series = PackedSeries(name, content, file, of.id)
    reader = ResultReader(series, MOST_VALUES)
    results = tuple(map(reader.result, of.results))
    series.check_end()
    return results


def _read(result: Result, once: Once) -> Result:
    cells = (once.of(current(cell)) for cell in result.cells)
    return spread_texts(replace(result, cells=tuple(cells)))


def _packed(path: Path) -> tuple[bytes, Mapping[str, bytes]]:
    from linkgauge.machine.captures.archive import read_files

    files = read_files(path, "give what `linkgauge pack` wrote")
    found = [name for name in files if name.rpartition("/")[2] == RUN_FILE]
    if len(found) != 1:
        raise InputError(f"{path} holds {len(found) or 'no'} runs: unpack it (tar --zstd -x)")
    folder = found[0].removesuffix(RUN_FILE)
    beside = {name.removeprefix(folder): files[name] for name in files if name.startswith(folder)}
    return beside[RUN_FILE], beside


def read_kept(path: Path, kind: type[_Kept], schema: str) -> _Kept | None:
    """Reads a document of this schema; None for other files. Raises InputError if it is damaged."""
    try:
        with path.open("rb") as file:
            if f'"{schema.rpartition("/")[0]}/'.encode() not in file.read(_HEAD):
                return None
        data = in_todays_words(read_given(path, MOST_BYTES, begins=b"{"))
        return msgspec.json.decode(data, type=kind, dec_hook=decode_hook())
    except OSError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not what linkgauge writes as {schema}: {error}") from error


def _checked(run: Run, path: Path) -> Run:
    for result in run.results:
        for cell in result.cells:
            try:
                check_figures(cell)
            except InputError as error:
                which = cell_id(result, cell).name
                raise InputError(f"{path} is damaged: of {which}, {error}") from error
    return run
