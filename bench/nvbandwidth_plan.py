"""The runs of a comparison, their command lines, and their records."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

import msgspec

from linkgauge.model.documents.result import Run
from linkgauge.model.notation import decode_hook
from nvbandwidth_figures import (
    CROSSING,
    DEVICE_TESTS,
    HOST_TESTS,
    TESTS,
    Reading,
    read_linkgauge,
    read_nvbandwidth,
)

Tool = Literal["linkgauge", "linkgauge as nvbandwidth", "nvbandwidth"]
Scope = Literal["device", "host", "tuned", "suite", "crossing"]
Topic = Literal["device", "host", "tuned", "suite", "as"]
Mode = Literal["device", "host", "tuned", "suite", "as", "all"]

TUNED_BARS = {
    "host_to_device_memcpy_sm": 1.005,
    "device_to_device_memcpy_write_sm": 1.004,
    "device_local_copy": 1.01,
}
SCOPE_TESTS: dict[Scope, tuple[str, ...]] = {
    "device": DEVICE_TESTS,
    "host": HOST_TESTS,
    "tuned": tuple(TUNED_BARS),
    "suite": TESTS,
    "crossing": CROSSING,
}
SERVES: dict[Topic, frozenset[Scope]] = {
    "device": frozenset({"device", "suite"}),
    "host": frozenset({"host", "suite"}),
    "tuned": frozenset({"tuned"}),
    "suite": frozenset({"suite"}),
    "as": frozenset({"crossing", "suite"}),
}
"""The scopes whose runs a section uses: a whole suite serves the device and host sections too."""


TOOLS: tuple[Tool, Tool] = ("linkgauge", "nvbandwidth")


def tools_of(topic: Topic) -> tuple[Tool, Tool]:
    """Ours and theirs."""
    return ("linkgauge as nvbandwidth", "nvbandwidth") if topic == "as" else TOOLS


class Step(msgspec.Struct, frozen=True):
    """One process to be run; `round` counts from 1."""

    tool: Tool
    scope: Scope
    round: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One process that was run: wall `seconds`, what it printed, and what went wrong."""

    tool: Tool
    scope: Scope
    round: int
    command: tuple[str, ...]
    seconds: float
    exit: int | None = None
    trouble: str | None = None
    document: object = None

    def run(self) -> Run | None:
        """linkgauge's run, None if it left none."""
        if self.tool != "linkgauge" or self.document is None:
            return None
        return msgspec.convert(
            self.document, Run, str_keys=True, dec_hook=decode_hook()
        )  # as JSON has them

    def reading(self) -> Reading:
        """Figures and problems of either tool, base units."""
        trouble = (self.trouble,) if self.trouble else ()
        if self.document is None:
            return Reading({}, trouble)
        run = self.run()
        read = read_linkgauge(run) if run else read_nvbandwidth(self.document)
        return Reading(read.figures, (*trouble, *read.problems))


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured in one call: the file that `--json` names."""

    mode: Mode
    rounds: int
    started: str
    gpus: tuple[str, ...] = ()
    """Name and driver of each, as nvidia-smi prints them; empty if it is missing."""
    with_nvbandwidth: bool = False
    stopped: str | None = None
    """Why rounds were left out."""
    records: tuple[Record, ...] = ()

    def sections(self) -> tuple[Topic, ...]:
        return ("device", "host", "tuned", "suite") if self.mode == "all" else (self.mode,)

    def of(self, tool: Tool, section: Topic) -> list[Record]:
        """The nonempty records of a tool that a section uses."""
        return [
            record
            for record in self.records
            if record.tool == tool
            and record.scope in SERVES[section]
            and record.document is not None
        ]

    def wanted(self, tool: Tool, section: Topic) -> int:
        """How many runs of a tool a section asks for."""
        if section == "device":
            return 1
        if section == "suite" and tool == "nvbandwidth":
            return int(self.with_nvbandwidth or self.mode == "all")
        return self.rounds


def schedule(mode: Mode, rounds: int, with_nvbandwidth: bool) -> list[tuple[Step, ...]]:
    """Rounds of steps, ours and theirs in turn.

    In `all` the short tuned rounds come first, so that a spent budget costs the last of the long
    ones; nvbandwidth runs completely in the first long round and only copies to and from the host
    after it.
    """
    turns = range(1, rounds + 1)
    if mode == "all":
        first = schedule("tuned", rounds, with_nvbandwidth)
        return first + [_pair("suite", "suite" if turn == 1 else "host", turn) for turn in turns]
    if mode == "device":
        return [_pair("device", "device", 1)]
    if mode == "as":
        scopes: list[Scope] = ["suite", *["crossing"] * (rounds - 1)]
        return [_pair(s, s, turn, tools_of(mode)) for turn, s in enumerate(scopes, 1)]
    pairs = [_pair(mode, mode, turn) for turn in turns]
    if mode != "suite":
        return pairs
    return [pair if turn == 0 and with_nvbandwidth else pair[:1] for turn, pair in enumerate(pairs)]


def _pair(
    ours: Scope, theirs: Scope, turn: int, tools: tuple[Tool, Tool] = TOOLS
) -> tuple[Step, ...]:
    return Step(tools[0], ours, turn), Step(tools[1], theirs, turn)


def nvbandwidth_command(program: tuple[str, ...], scope: Scope) -> tuple[str, ...]:
    """Its own defaults, 512 MiB and 3 samples; a whole suite names no tests."""
    names = () if scope == "suite" else ("-t", *SCOPE_TESTS[scope])
    return (*program, "-j", "-i", "3", *names)


def linkgauge_command(
    program: tuple[str, ...], scope: Scope, out: str, extra: tuple[str, ...]
) -> tuple[str, ...]:
    """The standard profile at 512 MiB; untuned except in the tuned section."""
    settings = ("--backend", "cuda", "--profile", "standard", "--size", "512M")
    tuning = () if scope == "tuned" else ("--untuned",)
    keep = ("--json", "--out", out)
    return (*program, "run", *SCOPE_TESTS[scope], *settings, *keep, *tuning, *extra)


def command_line(record: Record) -> str:
    """As one would type it: programs without their folders, the results' folder left open."""
    words = list(record.command)
    words[0] = Path(words[0]).name
    if "--out" in words:
        words[words.index("--out") + 1] = "DIR"
    return shlex.join(words)
