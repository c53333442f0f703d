"""Reads files that a user names, up to a maximum size, and explains YAML errors."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from linkgauge.model.errors import InputError

if TYPE_CHECKING:
    import yaml

MOST_YAML = 1 << 20
"""The largest size of a YAML file in bytes."""

_CHUNK = 1 << 24


def read_given(path: Path, most: int, begins: bytes = b"") -> bytes:
    """Reads a file. If it does not begin with `begins`, returns only its first `len(begins)` bytes.
    Raises OSError, and InputError for more than `most` bytes or for a pipe without a writer."""
    # Not to wait for a pipe's writer: to wait for what a writer has to say is another matter.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with os.fdopen(descriptor, "rb") as file:
        os.set_blocking(descriptor, True)
        content = file.read(len(begins))
        kind, size = os.fstat(descriptor).st_mode, os.fstat(descriptor).st_size
        if content == begins and size <= most:
            # Of a file, all in one piece: a second copy of a large one takes as much again.
            if stat.S_ISREG(kind):
                file.seek(0)
                content = b""
            content += _read(file, most + 1 - len(content), max(size, _CHUNK))
        if not content and stat.S_ISFIFO(kind):
            raise InputError(f"{path} is a pipe that no program writes to")
    if len(content) > most or (content == begins and size > most):
        raise InputError(f"{path} has more than {most} bytes: give a smaller file")
    return content


def _read(file: BinaryIO, most: int, chunk: int) -> bytes:
    parts = []
    while most > 0 and (part := file.read(min(most, chunk))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def encodable(tree: object) -> object:
    """Returns `tree` if JSON can express it. Raises UnicodeEncodeError for half a surrogate pair,
    RecursionError for a tree that contains itself, and TypeError for a key that is no string."""
    msgspec.json.encode(tree)
    return tree


def yaml_problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, TypeError):
        return "a key is no text: quote on, off, yes and no"
    if isinstance(error, UnicodeEncodeError):
        return "it has half of a character"
    return getattr(error, "problem", None) or "it has a control character"


Entry = tuple[str, dict[str, str]]
"""The file and line of an entry, and its fields."""


def entries_in(path: Path, what: str, fields: Sequence[str]) -> list[Entry]:
    """Reads the list below a file's only key, `what` + `s`. Raises InputError with the line."""
    try:
        text = read_given(path, MOST_YAML).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"cannot read {what}s {str(path)!r}: {reason}") from error
    return entries_of(text, path.name, what, fields)


def entries_of(text: str, name: str, what: str, fields: Sequence[str]) -> list[Entry]:
    """Reads the entries in a YAML text as `entries_in` does. `name` names the text in errors."""
    import yaml  # takes long to load

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f" line {mark.line + 1}" if mark else ""
        raise InputError(f"{name}{at}: not YAML: {yaml_problem(error)}") from error
    if not isinstance(root, yaml.MappingNode) or [k.value for k, _ in root.value] != [f"{what}s"]:
        raise InputError(f"{name}: expected a list of {what}s below '{what}s:'")
    entries = root.value[0][1]
    if not isinstance(entries, yaml.SequenceNode):
        raise InputError(f"{name} {_line(entries)}: expected a list of {what}s, each after '- '")
    return [_fields(node, name, what, fields) for node in entries.value]


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _fields(node: yaml.Node, name: str, what: str, known: Sequence[str]) -> Entry:
    import yaml

    where = f"{name} {_line(node)}"
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{where}: a {what} has the fields {', '.join(known)}")
    fields: dict[str, str] = {}
    for key, value in node.value:
        at = f"{name} {_line(key)}"
        if not isinstance(key, yaml.ScalarNode):
            raise InputError(f"{at}: a field name must be one of {', '.join(known)}")
        if key.value not in known:
            raise InputError(
                f"{at}: unknown field {key.value!r}: the fields are {', '.join(known)}"
            )
        if key.value in fields:
            raise InputError(f"{at}: {key.value} appears twice")
        if not isinstance(value, yaml.ScalarNode) or not value.value:
            raise InputError(f"{at}: {key.value} must be a string")
        fields[key.value] = value.value
    return where, fields
