"""Cleans the lines of a log: removes colours, and the prefixes of launchers and log collectors."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from typing import TypeVar

from linkgauge.model.grouped import grouped

_T = TypeVar("_T")
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00\x07\x08]")
_SHOWN = re.compile(
    r"(?:\^\[|\\(?:x1b|033|e))\[[0-?]*[ -/]*[@-~]|\[(?:\d{1,3};){0,3}\d{0,3}m|\u200b"
)
"""Sequences for a terminal that a page shows, or of which it left out ESC."""
_FENCE = re.compile(r"^[ \t>]{0,99}(?:```|~~~).*$", re.MULTILINE)
_BLANK = re.compile(r"[\xa0\u2000-\u200a\u202f\u3000]")
_SURE = re.compile(
    r"\[\d{1,5},\d{1,6}\]<std(?:out|err)>: ?"  # mpirun --tag-output
    r"|\[pod/[^\]\s]{1,200}\] ?"  # kubectl logs --prefix
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[0-9.,]{0,12}(?:Z|[+-]\d\d:?\d\d)?\]?:? "
    r"|>+ ?"  # a quotation
)
_LABEL = re.compile(r"\s{0,6}(?:([A-Za-z0-9][\w.-]{0,80}):(?: |$)|(\[\d{1,5}\]) ?)")
"""The prefix of Slurm (a rank), pdsh (a host) or another launcher (`[0]`) before a line."""
_MOST_LABELS = 4096
MOST_LINES = 160_000
"""The most lines of a text that are read: half of them from its beginning, half from its end."""
_LONGEST = 1 << 16
"""The most characters of a line, unless it is a document in JSON or XML."""
_LEAST_SHARE = 0.6
"""The least share of lines with a label if labels are used; few other lines of a log begin like a
label."""


def plain(text: str) -> tuple[str, int]:
    """Returns the text without colours and tags, and how many lines were cut from its middle."""
    text = _COLOUR.sub("", text.removeprefix("\ufeff"))
    text = text if text.isascii() else _BLANK.sub(" ", text)
    text = _SHOWN.sub("", text) if any(end in text for end in ("[0m", "[m", "\u200b")) else text
    text = _FENCE.sub("", text) if "```" in text or "~~~" in text else text
    text = _of_page(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _TAB.sub(" ", _BOLD.sub(r"\1", _NEXT_FIGURE.sub(" ", text)))
    left = text.count("\n") + 1 - MOST_LINES
    if left <= 0:
        return text, 0
    begin, end = -1, len(text)
    for _ in range(MOST_LINES // 2):
        begin, end = text.index("\n", begin + 1), text.rindex("\n", 0, end)
    return text[:begin] + text[end:], left


_NEXT_FIGURE = re.compile(r'(?<=",)\n[ \t]*(?="[\d.N/A]{1,20}",?\n)')
"""Where a matrix in JSON has a line for each figure: 128 devices have more figures than lines are
read."""
_BOLD = re.compile(r"\*\*(\S[^*\n]{0,200})\*\*")
_TAB = re.compile(r"(?:>-*)*>--+(?=\w)|\^I")  # as editors and cat -A show tabs
_PAGE = re.compile(r"(?i)<(?:br|p|pre|t[dhr])\b[^<>\n]{0,200}>")
_CELL_ENDS = re.compile(r"(?i)\s{0,99}</t[dh]>\s{0,99}")
_LINE_ENDS = re.compile(r"(?i)\n?<(?:br ?/?|/?(?:p|tr|li|div|pre))(?: [^<>\n]{0,200})?>\n?")
_TAG = re.compile(r"(?i)</?(?:a|b|i|em|tt|td|th|code|span|font|samp|table|tbody)\b[^<>\n]{0,200}>")


_ENTITY = re.compile(r"&(?:nbsp|lt|gt|amp|quot|#\d{1,4});")


def _of_page(text: str) -> str:
    if _PAGE.search(text):
        text = _TAG.sub("", _LINE_ENDS.sub("\n", _CELL_ENDS.sub(" ", text)))
    elif "</" in text or not _ENTITY.search(text):
        return text
    return _BLANK.sub(" ", unescape(text))


def bare(line: str) -> str:
    if len(line) > _LONGEST and line.lstrip()[:1] not in ("{", "[", "<"):
        line = line[:_LONGEST]  # no tool prints such a line, other than a document
    while found := _SURE.match(line.lstrip()):
        line = line.lstrip()[found.end() :]
    return line.rstrip()


def by_label(lines: list[str]) -> dict[str, list[str]]:
    """Returns lines by the host or rank in their prefix, those with the most figures first."""
    matches = [*map(_LABEL.match, lines)]
    labels = [match[1] or match[2] if match else "" for match in matches]
    counts, written = Counter(filter(None, labels)), sum(1 for line in lines if line)
    usual = sum(count for count in counts.values() if count > 2)
    if not counts or usual < _LEAST_SHARE * written or len(counts) > min(_MOST_LABELS, usual // 3):
        return {"": lines}
    said, own = Counter[str](), list[tuple[str, str]]()
    for line, match, label in zip(lines, matches, labels, strict=True):
        text = line[match.end() :] if match else line
        if match and match[2]:  # such a label may also be glued to words within the line
            text = re.sub(rf"(?<=[\d ]){re.escape(label)}", "", text)
        said[label] += len({*text} & {*"0123456789"}) > 2
        own.append((label, text))
    most = max(counts, key=lambda label: said[label])
    labelled = grouped((label or most, text) for label, text in own)
    return {most: labelled.pop(most), **labelled}


def words_in(line: str) -> str:
    return re.sub("[┌┬┐├┼┤└┴┘│─┃|]+", " ", line).strip()


def words_of(line: str) -> list[str]:
    return words_in(line).split()


_NUMBER = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][+-]?\d{1,2})?")


def number_of(word: str) -> float | None:
    return float(word) if _NUMBER.fullmatch(word) else None


def index_of(text: str) -> int | None:
    """Returns the number in a text, or None if the text is not a number below 1000."""
    return int(text) if text.isdecimal() and len(text) < 4 else None


_PREFIXES = ("", "K", "M", "G", "T")


def scale_of(unit: str) -> float:
    """Returns the factor of a unit's prefix: 1000 for `K`, 1024 for `Ki`."""
    return (1024.0 if unit[1:2] == "i" else 1000.0) ** _PREFIXES.index(unit[:1])


DECIMAL = r"\d{1,14}(?:\.\d{0,9})?"
_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE)


def address_of(text: str) -> str | None:
    """Returns the first PCI address in a text, as sysfs writes it."""
    match = _ADDRESS.search(text)
    return f"{match[1][-4:]}:{match[2]}:{match[3]}.{match[4] or 0}".lower() if match else None


def at(document: object, kind: type[_T], *keys: str) -> _T:
    """Returns the value below nested keys, or an empty value if there is none of this kind."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, kind) else kind()


def number_at(document: object, *keys: str) -> float:
    """Returns the positive number below nested keys, or 0 if there is none."""
    value = at(document, float, *keys) or at(document, int, *keys)
    return float(value) if not isinstance(value, bool) and 0 < value < 1e30 else 0.0
