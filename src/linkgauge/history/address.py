"""Finds where the history is: at a URL or in a file, or nowhere if it is turned off."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from linkgauge.model.errors import InputError

from . import NOWHERE, VARIABLE

_SECRETS = ("password", "sslpassword", "passfile", "sslkey")
_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
}


def address(asked: str | None = None) -> URL | None:
    """Returns the history's URL, or None if it is off. `asked` is a URL, a file, or `none`; if
    None, LINKGAUGE_HISTORY is used. Raises InputError, whose message shows no password."""
    text = asked if asked is not None else os.environ.get(VARIABLE, "")
    if text.strip().lower() == NOWHERE:
        return None
    if not text.strip():
        return _of_file(default_file())
    if "://" not in text:
        try:
            return _of_file(Path(text).expanduser())
        except RuntimeError as error:
            raise InputError(f"the history {text}: there is no such home folder") from error
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise InputError(f"the URL of the history is not understood: {_HOW}") from error
    driver = _DRIVERS.get(url.drivername.partition("+")[0])
    if driver is None:
        raise InputError(f"no history can be in {url.drivername}: {_HOW}")
    url = url.set(drivername=driver)
    if driver.startswith("sqlite") and url.database in (None, "", ":memory:"):
        raise InputError(f"a history in SQLite needs a file: {_HOW}")
    return url


_HOW = "give sqlite:///FILE, postgresql://USER@HOST/DATABASE, a file, or none"


def shown(url: URL) -> str:
    """Returns the history's file, or its URL without secrets."""
    if url.drivername.startswith("sqlite"):
        return str(url.database)
    plain = url.set(drivername="postgresql").difference_update_query(_SECRETS)
    return plain.render_as_string(hide_password=True).replace("%2F", "/")


def without_secrets(text: str, url: URL) -> str:
    """Returns the text on one line, with `***` in place of secrets that are in the URL."""
    line = " ".join(text.split())
    queried = [url.query[name] for name in _SECRETS if name in url.query]
    secrets = [url.password, *(one if isinstance(one, str) else " ".join(one) for one in queried)]
    for secret in secrets:
        if secret:
            line = line.replace(str(secret), "***")
    return line


def default_file() -> Path:
    """Returns linkgauge/history.db in $XDG_DATA_HOME, else in ~/.local/share. Raises InputError
    without a home folder."""
    base = os.environ.get("XDG_DATA_HOME") or ""
    # The XDG specification requires relative paths to be ignored.
    if base.startswith("/"):
        return Path(base) / "linkgauge" / "history.db"
    try:
        return Path.home() / ".local" / "share" / "linkgauge" / "history.db"
    except RuntimeError as error:
        raise InputError(f"there is no home folder for the history: set {VARIABLE}") from error


def _of_file(path: Path) -> URL:
    return URL.create("sqlite+pysqlite", database=str(path.absolute()))
