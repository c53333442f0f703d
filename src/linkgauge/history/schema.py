"""The version of a store, and how an empty database becomes one. A later version brings what an
earlier one holds to its own tables here."""

from __future__ import annotations

from sqlalchemy import Connection, insert, inspect, select

from linkgauge.model.errors import InputError

from .tables import metadata, versions

VERSION = "1"


def version_of(connection: Connection) -> str | None:
    """The store's version; None of an empty database."""
    if not inspect(connection).has_table(versions.name):
        return None
    return connection.execute(select(versions.c.version_num)).scalar()


def bring_up(connection: Connection, shown: str) -> None:
    """Makes the tables, in the connection's transaction, which is the only one that writes, unless
    they are there. Raises InputError for a store of a later version."""
    found = version_of(connection)
    if found == VERSION:
        return
    if found is not None:
        raise InputError(
            f"the history {shown} is of a later linkgauge (version {found}, not {VERSION}): use "
            "that one"
        )
    metadata.create_all(connection)
    connection.execute(insert(versions).values(version_num=VERSION))
