"""Replaces texts in documents unless the type of their field allows sharing (`model.shareable`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeVar

import msgspec
import msgspec.inspect as types

from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.shareable import FREE, TextKind, Words

from ..kernel_options import OPTION, REMOVED
from .vocabulary import hardware_words

Value = TypeVar("Value")
Change = Callable[[Any], Any]
"""Returns a JSON value without names."""
_WORD = re.compile(r"[^\W\d_]+")
_IDENTIFIER = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{4}(?::[0-9a-f]{4}){3}"
    r"|[0-9]{13}",
    re.IGNORECASE,
)
_PCI = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b")
_ANYTHING = re.compile(r"[^\W0]")
"""A pattern of texts that say something: no UUID of zeros, and no empty one."""
_IP = re.compile(r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w.])|::")
_CALL = re.compile(
    r"\b(?:(?:cu|nccl|nvml|nvrtc|hip|hsa_|cl|ibv_|MPI_)[A-Z]\w+|[A-Z]{1,8}_[A-Z][A-Z_]+|SIG[A-Z]+"
    r"|signal [0-9]+)\b"
)
"""A pattern of calls of a driver, and of the errors that they return."""
_DIGEST = re.compile(r"[0-9a-fA-F]{7,64}")
_OPTION_NAME = re.compile(r"--?[a-z][a-z-]*")
_LABELS = ("default", "copy", "latency", "traffic", "vary", "scale", "as", "linkgauge", "run")
"""The labels that linkgauge gives itself."""
_STATED = frozenset((
    "host", "architecture", "cpu", "soc", "firmware", "dimms", "nvlink", "fusion", "fw", "gpu",
    "count", "nvidia", "driver", "os", "kernel",
))  # fmt: skip
"""The words of the keys that linkgauge itself writes to hardware.yml."""


class SharedTexts:
    """Replaces texts of documents by pseudonyms, equal texts by equal pseudonyms. Keeps words of
    hardware and those in `own` (linkgauge's) and, in command lines only, those in `options`.
    `named` maps names in lower case to pseudonyms that are already given."""

    def __init__(
        self,
        own: frozenset[str] = frozenset(),
        options: frozenset[str] = frozenset(),
        named: Mapping[str, str] | None = None,
    ) -> None:
        self._words = hardware_words() | own
        self._options = options
        self._numbers: dict[str, dict[str, int]] = {}
        self._named = dict(named or {})
        self._decode = decode_hook()
        self._of: dict[Any, Change] = {}
        self._structs: dict[type, Change | None] = {}
        self.text = cache(self._text)

    def shared(self, value: Value, kind: Any) -> Value:
        document = msgspec.to_builtins(value, enc_hook=encode_hook)
        if kind not in self._of:
            self._of[kind] = self._change(types.type_info(kind)) or _same
        found: Value = msgspec.convert(self._of[kind](document), kind, dec_hook=self._decode)
        return found

    def _change(self, kind: types.Type) -> Change | None:
        match kind:
            case types.Metadata(type=inner, extra=extra):
                declared = (extra or {}).get("text")
                return self._change(inner) if declared is None else partial(self.text, declared)
            case types.StrType():
                return partial(self.text, FREE)
            case types.CustomType(cls=cls):
                return partial(self.text, getattr(cls, "shared", FREE))
            case types.StructType(cls=cls):
                if cls not in self._structs:
                    self._structs[cls] = self._struct(kind)
                return self._structs[cls]
            case types.UnionType(types=kinds):
                return self._union(kinds)
        return self._collection(kind)

    def _collection(self, kind: types.Type) -> Change | None:
        match kind:
            case types.DictType(key_type=key, value_type=value):
                return _entries(self._change(key) or _same, self._change(value) or _same)
            case types.VarTupleType(item_type=item):
                return _each(self._change(item))
            case types.TupleType(item_types=items):
                return _in_turn([self._change(item) for item in items])
            case types.NamedTupleType(fields=fields):
                return _in_turn([self._change(field.type) for field in fields])
        return None

    def _struct(self, kind: types.StructType) -> Change | None:
        found = {field.encode_name: self._change(field.type) for field in kind.fields}
        if kind.array_like:
            return _in_turn(list(found.values()))
        changes = {name: change for name, change in found.items() if change is not None}
        return partial(_fields, changes) if changes else None

    def _union(self, kinds: tuple[types.Type, ...]) -> Change | None:
        tags = {
            one.tag: self._change(one)
            for one in kinds
            if isinstance(one, types.StructType) and one.tag_field
        }
        if tags:
            field = next(one.tag_field for one in kinds if isinstance(one, types.StructType))
            return lambda value: (tags[value[field]] or _same)(value)
        changes = [change for one in kinds if (change := self._change(one)) is not None]
        # A literal, null or a number beside texts or beside one struct is kept as it is.
        literal = {
            value for one in kinds if isinstance(one, types.LiteralType) for value in one.values
        }
        return partial(_unless, literal, changes[0]) if changes else None

    def _text(self, kind: TextKind, text: str) -> str:
        if not text or self._is_kept(kind.words, text):
            return text
        if kind.words == "gap":
            fields, colon, _ = text.partition(": ")
            known = colon and self._is_kept("known", fields)
            return f"{fields}: {REMOVED}" if known else REMOVED
        if kind.words == "calls":
            calls = (
                call for call in _CALL.findall(text) if self._is_kept("known", _separate(call))
            )
            return ", ".join(dict.fromkeys(calls)) or REMOVED
        if kind.words == "facts":
            begin = text.partition(" (")[0]
            return begin if self._is_kept("known", begin) else REMOVED
        if kind.words == "kernel":
            return OPTION.sub(lambda option: self._option(kind, option[0], "known"), text)
        if kind.words == "options":
            return self._option(kind, text, "options")
        return self._pseudonym(kind.otherwise, text)

    def _option(self, kind: TextKind, text: str, words: Words) -> str:
        if self._is_kept(words, text):
            return text
        name, equals, value = text.partition("=")
        if not equals or not self._is_kept(words, name):
            return self._pseudonym(kind.otherwise, text)
        return f"{name}={self._pseudonym(kind.otherwise, value)}"

    def _pseudonym(self, otherwise: str, text: str) -> str:
        if "{" not in otherwise:
            return otherwise
        key = text.lower()
        if otherwise.endswith("-{0}") and key in self._named:
            return self._named[key]
        numbers = self._numbers.setdefault(otherwise, {})
        found = otherwise.format(numbers.setdefault(key, len(numbers) + 1))
        if otherwise.endswith("-{0}"):
            self._named[key] = found
        return found

    def _is_kept(self, words: Words, text: str) -> bool:
        match words:
            case "label":
                return text in _LABELS
            case "none" | "kernel" | "calls":
                return not _ANYTHING.search(text)
            case "digest":
                return _DIGEST.fullmatch(text) is not None
            case "stated":
                return _all_in(_STATED, text)
            case "options":
                is_name = _OPTION_NAME.fullmatch(text) is not None
                return _all_in(self._words if is_name else self._options, text)
            case "versions":
                return _all_in(self._words, re.sub(r"\b[0-9A-F]{2}\b", "0", text))
        # `known`, and `gap` and `facts` of known words alone.
        return _all_in(self._words, text) and not _IP.search(text)


def _all_in(words: frozenset[str], text: str) -> bool:
    """Whether a text has no identifiers, and only these words or short ones by a digit (`x16`)."""
    text = _PCI.sub("", text)
    if _IDENTIFIER.search(text):
        return False
    for match in _WORD.finditer(text):
        if match[0].lower() in words:
            continue
        beside = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
        if len(match[0]) > 2 or not any(map(str.isdecimal, beside)):
            return False
    return True


def _separate(call: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", call)


def _same(value: Any) -> Any:
    return value


def _unless(kept: Collection[object], change: Change, value: Any) -> Any:
    if isinstance(value, str):
        return value if value in kept else change(value)
    return value if value is None or isinstance(value, int | float) else change(value)


def _fields(changes: Mapping[str, Change], value: dict[str, Any]) -> dict[str, Any]:
    return {name: changes[name](each) if name in changes else each for name, each in value.items()}


def _entries(key: Change, value: Change) -> Change | None:
    """Returns a function that changes a dict's keys and values; None if it would change nothing."""
    if key is _same and value is _same:
        return None

    def changed(found: dict[str, Any]) -> dict[str, Any]:
        # A text is removed if its key changes.
        return {
            (new := key(name)): value(each) if new == name or not isinstance(each, str) else REMOVED
            for name, each in found.items()
        }

    return changed


def _each(change: Change | None) -> Change | None:
    return None if change is None else lambda found: [change(each) for each in found]


def _in_turn(changes: Sequence[Change | None]) -> Change | None:
    if not any(changes):
        return None
    return lambda found: [
        change(each) if change else each for change, each in zip(changes, found, strict=True)
    ]
