"""Makes text from other sources harmless in output: `printable` for text, `escaped` for JSON."""

from __future__ import annotations

import re
from functools import cache
from typing import IO, Any, ClassVar

MARK = "\ufffd"
"""The character that replaces characters that are not shown."""
MOST_ITEMS, MOST_REPR = 2, 60
"""The most items of a collection, and characters of a text, that a brief `repr` shows."""
_BRACKET = re.compile(r"#(?=#(?:vso)?\[)")
_COMMAND = re.compile(rf"(^[^\S\n]*):(?=:[A-Za-z])|{_BRACKET.pattern}", re.MULTILINE)
"""The texts that CI systems take for commands. GitHub's runner knows `::error::` at the beginning
of a line and `##[error]` anywhere in it (actions/runner, ActionCommand.cs). Azure's agent knows
`##vso[`."""

_PLAIN = bytes(range(0x7F))
"""The ASCII that JSON leaves harmless: it has escapes for control characters, except for DEL."""


def printable(text: str, keep: str = "") -> str:
    """Returns `text` with `MARK` in place of each character that is not printable (except those in
    `keep`), and in place of the first character of a CI system's command."""
    if not text.isprintable():
        hidden = [ord(c) for c in set(text).difference(keep) if not c.isprintable()]
        text = text.translate(dict.fromkeys(hidden, MARK))
    if "::" in text or "##" in text:
        text = _COMMAND.sub(lambda found: f"{found[1] or ''}{MARK}", text)
    return text


class BriefRepr:
    """A base of structs: their `repr` is one short line, with the lengths of long collections."""

    __slots__ = ()
    __struct_fields__: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        fields = (f"{name}={_brief(getattr(self, name))}" for name in self.__struct_fields__)
        return printable(f"{type(self).__name__}({', '.join(fields)})")


def _brief(value: Any) -> str:
    kind = type(value).__name__
    if hasattr(value, "__struct_fields__"):
        return f"<{kind}>"
    if isinstance(value, dict) or (isinstance(value, tuple) and len(value) > MOST_ITEMS):
        return f"<{kind} of {len(value)}>"
    if isinstance(value, tuple):
        return f"({', '.join(map(_brief, value))}{',' * (len(value) == 1)})"
    return repr(value[:MOST_REPR] + "…" if isinstance(value, str) and value[MOST_REPR:] else value)


def all_printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: all_printable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [all_printable(one) for one in value]
    return value


def escaped(document: bytes) -> bytes:
    """Returns equal JSON, with escapes for the characters that `printable` would replace."""
    is_plain = document.isascii() and b"\x7f" not in document  # as most are, found at once
    is_harmless = is_plain or document.translate(None, _PLAIN).decode().isprintable()
    if is_harmless and b"##" not in document:
        return document
    text = _beyond().sub(_shown, document.decode())
    return _BRACKET.sub(lambda _: _escape("#"), text).encode()


@cache
def _beyond() -> re.Pattern[str]:
    return re.compile("[\x7f-\U0010ffff]")


def _shown(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else _escape(found[0])


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def unwrapped(stream: IO[str]) -> IO[str]:
    while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = inner
    return stream
