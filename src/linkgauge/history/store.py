"""Opens the history. Errors of the database become messages of one line."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from linkgauge.machine.private import new_private, private_folder
from linkgauge.model.errors import InputError, LinkgaugeError, MissingPackage

from .address import shown, without_secrets
from .tables import VERSION, metadata, versions

_AT_ONCE = 500
"""The largest number of values in one statement. SQLite's oldest versions accept 999."""
T = TypeVar("T")
BUSY = 20.0
"""Seconds to wait for another writer."""
CONNECT = 5
"""Seconds to wait for a connection to a server."""
_NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "fuse.sshfs")
"""Network file systems. Other machines do not see the locks of SQLite on them."""

_LOCK = {"key": 0x6C67_6869}
"""The key of the advisory lock in PostgreSQL. The lock keeps writers apart while tables change or
runs are removed."""


class StoreError(LinkgaugeError):
    """The history cannot be read or written. Its content is unchanged."""


class Store:
    """An open history. Its methods `reading` and `writing` begin transactions."""

    def __init__(self, engine: Engine, url: URL, read_only: Path | None = None) -> None:
        self._read_only = read_only
        self._engine = engine
        self._url = url
        self.shown = shown(url)

    @property
    def is_postgresql(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with problems(self._url), self._engine.connect() as connection:
            if not self.is_postgresql:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Connection]:
        """Begins a transaction. `alone` excludes other writers. Raises StoreError if read-only."""
        if self._read_only is not None:
            said = f"{self._read_only} cannot be written to, so it can only be read"
            raise StoreError(_line(self._url, said))
        with problems(self._url), self._engine.begin() as connection:
            if self.is_postgresql:
                shared = "" if alone else "_shared"
                connection.execute(text(f"SELECT pg_advisory_xact_lock{shared}(:key)"), _LOCK)
            else:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def compact(self) -> None:
        with problems(self._url), self._engine.connect() as connection:
            if not self.is_postgresql:
                connection.exec_driver_sql("VACUUM")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def is_there(url: URL) -> bool:
    """Whether the history exists. A server is not contacted: its history counts as existing."""
    if not url.drivername.startswith("sqlite"):
        return True
    try:
        return Path(str(url.database)).exists()
    except OSError:  # no file can have such a name
        return False


@contextmanager
def opened(url: URL, *, must_exist: bool = False) -> Iterator[Store]:
    """Opens the history and creates missing tables. Raises InputError if a later linkgauge wrote
    the history, or if it is missing and `must_exist` is true. Raises MissingPackage if PostgreSQL's
    driver is missing, and StoreError for other errors."""
    is_file = url.drivername.startswith("sqlite")
    path = Path(str(url.database))
    if must_exist and not is_there(url):
        raise InputError(
            f"there is no history yet ({path}): linkgauge run adds to it; linkgauge history import "
            "DIR adds earlier runs"
        )
    with problems(url):
        read_only = _unwritable(path) if is_file else None
        if read_only is not None:
            engine = _of_unwritable(path)
        else:
            engine = _of_file(url, path) if is_file else _of_server(url)
    store = Store(engine, url, read_only)
    try:
        _bring_up(store)
        yield store
    finally:
        engine.dispose()


def _version_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table(versions.name):
        return None
    return connection.execute(select(versions.c.version_num)).scalar()


def _bring_up(store: Store) -> None:
    with store.reading() as connection:
        found = _version_of(connection)
    if found is None:
        with store.writing(alone=True) as connection:
            found = _version_of(connection)  # another process may have made them since
            if found is None:
                metadata.create_all(connection)
                connection.execute(insert(versions).values(version_num=VERSION))
                found = VERSION
    if found != VERSION:
        raise InputError(
            f"the history {store.shown} is of a later linkgauge (version {found}, not {VERSION}): "
            "use that one"
        )


def _unwritable(path: Path) -> Path | None:
    """Returns the file or its folder if it is not writable; None if both are writable."""
    places = (path.parent, path) if path.is_file() else ()
    return next((place for place in places if not os.access(place, os.W_OK)), None)


def _of_unwritable(path: Path) -> Engine:
    """Opens a file that cannot be written, without locks if it has no write-ahead log."""
    log = path.with_name(f"{path.name}-wal")
    is_whole = not log.exists() or not log.stat().st_size
    query = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if is_whole else {})
    url = URL.create("sqlite", database=path.absolute().as_uri(), query=query)
    engine = create_engine(url, connect_args={"timeout": BUSY})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    return engine


def _of_file(url: URL, path: Path) -> Engine:
    private_folder(path.parent)
    with suppress(FileExistsError):
        new_private(path).close()  # before SQLite makes it, and its journal like it
    engine = create_engine(url, connect_args={"timeout": BUSY})
    journal = "DELETE" if is_remote(path) else "WAL"

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say
        for pragma in (f"journal_mode = {journal}", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _of_server(url: URL) -> Engine:
    try:
        return create_engine(url, connect_args={"connect_timeout": CONNECT})
    except ImportError as error:
        raise MissingPackage("psycopg", "postgres") from error


def is_remote(path: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether a file is on a network file system, where WAL fails (sqlite.org/wal.html)."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return False
    resolved, best, kind = path.resolve(), -1, ""
    for line in lines:
        _, where, of, *_ = [*line.split(" "), "", "", ""]
        place = Path(where.replace("\\040", " "))
        if resolved.is_relative_to(place) and len(place.parts) > best:
            best, kind = len(place.parts), of
    return kind.startswith(_NETWORK)


@contextmanager
def problems(url: URL) -> Iterator[None]:
    """Turns errors of the database and of files into StoreError: one line without secrets."""
    try:
        yield
    except LinkgaugeError:
        raise
    except DBAPIError as error:
        said = str(error.orig).partition("\n")[0] if error.orig else type(error).__name__
        raise StoreError(_line(url, said)) from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise StoreError(_line(url, str(error))) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:  # sqlite3 decodes its messages, too
        raise StoreError(_line(url, f"it is damaged: {error}")) from error
    except OSError as error:
        raise StoreError(_line(url, error.strerror or str(error))) from error


def _line(url: URL, said: str) -> str:
    return without_secrets(f"the history {shown(url)} is not usable: {said}", url)


def in_parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(values), _AT_ONCE):
        yield values[begin : begin + _AT_ONCE]


def rows_in(
    connection: Connection, asked: Select[Any], column: ColumnElement[Any], values: Iterable[object]
) -> Iterator[Any]:
    """Yields rows whose `column` is in `values`, even if these are too many for one statement."""
    for some in in_parts(list(values)):
        yield from connection.execute(asked.where(column.in_(some))).all()


def columns_of(connection: Connection, table: Table) -> set[str]:
    no_row = [column == -1 for column in table.primary_key]
    return {*connection.execute(select(text("*")).select_from(table).where(*no_row)).keys()}


def add_columns(connection: Connection, table: Table) -> None:
    """Adds the columns that the database's table lacks, if an earlier version created it."""
    there, dialect = columns_of(connection, table), connection.dialect
    form = "ADD COLUMN IF NOT EXISTS" if dialect.name == "postgresql" else "ADD COLUMN"
    for column in table.columns:
        if column.name not in there:
            kind = column.type.compile(dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} {form} {column.name} {kind}")
