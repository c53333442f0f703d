"""Reads the transfer notation: `host:0 -> cuda:0 by ce & cuda:0 -> host:0 by cuda:0.ce x2`.

    cell      = transfer { "&" transfer }
    transfer  = memory ( "->" | "<->" ) memory [ "by" engine ] [ "x" scale ] [ "at" percent "%" ]
    memory    = "null" | space ":" index [ "/" kind ] [ "@" rank ]
    engine    = [ space ":" index [ "@" rank ] "." ] kind [ "*" threads ] [ "to" "nic:" index ]

Without `by`, a copy engine carries out a transfer that involves a device, and all CPUs carry out
any other. An interface (`nic`) without a rank belongs to the source's rank. `to` names the other
rank's interface; without `to`, both interfaces have the same number."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import get_args

from linkgauge.model.hardware.gaps import Gap, read_gap
from linkgauge.model.hardware.part import Part

from .errors import NotationError
from .memory import HOST_KINDS, NIC, NULL, Memory
from .transfer import (
    DEVICE_ENGINES,
    FULL_LOAD,
    HOST_ENGINES,
    NIC_ENGINES,
    Engine,
    EngineKind,
    Transfer,
    default_owner,
)

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = re.compile(r"[0-9]{1,9}")
_FACTOR = re.compile(r"[0-9]{1,15}")
"""The factor of a size. In cells with sizes of their own, it is a size in bytes."""
_KINDS = get_args(EngineKind)
_AN_ENGINE = f"an engine ({', '.join(_KINDS)})"


def parse_transfers(text: str) -> tuple[Transfer, ...]:
    """Returns a cell's concurrent transfers. Raises NotationError if the text is invalid."""
    reader = _TransferParser(text)
    transfers = [reader.transfer()]
    while reader.take("&"):
        transfers.append(reader.transfer())
    *_, last = text[: reader.at].rpartition("&")
    by = "" if "by" in last.split() else "'by' and an engine, "
    reader.end(f"expected {by}'&' or the end")
    return tuple(transfers)


def parse_transfer(text: str) -> Transfer:
    reader = _TransferParser(text)
    transfer = reader.transfer()
    reader.end("expected the end of the transfer")
    return transfer


def parse_memory(text: str) -> Memory:
    reader = _TransferParser(text)
    memory = reader.memory()
    reader.end("expected the end of the memory's name")
    return memory


def encode_hook(value: object) -> str:
    if isinstance(value, Transfer):
        return value.text
    if isinstance(value, Gap):
        return str(value)
    if isinstance(value, Part):
        return value.name
    raise NotImplementedError(f"cannot write {type(value).__name__}")


def decode_hook() -> Callable[[type, object], Transfer | Gap]:
    """Returns a `dec_hook` for msgspec's decoders. It parses each transfer's text only once."""
    known: dict[object, Transfer] = {}

    def decode(kind: type, text: object) -> Transfer | Gap:
        found = known.get(text)
        if found is not None:
            return found
        if kind is Gap and isinstance(text, str):
            return read_gap(text)
        if kind is not Transfer or not isinstance(text, str):
            raise ValueError("Expected the notation of a transfer")
        try:
            known[text] = parse_transfer(text)
        except NotationError as error:
            raise ValueError(str(error)) from error
        return known[text]

    return decode


def schema_hook(kind: type) -> dict[str, str]:
    if kind in (Transfer, Gap):
        return {"type": "string"}
    raise NotImplementedError(f"no schema of {kind.__name__}")


def _computes(engine: Engine) -> bool:
    return engine.owner.is_host or (engine.kind == "sm" and engine.owner.is_device)


