"""Replaces words that identify a machine or its owner in a run's files. A word has the same
pseudonym in all files.

The words that are replaced in a captured machine are also replaced here. Further words are the
run's label, paths, names of users, and the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from linkgauge.backends import KNOWN
from linkgauge.backends.sim.description import shipped
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.engine.kept.folder import label_name
from linkgauge.engine.kept.journal import RUN_FILE
from linkgauge.engine.kept.runs import run_of
from linkgauge.engine.profiles import PROFILES
from linkgauge.machine.captures.anonymizer import Anonymizer, FieldRule, is_distinctive
from linkgauge.machine.kernel_options import REMOVED
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.notation import encode_hook, parse_transfers
from linkgauge.model.printable import escaped
from linkgauge.report.files import document_of

_STRUCTURE = frozenset((
    "schema", "record", "id", "benchmark", "backend", "unit", "better", "status", "verdict",
    "stopped", "definition", "kind", "phase", "basis", "code", "report", "operation", "transfers",
    "memory", "pci", "address", "parent", "started", "finished", "resumed", "profile", "commit",
    "linkgauge", "python", "driver", "firmware", "library", "version", "architecture", "isa",
    "sha256",
))  # fmt: skip
"""The fields that hold linkgauge's own words, notation, times and versions."""
_NAMED = re.compile(r"serial|uuid|guid|asset|owner|contact|user|site|rack|tag|name", re.IGNORECASE)
"""A pattern of keys in hardware.yml, a file that a person fills in. Values of these keys are
names."""
_USUAL = ("default", "copy", "latency", "traffic", "vary", "scale", "as", "sim", "linkgauge", "run")
"""Labels and words that identify nobody."""
_HARMLESS = re.compile(r"--?[a-z][a-z-]*|[a-z0-9_]+:[0-9]+|[0-9.]+[a-zA-Z%]{0,3}", re.ASCII)
_VALUE = re.compile(r"--[a-z-]+=")
"""A pattern of an option that stands before its value in the same argument."""
_USER = re.compile(r"""/(?:home|Users)/([^/\s"'\\]+)""")
_PATH = re.compile(
    r"""(?P<quote>["'])(?P<quoted>(?:~|\.{1,2})?/[^"']*)(?P=quote)"""
    r"""|(?<![\w.:<>%*/~+-])(?P<path>(?:~[\w.-]*|\.{1,2})?/(?![\s/])[^\s"'<>|;,:()\[\]{}]+)"""
)
_SYSTEM = re.compile(r"/(?:proc|sys|dev|usr|etc|lib|lib64|bin|sbin|boot)(?:/|$)")
"""A pattern of folders whose names no person chose."""
_ENVIRONMENT = ("USER", "LOGNAME", "SUDO_USER")


@cache
def _public() -> frozenset[str]:
    """Returns linkgauge's own words. They need no pseudonym."""
    return frozenset({*_USUAL, *KNOWN, "host", *CATALOG, *shipped(), *PROFILES})


def _learned(run: Run, texts: Iterable[str]) -> dict[str, list[str]]:
    """Returns the words that identify the machine's owner, by kind: identifiers of devices, the
    label, users, and typed arguments. A word of several kinds belongs to the first."""
    inventories = filter(None, (run.machine.inventory, run.after))
    ids = [device.uuid for device in run.machine.all_devices]
    ids += [one.uuid for each in inventories for one in each.accelerators]
    users = {user for text in texts for user in _USER.findall(text)}
    users |= {os.environ.get(name, "") for name in _ENVIRONMENT}
    typed = (_VALUE.sub("", word) for word in run.command[1:])
    usual = {*_USUAL, "root"}

    def new(words: Iterable[str]) -> Iterator[str]:
        for word in words:
            if is_distinctive(word) and word.lower() not in usual:
                usual.add(word.lower())
                yield word

    return {
        "id": [one for one in dict.fromkeys(ids) if one],
        "label": list(new((run.label, label_name(run.label)))),
        "user": list(new(sorted(users))),
        "typed": list(new(word for word in typed if not _says_nothing(word))),
    }


