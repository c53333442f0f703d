"""Removes secrets from the files of a capture, and also names if the capture is anonymous."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.shareable import KERNEL, TOOL_FILE

from ..dimms import ENTRIES, TABLE, split_table
from ..kernel_options import REMOVED, command_line
from ..pci_config import PLACES, serial_number
from ..read_inventory import ACCELERATORS
from ..software import SOFTWARE, Software
from ..tree import Captured
from .anonymizer import Anonymizer
from .manifest import MANIFEST, Manifest

_REMOVED = REMOVED.encode()
_HOSTNAME = "proc/sys/kernel/hostname"
_DKMS = re.compile(r"/?(?:var/lib/dkms|usr/src)(?:/|$)")
"""A pattern of DKMS folders. Their names are modules, versions and kernels."""
_FIXED = re.compile(r"/?(?:etc|linkgauge|opt|proc|run|usr|var|sys(?!/fs/cgroup))(?:/|$)")
"""A pattern of folders in which people choose no names. Control groups are not among them."""
_GROUP = re.compile(r"/?sys/fs/cgroup(?:/|$)")
_TOOLS = re.compile(r"linkgauge/tools/")
_GROUPS = re.compile(
    r"sys|fs|cgroup|unified|systemd|cpu|cpuacct|cpuset|memory|blkio|devices|freezer|hugetlb|net|cls"
    r"|prio|perf|event|pids|rdma|misc|system|user|session|machine|init|app|slice|scope|service"
    r"|payload|monitor|docker|kubepods|burstable|besteffort|guaranteed|pod|libpod|podman|conmon"
    r"|containerd|cri|crio|lxc|slurm|slurmstepd|uid|job|step|task|batch|emulator|vcpu|qemu|libvirt",
    re.IGNORECASE,
)
"""A pattern of the words that systemd, schedulers and runtimes of containers use for groups."""
_STEP = re.compile(
    r"(?P<kept>(?:host|group|id|sn)-[0-9]+|(?:pod)?(?:[0-9a-f]{32,}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})|x2d)|[A-Za-z0-9]+"
)
"""A pattern of the words in a path of control groups. `kept` matches pseudonyms and ids."""
_DIMM, _END = 17, 127


def _only(pattern: bytes) -> Callable[[bytes], bytes]:
    lines = re.compile(rb"^(?:" + pattern + rb").*\n?", re.MULTILINE)
    return lambda content: b"".join(lines.findall(content))


def _mounts(content: bytes) -> bytes:
    kept = _only(rb"\S+ (?:/ |\S+ (?:cgroup2?|cpuset) )")(content)
    return re.sub(rb"(?<=[ ,])(user(?:name)?|pass(?:word)?)=[^,\s]*", rb"\1=" + _REMOVED, kept)


def _environment(content: bytes) -> bytes:
    return b"".join(
        b"%s\0" % variable
        for variable in content.split(b"\0")
        if variable.startswith(b"container=")
    )


def _dimms(table: bytes) -> bytes:
    """Keeps only DIMMs: other parts of an SMBIOS table may hold passwords or serial numbers."""
    return b"".join(one for one in split_table(table) if one[0] in (_DIMM, _END))


def _tool(content: bytes) -> bytes:
    hidden = rb"(?m)^(\s*(?:Name\s*|SecureOn password): ).*$"
    return re.sub(hidden, rb"\1" + _REMOVED, content)


# What replaces names: of a text, each a function of the anonymiser.


def _uname(who: Anonymizer, text: str) -> str:
    """Replaces names in the output of `uname -a`, whose second word is the host's name."""
    text = re.sub(r"(?<=^Linux )\S+", lambda name: who.hostname(name[0]), text)
    return who.prose(re.sub(r"\S+@\S+", REMOVED, text))


def _groups(who: Anonymizer, text: str) -> str:
    return re.sub(r"/.*", lambda match: _group(who, match[0]), text)


def _group(who: Anonymizer, path: str) -> str:
    """Replaces words in a control group's path, except words of common software (`_GROUPS`)."""

    def kept(word: re.Match[str]) -> str:
        is_known = word["kept"] or _GROUPS.fullmatch(word[0])
        return word[0] if is_known else who.name("group", word[0])

    return _STEP.sub(kept, "/".join(map(who.names, path.split("/"))))


def _mounted(who: Anonymizer, text: str) -> str:
    return re.sub(
        r"(?m)^(\S+) (\S+)(.*)$",
        lambda line: (
            f"{who.steps(line[1])} {_path(who, line[2], line[2])}{who.identifiers(line[3])}"
        ),
        text,
    )


def _version(who: Anonymizer, text: str) -> str:
    return who.identifiers(re.sub(r"\(\S+@\S+\)", REMOVED, text))


_DOCUMENTS = {
    MANIFEST: Manifest,
    SOFTWARE: Software,
    ACCELERATORS: tuple[Accelerator, ...],
}


def _own(kind: type) -> Callable[[Anonymizer, bytes], bytes]:
    def changed(who: Anonymizer, content: bytes) -> bytes:
        try:
            value: object = msgspec.json.decode(content, type=kind, dec_hook=decode_hook())
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return b""
        document = msgspec.json.encode(who.texts.shared(value, kind), enc_hook=encode_hook)
        return msgspec.json.format(document)

    return changed


def _text(change: Callable[[Anonymizer, str], str]) -> Callable[[Anonymizer, bytes], bytes]:
    return lambda who, content: change(who, content.decode(errors="surrogateescape")).encode(
        errors="surrogateescape"
    )


