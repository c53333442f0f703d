"""Defines the tools that AI agents call. A tool for a run returns what `linkgauge export --json`
writes; other tools return what the command of the same name writes with `--json`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

import linkgauge
from linkgauge.judge.outcome import outcome_of_setup
from linkgauge.machine.extras import needed
from linkgauge.model.errors import LinkgaugeError
from linkgauge.report.files import json_document
from linkgauge.report.rows import OneRun
from linkgauge.report.sections.findings import Diagnosis, diagnosis_document
from linkgauge.report.tables import CELLS

EXTRA = "mcp"
FAULTY = ("degraded", "low", "perhaps low")
Answer = dict[str, Any]
_HOW = (
    "linkgauge judges how fast data moves between the memories of a machine. To find out why a "
    "machine is slow, call `doctor` with its capture or its run, `judge` with the output of "
    "another tool, `show` with a kept run. `findings` name the faulty part and have the remedy; "
    "`verdict` is `not judged` where nothing could be said."
)


def judge(files: list[str], machine: str | None = None) -> Answer:
    """Judge the output of another tool (nvbandwidth, nccl-tests, perftest and others).

    `files` are paths of its output, and of texts about the machine (nvidia-smi topo -m, lspci).
    `machine` (8 x H100 SXM) is for files that do not name the machine. Returns the verdict, the
    findings, and the cells that are not as they should be.
    """
    return _summary(linkgauge.judge_files(files, machine=machine))


def show(run: str, every_cell: bool = False) -> Answer:
    """Show a kept run: the verdict, the findings, and the cells that are not as they should be.

    `run` is the path of a run.json or of a run's folder. With `every_cell`, all cells are shown.
    """
    return _summary(linkgauge.load(run), every_cell=every_cell)


def doctor(run: str | None = None, root: str | None = None, machine: str | None = None) -> Answer:
    """Find what is wrong with a machine, and how to fix it; by default with this one.

    `run` is a kept run, `root` a file from `linkgauge capture` or its folder, `machine` a simulated
    machine.
    """
    if run is not None and root is None and machine is None:
        one = linkgauge.load(run)
        return _read(diagnosis_document(Diagnosis(one.outcome.found, outcome=one.outcome)))
    findings = linkgauge.doctor(run, root=root, machine=machine)
    outcome = outcome_of_setup(findings)
    return _read(diagnosis_document(Diagnosis(findings, outcome=outcome)))


def expect(what: str | None = None, change: str | None = None) -> Answer:
    """Say what hardware should reach, with the arithmetic of each figure, without measuring.

    `what` is a product (8 x H100 SXM) or a simulated machine; by default it is this machine.
    `change` changes parts of it first: fabric=none pcie=4x16.
    """
    return _read(json_document(linkgauge.expect(what, change=change)))


def devices(run: str | None = None, root: str | None = None, machine: str | None = None) -> Answer:
    """Describe memories, PCI functions and links of a machine; by default of this one.

    `run`, `root` and `machine` name another one, as for `doctor`.
    """
    return _read(json_document(linkgauge.devices(run, root=root, machine=machine)))


TOOLS = (judge, expect, doctor, show, devices)


def make_server() -> Any:
    """Returns a server of the official MCP library. Raises MissingPackage without the library."""
    library, types = needed("mcp.server.mcpserver", EXTRA), needed("mcp.types", EXTRA)
    server = library.MCPServer(
        "linkgauge", version=linkgauge.__version__, instructions=_HOW, log_level="WARNING"
    )
    reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    refusal = needed("mcp.server.mcpserver.exceptions", EXTRA).ToolError
    for tool in TOOLS:
        server.add_tool(_refusing(tool, refusal), annotations=reads)
    return server


def _refusing(tool: Callable[..., Answer], refusal: type[Exception]) -> Callable[..., Answer]:
    """Wraps a tool, so that agents get linkgauge's errors as a `refusal`, without a traceback."""

    @wraps(tool)
    def called(*arguments: Any, **given: Any) -> Answer:
        try:
            return tool(*arguments, **given)
        except LinkgaugeError as error:
            raise refusal(str(error)) from error

    return called


def _summary(found: linkgauge.MeasuredRun, *, every_cell: bool = False) -> Answer:
    """Returns a run's document. Unless `every_cell`, only counts the cells without faults."""
    document = _read(CELLS.json(OneRun(found.run, found.outcome, found.folder)))
    cells, left_out = list[Answer](), Counter[str]()
    for cell in document["cells"]:
        verdict = "skip" if cell["status"] == "skip" else cell["verdict"] or "not judged"
        if every_cell or cell["status"] not in ("pass", "skip") or verdict in FAULTY:
            cells.append(cell)
        else:
            left_out[verdict] += 1
    return document | {"cells": cells, "cells_left_out": left_out}


def _read(document: str) -> Answer:
    read: Answer = json.loads(document)
    return read