class RunAnonymizer(Anonymizer):
    """The pseudonyms for a run. `texts` are the contents of its files. Paths in these texts show
    the names of users."""

    def __init__(self, run: Run, texts: Iterable[str] = ()) -> None:
        others = {rank.host for rank in run.machine.ranks}
        others |= {run.lost.host} if run.lost is not None and run.lost.host else set()
        super().__init__(run.machine.host.hostname, _learned(run, texts), sorted(others))

    def json(self, content: bytes) -> bytes:
        """Replaces identifying words in a file of JSON."""
        value = self.document(msgspec.json.decode(content), _FIELDS)
        return escaped(msgspec.json.format(msgspec.json.encode(value), indent=1)) + b"\n"

    def lines(self, content: bytes) -> bytes:
        """Replaces identifying words in a file with a JSON value on each line. An unfinished last
        line is left out."""
        values = map(msgspec.json.decode, content[: content.rfind(b"\n") + 1].splitlines())
        lines = (msgspec.json.encode(self.document(one, _FIELDS)) for one in values)
        return b"".join(escaped(line) + b"\n" for line in lines)

    def words(self, text: str) -> str:
        """Replaces the known words and the paths in a text."""
        return _PATH.sub(self._path, super().words(text))

    def _path(self, match: re.Match[str]) -> str:
        path, quote = match["quoted"] or match["path"], match["quote"] or ""
        if _SYSTEM.match(path):
            return match[0]
        return f"{quote}/{self.name('path', path)}{quote}"


def _typed(who: RunAnonymizer, key: str, text: str) -> str:
    """Replaces an argument of the command line, with or without an option before it."""
    if option := _VALUE.match(text):
        return option[0] + _typed(who, key, text[option.end() :])
    if _says_nothing(text):
        return who.prose(text)
    return who.known.get(text.lower()) or who.name("typed", text)


def _stated(who: RunAnonymizer, key: str, text: str) -> str:
    """Returns a value that a person entered for a machine, without identifying words. If `key` says
    that the value is a name, the whole value is replaced."""
    if _NAMED.search(key):
        return who.name("stated", text)
    return str(_FIELDS.get(key, _FIELDS[""]).change(who, key, text))


_FIELDS = {
    "": FieldRule(lambda who, _, text: who.prose(text)),
    **dict.fromkeys(_STRUCTURE, FieldRule(lambda _, __, text: text)),
    "simulated": FieldRule(lambda who, _, text: text if text in _public() else who.prose(text)),
    "hostname": FieldRule(lambda who, _, text: who.hostname(text)),
    "label": FieldRule(
        lambda who, _, text: text if text.lower() in _USUAL else who.name("label", text)
    ),
    "environment": FieldRule(lambda _, __, ___: REMOVED, below=True),
    "stated": FieldRule(_stated, below=True),
    "command": FieldRule(_typed, below=True),
    "options": FieldRule(_typed, below=True),
}


def _says_nothing(text: str) -> bool:
    """Whether the text, one or several arguments of the command line, identifies nobody."""
    words = text.split()
    if all(word in _public() or _is_harmless(word) for word in words):
        return True
    try:
        return bool(parse_transfers(text))
    except InputError:
        return False


def _is_harmless(word: str) -> bool:
    """Whether a word is a number, an option, a memory, or the beginning of a benchmark's name."""
    return bool(_HARMLESS.fullmatch(word)) or any(name.startswith(word) for name in CATALOG)


def anonymised(run: Run) -> Run:
    """Returns the run with a pseudonym for everything that identifies its machine or owner."""
    content = msgspec.json.encode(document_of(run), enc_hook=encode_hook)
    who = RunAnonymizer(run, (content.decode(),))
    return run_of(who.lines(content + b"\n"), Path(RUN_FILE))


Change = Callable[[RunAnonymizer, bytes], bytes]
CHANGES: dict[str, Change] = {
    ".json": RunAnonymizer.json,
    ".jsonl": RunAnonymizer.lines,
    ".txt": lambda who, content: who.prose(content.decode(errors="replace")).encode(),
}
"""The functions that anonymise files, by suffix; other files cannot be anonymised."""
