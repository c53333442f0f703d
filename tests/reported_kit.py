"""Figures that readers found in texts: their names in lists of right readings, and those that a
tool's own run measured."""

import math
import re
from unittest.mock import patch

from command_kit import called
from linkgauge.engine.session import Session


def answer_of(folder, text):
    """What `linkgauge judge` answers to a text, in one line."""
    (folder / "text.txt").write_text(text)
    done = called("judge", folder / "text.txt", COLUMNS=200)
    return " ".join((done.stdout + done.stderr).split())


def named(one, ranks):
    """The figure's name in readings.yml, and its value in GB/s or ns."""
    if one.work is not None:
        kind = " ".join(filter(None, (one.work.type, one.work.reduction)))
        place = " in place" if one.work.in_place else ""
        moved = one.work.bytes_on_bus(one.size, ranks)
        return f"{one.benchmark} {kind}{place}|{one.size}", moved / one.figure / 1e9
    is_time = one.host is not None and one.host.report.is_latency
    part = "" if one.part is None else f" part {one.part}"
    if one.host is not None and "@" in one.host.work:  # between hosts, by size
        part = f"|{one.size}"
    return f"{one.benchmark} {one.row} {one.column}{part}", one.figure * (1e9 if is_time else 1e-9)


def recorded(machine, words):
    """What `linkgauge as` printed on a machine (none: this one), and the medians of the cells that
    it measured, by their transfers. STREAM prints the best of its runs."""
    known = {}
    measure = Session.measure

    def recording(self, plan, *more):
        run = measure(self, plan, *more)
        for result in run.results:
            for cell in result.cells:
                if cell.summary is not None:
                    best = words[0] == "stream"
                    figures = {"": max(cell.samples)} if best else _medians(cell)
                    known.setdefault(_key(cell), []).append(figures)
        return run

    with patch.object(Session, "measure", recording):
        done = called("as", *(("--machine", machine) if machine else ()), *words)
    return done, known


def compared(run, known):
    """How many cells of a run from a text are those that were measured. All have to be, other than
    copies over the host, which are two copies where they were printed."""
    assert run.tool.judged == run.tool.figures
    count = 0
    for result in run.results:
        for cell in result.cells if "staged" not in result.benchmark else ():
            if cell.summary is None:
                continue  # a test that its tool could not run
            measured = known.get(_key(cell), [])
            assert any(_are_close(_medians(cell), one) for one in measured), (
                result.benchmark, cell.place, cell.summary.median, measured,
            )  # fmt: skip
            count += 1
    return count


def _name(transfer):
    """A transfer without what no text tells: the backend, the node, and how many threads."""
    words = re.sub(r"(cuda|hip|ze|opencl|sim|ipu|rbln):", "gpu:", str(transfer))
    words = re.sub(r"\bcpu\*\d+", "cpu", words)
    if "staging" in words:
        words = re.sub(r"\bhost:\d+\.", "", re.sub(r"\bhost:\d+/", "", words))
    return words


def _key(cell):
    is_named = cell.report.is_latency or cell.does.array is not None
    return (*sorted(map(_name, cell.transfers)), cell.does.name if is_named else "")


def _medians(cell):
    """Of the whole, and of each of its transfers that has a figure of its own."""
    parts = {_name(cell.transfers[part.transfer]): part.summary.median for part in cell.parts}
    return {"": cell.summary.median} | parts


def _are_close(told, measured):
    both = told.keys() & measured.keys()
    return all(
        math.isclose(told[name], measured[name], rel_tol=6e-3)
        or abs(told[name] - measured[name]) < 5.1e7 < told[name]  # of 0.1 GB/s
        for name in both
    )