def _config_space(who: Anonymizer, content: bytes) -> bytes:
    place = serial_number(content)
    if place is None or not any(content[place]):
        return content
    serial = content[place][::-1].hex()
    number = who.number("serial", serial).to_bytes(8, "little")
    return content[: place.start] + number[: len(content[place])] + content[place.stop :]


def _serials(who: Anonymizer, table: bytes) -> bytes:
    return b"".join(_serial(who, structure) for structure in split_table(table))


def _serial(who: Anonymizer, structure: bytes) -> bytes:
    length = structure[1]
    if structure[0] != _DIMM or min(length, len(structure)) < 0x1A:
        return structure
    strings = structure[length:].split(b"\0")
    for index in {structure[0x18], structure[0x19]} - {0}:
        if index <= len(strings):
            strings[index - 1] = who.name("sn", strings[index - 1].hex()).encode()
    return structure[:length] + b"\0".join(strings)


class FileRule(NamedTuple):
    """A rule for files whose path matches `path`. `removed` changes their content in every capture,
    and `replaced` changes it further in an anonymous capture. None changes nothing."""

    path: str
    removed: Callable[[bytes], bytes] | None
    replaced: Callable[[Anonymizer, bytes], bytes] | None


_ANY, _SENTENCES = _text(Anonymizer.identifiers), _text(Anonymizer.prose)
RULES = (
    # Versions, which look like addresses, and text that is the same everywhere.
    FileRule(
        r"(?:etc|usr/lib)/os-release|proc/sys/kernel/osrelease|sys/module/[^/]+/(?:src)?version"
        r"|usr/local/cuda[^/]*/version\.json|opt/.*/(?:\.info/version|version\.json)"
        rf"|linkgauge/software\.json|{'|'.join(map(re.escape, PLACES))}",
        None, None,
    ),
    FileRule(r"linkgauge/tools/dkms_status.*", _tool, None),
    FileRule(r".*/config", None, _config_space),
    FileRule(re.escape(TABLE), _dimms, _serials),
    FileRule(
        re.escape(ENTRIES) + r"/.*", lambda entry: entry if entry[:1] == b"\x11" else b"", _serials
    ),
    FileRule(_HOSTNAME, None, _text(Anonymizer.hostname)),
    FileRule(r"proc/cmdline", command_line, _text(lambda who, text: who.texts.text(KERNEL, text))),
    FileRule(r"proc/[0-9]+/environ", _environment, _ANY),
    FileRule(r"proc/(?:self|[0-9]+)/status", _only(rb"(?:Cpus|Mems)_allowed"), _ANY),
    FileRule(r"proc/(?:self|[0-9]+)/(?:cgroup|cpuset)", None, _text(_groups)),
    FileRule(r"proc/(?:self/|[0-9]+/)?mounts", _mounts, _text(_mounted)),
    FileRule(r"proc/version|proc/driver/nvidia/version", None, _text(_version)),
    *(FileRule(re.escape(path), None, _own(kind)) for path, kind in _DOCUMENTS.items()),
    FileRule(r"linkgauge/tools/uname.*", _tool, _text(_uname)),
    FileRule(r"linkgauge/tools/.*", _tool, _SENTENCES),
    FileRule(r"linkgauge/.*|sys/(?:class|devices/virtual)/dmi/.*", None, _SENTENCES),
    FileRule(r"(?s:.*)", None, _ANY),
)  # fmt: skip
"""The rules for all files. The first rule whose path matches is applied."""


def _rule(path: str) -> FileRule:
    return next(rule for rule in RULES if re.fullmatch(rule.path, path))


def without_secrets(path: str, content: bytes) -> bytes:
    removed = _rule(path).removed
    return content if removed is None else removed(content)


def _servers(tree: Captured) -> Iterator[str]:
    """Yields servers in mounts and the command line: `nfs7:/srv`, `mon1:6789:/`, `//nas/share`."""
    for path in ("proc/self/mounts", "proc/mounts", "proc/cmdline"):
        text = tree.text(path) or ""
        yield from re.findall(r"(?m)(?:^|:)//(?:[^\s/@]*@)?([\w.-]+)", text)
        for sources in re.findall(r"(?m)^([^\s/=]+):/", text):
            yield from re.findall(r"[a-zA-Z][\w.-]+", sources)


def anonymize(tree: Captured, known: Iterable[str] = ()) -> Captured:
    """Replaces names in files, links and paths. `known` are the UUIDs of devices."""
    who = Anonymizer(tree.text(_HOSTNAME) or "", {"id": known}, _servers(tree))
    # Paths come first, sorted, so that numbered pseudonyms keep their order.
    paths = {
        path: _path(who, path, path, is_file=path in tree.files)
        for path in sorted({*tree.files, *tree.links, *tree.folders})
    }
    rules = {path: _rule(path).replaced for path in sorted(tree.files)}
    files = ((path, tree.files[path], replaced) for path, replaced in rules.items())
    return Captured(
        {paths[path]: replaced(who, old) if replaced else old for path, old, replaced in files},
        {paths[path]: _path(who, path, to) for path, to in sorted(tree.links.items())},
        [paths[path] for path in sorted(tree.folders) if path],
    )


def _path(who: Anonymizer, place: str, path: str, *, is_file: bool = False) -> str:
    """Replaces names in a path that lies at `place`; in a file's name, only identifiers."""
    if _TOOLS.match(place):
        return who.texts.text(TOOL_FILE, path)
    if _DKMS.match(place):
        return path
    if is_file:
        folder, slash, name = path.rpartition("/")
        return f"{_path(who, folder, folder)}{slash}{who.steps(name, named=False)}"
    if _GROUP.match(place):
        return _group(who, path)
    return who.steps(path, named=not _FIXED.match(place))
