"""Splits a remedy into shell commands, prose and files. A line is a command only if all its
programs are listed here and it uses no shell variables except those that remedies set. So no name
from a captured machine can become a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.judge.remedies import DEVICE, PORT_ABOVE
from linkgauge.model.printable import printable

LOOKING = frozenset({
    "amd-smi", "cat", "coredumpctl", "dmesg", "dmidecode", "echo", "grep", "head", "journalctl",
    "linkgauge", "ls", "lscpu", "lspci", "numactl", "nvidia-smi", "ps", "pvesh", "ras-mc-ctl",
    "rbln-smi", "tc", "top",
})  # fmt: skip
"""The programs that change nothing without root."""
CHANGING = frozenset({
    "cpupower", "ethtool", "ip", "modprobe", "setpci", "sysctl", "systemctl", "tee", "ulimit",
    "virsh",
})  # fmt: skip
_SHOWING = {"cpupower": {"frequency-info"}, "systemctl": {"status"}, "virsh": {"dumpxml"}}
"""The arguments with which these programs change nothing."""
SETTING = frozenset({DEVICE, PORT_ABOVE})
"""The lines that set a variable for the lines below them."""
BY_HAND = frozenset({"top", "ulimit"})
"""The programs with output that a person reads, or that affect the shell that starts them."""
_AFTERWARDS = {"virsh": {"shutdown", "start"}, "systemctl": {"enable"}}
"""The actions of these programs that must follow an action of a person."""
_WRITABLE = (
    "/sys/kernel/mm/", "/sys/devices/system/", "/sys/module/pcie_aspm/parameters/",
    "/sys/bus/pci/devices/",
)  # fmt: skip
"""The folders below which `tee` may write."""
_EXPANDING = frozenset("$`\\~*?{")
_PUNCTUATION = frozenset("();<>|&")
_VARIABLE = re.compile(r'"\$(?:DEVICE|\{PORT:\?\})"')
_STANDS_FOR = {'"$DEVICE"': "\ue000", '"${PORT:?}"': "\ue001"}
"""The characters that stand for variables while a line is split into words; none is printable."""
_VARIABLES = {sign: variable for variable, sign in _STANDS_FOR.items()}
_COMMENT = re.compile(r"\s# ")
_FILE_NAME = re.compile(r"[A-Za-z][\w.-]*")
# Three plain words in sequence, among words that NUL separates.
_SENTENCE = re.compile(r"(?:^|\0)(?:[a-z]+(?:\0|$)){3}")
_SECTION = re.compile(r"\[\w+\]")
_PATH = re.compile(r"/etc/[\w./@-]+\w")
_PLACEHOLDER = re.compile(r"\b(?:PORT|DEVICE|ADDRESS|NAME|SIZE|COUNT|N)\b")


class RemedyText(msgspec.Struct, frozen=True):
    text: str


class Command(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    comment: str = ""

    @property
    def line(self) -> str:
        return " ".join(self.words)

    @property
    def needs_root(self) -> bool:
        return "sudo" in self.words

    @property
    def only_looks(self) -> bool:
        words = set(self.words)
        shows = {program for program, verbs in _SHOWING.items() if verbs & words}
        configures = self.needs_root and "nvidia-smi" in words
        return (CHANGING - shows).isdisjoint(words) and not configures

    @property
    def by_hand(self) -> bool:
        words = set(self.words)
        waits = any(program in words and verbs & words for program, verbs in _AFTERWARDS.items())
        return waits or bool(BY_HAND & words)

    @property
    def placeholders(self) -> tuple[str, ...]:
        if self.sets:
            return ("ADDRESS",) if self.line == DEVICE else ()
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(_VARIABLE.sub("", self.line))))

    @property
    def sets(self) -> bool:
        return self.line in SETTING

    @property
    def needs_variables(self) -> bool:
        return self.line == PORT_ABOVE or bool(_VARIABLE.search(self.line))


class WrittenFile(msgspec.Struct, frozen=True):
    path: str
    lines: tuple[str, ...]


Step = RemedyText | Command | WrittenFile


def steps(remedy: Sequence[str]) -> Iterator[Step]:
    """Yields the steps of a remedy. A line `[Section]` begins a file, up to the next comment."""
    lines, path = list(remedy), "FILE"
    while lines:
        line = lines.pop(0)
        if _SECTION.fullmatch(line):
            own = [line]
            while lines and not lines[0].startswith("# "):
                own.append(lines.pop(0))
            yield WrittenFile(path, tuple(map(printable, own)))
        elif (command := as_command(line)) is not None:
            yield command
        else:
            # The prose above a file contains its path.
            path = found[0] if (found := _PATH.search(line)) else path
            yield RemedyText(printable(line.removeprefix("# ")))


def as_command(line: str) -> Command | None:
    """Returns a line as a command; None for prose, or if it may start unknown programs."""
    code, *said = _COMMENT.split(line, maxsplit=1)
    if code.strip() in SETTING:
        return Command(tuple(code.split()), "".join(said).strip())
    if not line.isprintable():
        return None
    code = _VARIABLE.sub(lambda found: _STANDS_FOR[found[0]], code)
    if not _EXPANDING.isdisjoint(code):
        return None
    parser = shlex.shlex(code, posix=True, punctuation_chars=True)
    parser.whitespace_split, parser.commenters = True, ""
    try:
        words = list(parser)
    except ValueError:
        return None
    inside = any(sign in word != sign for word in words for sign in _VARIABLES)
    if inside or not all(map(_may_start, _started(words))):
        return None
    quoted: list[str] = []
    for word in words:
        if word == ";":
            quoted[-1] += word
        elif word in _VARIABLES:
            quoted.append(_VARIABLES[word])
        else:
            quoted.append(word if word in ("|", ">") else shlex.quote(word))
    return Command(tuple(quoted), "".join(said))


def _started(words: Sequence[str]) -> Iterator[list[str]]:
    own: list[str] = []
    for word in words:
        if word in ("|", ";"):
            yield own
            own = []
        elif own or word != "sudo":
            own.append(word)
    yield own


def _may_start(words: Sequence[str]) -> bool:
    if not words:
        return False
    program, *own = words
    if ">" in own:
        *own, sign, file = own if len(own) > 1 else (*own, "", "")
        if sign != ">" or not _FILE_NAME.fullmatch(file):
            return False
    if any(_PUNCTUATION.issuperset(word) for word in own if word):
        return False
    if program == "tee":
        return all(word.startswith(_WRITABLE) and ".." not in word for word in own)
    return program in LOOKING | CHANGING and not _SENTENCE.search("\0".join(own))