class Cursor:
    blanks = frozenset(" \t\r\n")
    word = _NAME

    def __init__(self, text: str, where: str = "") -> None:
        self.text = text
        self.where = where
        self.at = 0

    def error(self, problem: str, at: int | None = None) -> NotationError:
        if at is None:
            self.blank()
            at = self.at
        word = self.word.match(self.text, at)
        shown = word[0] if word else self.text[at : at + 1]
        found = f", found {shown!r}" if shown else ", found the end"
        return NotationError(self.where + problem + found, self.text, at)

    def blank(self) -> None:
        while self.text[self.at : self.at + 1] in self.blanks:
            self.at += 1

    def end(self, problem: str) -> None:
        self.blank()
        if self.at != len(self.text):
            raise self.error(problem)

    def take(self, token: str) -> bool:
        self.blank()
        return self.adjoining(token)

    def adjoining(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def matched(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def one_of(self, pattern: re.Pattern[str], names: Collection[str]) -> str | None:
        self.blank()
        before, found = self.at, self.matched(pattern)
        if found in names:
            return found
        self.at = before
        return None


class _TransferParser(Cursor):
    def name(self, what: str) -> str:
        self.blank()
        found = self.matched(_NAME)
        if found is None:
            raise self.error(f"expected {what}")
        return found

    def number(self, what: str, least: int = 0, pattern: re.Pattern[str] = _NUMBER) -> int:
        at, found = self.at, self.matched(pattern)
        if found is None:
            raise self.error(f"expected {what}", at)
        if int(found) < least:
            raise self.error(f"{what} must be at least {least}", at)
        if self.at < len(self.text) and self.text[self.at] in "0123456789":
            raise self.error(f"{what} has too many digits", self.at)
        return int(found)

    def place(self) -> Memory:
        space = self.name("a memory such as host:0 or cuda:1")
        if space == "null":
            return NULL
        while self.adjoining(":"):
            more = self.matched(_NAME)
            if more is None:
                return Memory(space, self.number(f"the number of a memory after '{space}:'"))
            space += ":" + more
        raise self.error(f"expected ':' and a number after {space!r}", self.at)

    def ranked(self, place: Memory) -> Memory:
        if not self.adjoining("@"):
            return place
        return Memory(place.space, place.index, place.kind, self.number("a rank after '@'"))

    def memory(self) -> Memory:
        self.blank()
        start = self.at
        place = self.place()
        if place.is_null:
            return place
        if place.is_nic:
            problem = f"{place} holds no bytes: it is an engine, such as in 'by {place}.tcp'"
            raise NotationError(problem, self.text, start)
        if self.adjoining("/"):
            at = self.at
            kind = self.name(f"a kind of memory ({', '.join(HOST_KINDS)})")
            if not place.is_host or kind not in HOST_KINDS:
                known = ", ".join(f"host:N/{name}" for name in HOST_KINDS)
                raise NotationError(f"unknown kind of memory: give one of {known}", self.text, at)
            place = Memory(place.space, place.index, kind)
        return self.ranked(place)

    def engine(self, default: Memory, rank: int | None) -> Engine:
        self.blank()
        start = self.at
        name = self.name(_AN_ENGINE)
        owner = default
        if self.text.startswith(":", self.at):
            self.at = start
            owner = self.ranked(self.place())
            if owner.is_nic and owner.rank is None:
                owner = Memory(owner.space, owner.index, rank=rank)
            if not self.adjoining("."):
                raise self.error(f"expected '.' and an engine after {owner}", self.at)
            start = self.at
            name = self.name(_AN_ENGINE)
        if name not in _KINDS:
            problem = f"unknown engine {name!r}: give one of {', '.join(_KINDS)}"
            raise NotationError(problem, self.text, start)
        of_node = DEVICE_ENGINES if owner.is_device else HOST_ENGINES
        if name not in (NIC_ENGINES if owner.is_nic else of_node):
            whose = "a host's node" if owner.is_host else f"{owner}"
            raise NotationError(f"{whose} has no engine {name!r}", self.text, start)
        count = None
        if self.text.startswith("*", self.at):
            if name not in ("cpu", "tcp"):
                problem = "only cpu takes a number of threads, and tcp one of streams"
                raise self.error(problem, self.at)
            self.at += 1
            count = self.number("a number of threads", least=1)
        return Engine(owner, name, count, self.far() if owner.is_nic else None)

    def far(self) -> int | None:
        if not self.keyword("to"):
            return None
        self.blank()
        if not self.adjoining(f"{NIC}:"):
            raise self.error(f"expected '{NIC}:' and a number after 'to'", self.at)
        return self.number("the number of a network interface")

    def transfer(self) -> Transfer:
        self.blank()
        start = self.at
        source = self.memory()
        both_ways = self.take("<->")
        if not both_ways and not self.take("->"):
            raise self.error("expected '->' or '<->'")
        self.blank()
        middle = self.at
        destination = self.memory()
        if both_ways and (source.is_null or destination.is_null):
            at = start if source.is_null else middle
            raise NotationError("'<->' needs a memory at both ends", self.text, at)
        default = default_owner(source, destination)
        engine = Engine(default, "ce" if default.is_device else "cpu")
        if self.keyword("by"):
            engine = self.engine(default, source.rank)
        if engine.owner.is_nic:
            self.check_nic(engine.owner, source, destination, middle)
        if source.is_null and destination.is_null and not _computes(engine):
            raise NotationError("null to null moves nothing", self.text, middle)
        if not source.is_cpu == destination.is_cpu == engine.owner.is_cpu:
            problem = "a CPU's caches exchange lines only with another CPU"
            raise NotationError(problem, self.text, start)
        scale = 1
        if self.take("x"):
            scale = self.number("a factor after 'x'", least=1, pattern=_FACTOR)
        return Transfer(source, destination, engine, scale, both_ways, self.load())

    def check_nic(self, owner: Memory, source: Memory, destination: Memory, at: int) -> None:
        ranks = source.rank, destination.rank
        if None in ranks or ranks[0] == ranks[1]:
            problem = f"{owner.unranked} moves bytes between two ranks: host:0@0 -> host:0@1"
            raise NotationError(problem, self.text, at)
        if owner.rank not in ranks:
            problem = f"{owner} is of neither rank: name one of rank {ranks[0]} or {ranks[1]}"
            raise NotationError(problem, self.text, at)

    def load(self) -> int:
        if not self.keyword("at"):
            return FULL_LOAD
        self.blank()
        at = self.at
        load = self.number("a percentage after 'at'", least=1)
        if load > FULL_LOAD:
            raise self.error(f"a load is at most {FULL_LOAD}%", at)
        if not self.adjoining("%"):
            raise self.error("expected '%'")
        return load

    def keyword(self, name: str) -> bool:
        return self.one_of(_NAME, (name,)) is not None
