"""Replaces identifying values in a run's files by the pseudonyms of machine.anonymize; a value has
the same pseudonym in all files.

Besides the values of a captured machine, these are the run's label, paths, names of users, and the
command line."""

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
from linkgauge.machine.anonymize import Anonymizer, is_distinctive
from linkgauge.machine.secrets import REMOVED
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
"""Fields that hold words of linkgauge's own, notation, times and versions."""
_TYPED = frozenset(("command", "options"))
_NAMED = re.compile(r"serial|uuid|guid|asset|owner|contact|user|site|rack|tag|name", re.IGNORECASE)
"""Keys of what a person stated (hardware.yml) whose values are names."""
_USUAL = ("default", "copy", "latency", "traffic", "vary", "scale", "as", "sim", "linkgauge", "run")
"""Labels and words that say nothing of anybody."""
_HARMLESS = re.compile(r"--?[a-z][a-z-]*|[a-z0-9_]+:[0-9]+|[0-9.]+[a-zA-Z%]{0,3}", re.ASCII)
_VALUE = re.compile(r"--[a-z-]+=")
"""An option before its value in the same argument."""
_USER = re.compile(r"""/(?:home|Users)/([^/\s"'\\]+)""")
_PATH = re.compile(
    r"""(?P<quote>["'])(?P<quoted>(?:~|\.{1,2})?/[^"']*)(?P=quote)"""
    r"""|(?<![\w.:<>%*/~+-])(?P<path>(?:~[\w.-]*|\.{1,2})?/(?![\s/])[^\s"'<>|;,:()\[\]{}]+)"""
)
_SYSTEM = re.compile(r"/(?:proc|sys|dev|usr|etc|lib|lib64|bin|sbin|boot)(?:/|$)")
"""Folders whose names nobody chose."""
_ENVIRONMENT = ("USER", "LOGNAME", "SUDO_USER")


class RunAnonymizer:
    """Pseudonyms for a run and for `texts`, the contents of its files, in whose paths names of
    users are found."""

    def __init__(self, run: Run, texts: Iterable[str] = ()) -> None:
        machine = run.machine
        devices = (device.uuid for device in machine.all_devices)
        inventories = filter(None, (machine.inventory, run.after))
        cards = [one.uuid for each in inventories for one in each.accelerators]
        others = [rank.host for rank in machine.ranks]
        others += [run.lost.host] if run.lost is not None and run.lost.host else []
        self._who = Anonymizer(
            machine.host.hostname, filter(None, {*devices, *cards}), sorted(set(others))
        )
        self._public = {*_USUAL, *KNOWN, "host", *CATALOG, *shipped(), *PROFILES}
        self._numbers: dict[str, dict[str, int]] = {}
        self._known: dict[str, str] = {}
        self._learn("label", (run.label, label_name(run.label)))
        found = {user for text in texts for user in _USER.findall(text)}
        self._learn("user", sorted(found | {os.environ.get(name, "") for name in _ENVIRONMENT}))
        typed = (_VALUE.sub("", word) for word in run.command[1:])
        self._learn("typed", (word for word in typed if not self._is_harmless(word)))
        self._step = cache(self._string)
        words = sorted(self._known, key=lambda word: (-len(word), word))
        either = "|".join(map(re.escape, words)) or "(?!)"
        self._words = re.compile(rf"(?<![a-z0-9])(?:{either})(?![a-z0-9])", re.IGNORECASE)

    def document(self, content: bytes) -> bytes:
        """The content of a JSON file with pseudonyms."""
        value = self._value(msgspec.json.decode(content), "")
        return escaped(msgspec.json.format(msgspec.json.encode(value), indent=1)) + b"\n"

    def lines(self, content: bytes) -> bytes:
        """A file with a JSON value on each line, with pseudonyms; an unfinished last line is left
        out."""
        values = map(msgspec.json.decode, content[: content.rfind(b"\n") + 1].splitlines())
        lines = (msgspec.json.encode(self._value(one, "")) for one in values)
        return b"".join(escaped(line) + b"\n" for line in lines)

    def text(self, text: str) -> str:
        """Text in which names, paths and identifiers are replaced."""
        text = self._words.sub(lambda match: self._known[match[0].lower()], text)
        return self._who.prose(_PATH.sub(self._path, text))

    def _learn(self, kind: str, words: Iterable[str]) -> None:
        for word in words:
            if is_distinctive(word) and word.lower() not in (*_USUAL, "root", *self._known):
                self._known[word.lower()] = self._name(kind, word)

    def _name(self, kind: str, value: str) -> str:
        numbers = self._numbers.setdefault(kind, {})
        return f"{kind}-{numbers.setdefault(value.lower(), len(numbers) + 1)}"

    def _value(self, value: object, key: str) -> object:
        if isinstance(value, str):
            return self._step(value, key)
        if isinstance(value, list):
            numbers = value and isinstance(value[0], float)  # samples, of which there are many
            return value if numbers else [self._value(each, key) for each in value]
        if isinstance(value, dict):
            return dict(self._fields(value, key))
        return value

    def _fields(self, value: dict[str, object], key: str) -> Iterator[tuple[str, object]]:
        for name, each in value.items():
            if key == "environment" and isinstance(each, str):
                yield name, REMOVED
            elif key == "stated" and isinstance(each, str) and _NAMED.search(name):
                yield name, self._name("stated", each)
            else:
                yield name, self._value(each, key if key in _TYPED else name)

    def _string(self, text: str, key: str) -> str:
        if key in _STRUCTURE or (key == "simulated" and text in self._public):
            return text
        if key in ("hostname", "host"):
            return self._who.hostname(text) if key == "hostname" else self._who.prose(text)
        if key == "label":
            return self._name("label", text) if text.lower() not in _USUAL else text
        if key in _TYPED and (option := _VALUE.match(text)):
            return option[0] + self._string(text[option.end() :], key)
        if key in _TYPED and not self._is_harmless(text):
            return self._known.get(text.lower()) or self._name("typed", text)
        return self.text(text)

    def _is_harmless(self, text: str) -> bool:
        """Whether an argument of the command line, or several joined ones, identify nobody."""
        words = text.split()
        if all(word in self._public or _is_harmless(word) for word in words):
            return True
        try:
            return bool(parse_transfers(text))
        except InputError:
            return False

    def _path(self, match: re.Match[str]) -> str:
        path, quote = match["quoted"] or match["path"], match["quote"] or ""
        if _SYSTEM.match(path):
            return match[0]
        return f"{quote}/{self._name('path', path)}{quote}"


def _is_harmless(word: str) -> bool:
    """Whether a word is a number, an option, a memory, or the beginning of a benchmark's name."""
    return bool(_HARMLESS.fullmatch(word)) or any(name.startswith(word) for name in CATALOG)


def anonymised(run: Run) -> Run:
    """The run without values that identify its machine or owner."""
    content = msgspec.json.encode(document_of(run), enc_hook=encode_hook)
    who = RunAnonymizer(run, (content.decode(),))
    return run_of(who.lines(content + b"\n"), Path(RUN_FILE))


Change = Callable[[RunAnonymizer, bytes], bytes]
CHANGES: dict[str, Change] = {
    ".json": RunAnonymizer.document,
    ".jsonl": RunAnonymizer.lines,
    ".txt": lambda who, content: who.text(content.decode(errors="replace")).encode(),
}
"""How files of these suffixes are anonymised; others cannot be."""
