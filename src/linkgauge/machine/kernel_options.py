"""Removes secrets from the kernel's command line. It must load fast: all workers import it."""

from __future__ import annotations

import re

REMOVED = "(removed)"
OPTION = re.compile(r'(?:"[^"]*"|\S)+')
"""An option of the kernel's command line; it may contain spaces in quotes."""
_SECRET = re.compile(
    r"(?<!by)pass(?!through)|secret|token|key|cred|psk|pwd|pw(?![a-z])|(?<![a-z])auth(?![a-z_])",
    re.IGNORECASE,
)
# A password may hold @, and in an iSCSI target (`iscsi:user:password@host`) slashes, too.
_LOGIN = re.compile(r"(?<=://)[^\s/]+@|(?<=\biscsi:)\S+@")


def command_line(content: bytes) -> bytes:
    """Removes secrets, as in `systemd.setenv=API_TOKEN=x`, and the user names in URLs."""
    text = content.decode(errors="surrogateescape")
    text = OPTION.sub(lambda match: _option(match[0]), _LOGIN.sub(f"{REMOVED}@", text))
    return text.encode(errors="surrogateescape")


def _option(text: str) -> str:
    name, equals, _ = text.partition("=")
    if equals and _SECRET.search(text.rpartition("=")[0]):
        return f"{name}={REMOVED}"
    return text
