"""The version of a store, and how it is brought to this one.

alembic is loaded only where a store has another version: it takes longer than adding a run.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from linkgauge.model.errors import InputError

VERSION = "1"
"""The newest file of migrations/versions/."""
EARLIER: tuple[str, ...] = ()
"""The versions that there are migrations from, the first one first."""
VERSION_TABLE = "linkgauge_version"
MIGRATIONS = Path(__file__).parent / "migrations"


def version_of(connection: Connection) -> str | None:
    """The store's version; None of an empty database."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return found.scalar()


def bring_up(connection: Connection, shown: str) -> None:
    """Migrates to this version, in the connection's transaction, which is the only one that writes,
    unless the store has it. Raises InputError for a store of a later version."""
    found = version_of(connection)
    if found == VERSION:
        return
    if found is not None and found not in EARLIER:
        raise InputError(
            f"the history {shown} is of a later linkgauge (version {found}, not {VERSION}): use "
            "that one"
        )
    _migrate(connection)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes.update(connection=connection, version_table=VERSION_TABLE)
    command.upgrade(config, "head")
