"""Removes secrets and all that readers do not need from captured trees."""

from __future__ import annotations

import re
from collections.abc import Callable

from .dimms import ENTRIES, TABLE, split_table

REMOVED = "(removed)"
_REMOVED = REMOVED.encode()
OPTION = re.compile(r'(?:"[^"]*"|\S)+')
"""An option of the kernel's command line; it may contain spaces in quotes."""
_SECRET = re.compile(
    r"(?<!by)pass(?!through)|secret|token|key|cred|psk|pwd|pw(?![a-z])|(?<![a-z])auth(?![a-z_])",
    re.IGNORECASE,
)
# A password may hold @, and in an iSCSI target (`iscsi:user:password@host`) slashes, too.
_LOGIN = re.compile(r"(?<=://)[^\s/]+@|(?<=\biscsi:)\S+@")
_DIMM, _END = 17, 127


def without_secrets(path: str, content: bytes) -> bytes:
    """The content of a file without secrets."""
    for pattern, change in _CHANGES:
        if re.fullmatch(pattern, path):
            return change(content)
    return content


def command_line(content: bytes) -> bytes:
    """The kernel's command line without values of options whose name suggests a secret, and without
    users in addresses. An option may contain another one (`systemd.setenv=API_TOKEN=x`,
    `systemd.set_credential=a:x`)."""
    text = content.decode(errors="surrogateescape")
    text = OPTION.sub(lambda match: _option(match[0]), _LOGIN.sub(f"{REMOVED}@", text))
    return text.encode(errors="surrogateescape")


def _option(text: str) -> str:
    name, equals, _ = text.partition("=")
    if equals and _SECRET.search(text.rpartition("=")[0]):
        return f"{name}={REMOVED}"
    return text


def _only(pattern: bytes) -> Callable[[bytes], bytes]:
    """Keeps the lines whose beginning matches the pattern."""
    lines = re.compile(rb"^(?:" + pattern + rb").*\n?", re.MULTILINE)
    return lambda content: b"".join(lines.findall(content))


def _mounts(content: bytes) -> bytes:
    """Keeps the mounts of the root and of control groups, and removes logins of file servers."""
    kept = _only(rb"\S+ (?:/ |\S+ (?:cgroup2?|cpuset) )")(content)
    return re.sub(rb"(?<=[ ,])(user(?:name)?|pass(?:word)?)=[^,\s]*", rb"\1=" + _REMOVED, kept)


def _environment(content: bytes) -> bytes:
    """Keeps only the variables of the first process by which container runtimes identify
    themselves."""
    return b"".join(
        b"%s\0" % variable
        for variable in content.split(b"\0")
        if variable.startswith(b"container=")
    )


def _dimms(table: bytes) -> bytes:
    """Keeps SMBIOS's memory devices. OEM strings may hold credentials, other structures serial
    numbers."""
    return b"".join(one for one in split_table(table) if one[0] in (_DIMM, _END))


def _tool(content: bytes) -> bytes:
    """Removes from nvidia-smi's output the command lines of processes, and from ethtool's the
    password that wakes an Ethernet adapter, which root can see."""
    hidden = rb"(?m)^(\s*(?:Name\s*|SecureOn password): ).*$"
    return re.sub(hidden, rb"\1" + _REMOVED, content)


_CHANGES: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    (r"proc/cmdline", command_line),
    (r"proc/[0-9]+/environ", _environment),
    (r"proc/(?:self/|[0-9]+/)?mounts", _mounts),
    (r"proc/(?:self|[0-9]+)/status", _only(rb"(?:Cpus|Mems)_allowed")),
    (re.escape(TABLE), _dimms),
    (re.escape(ENTRIES) + r"/.*", lambda content: content if content[:1] == b"\x11" else b""),
    (r"linkgauge/tools/.*", _tool),
)
