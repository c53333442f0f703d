"""Turns texts into a run: reads them, describes the machine, and assigns each figure to its
cell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from linkgauge.backends.sim.description import load, parse_description
from linkgauge.cli.requests import command_line
from linkgauge.engine.kept.folder import accelerator_of, create_run_folder
from linkgauge.model.documents.result import Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.errors import InputError
from linkgauge.model.names import and_all
from linkgauge.model.settings import Settings
from linkgauge.report.files import write_run

from .assemble import across, machine_of, results_of
from .descriptions import FORMS, MOST_BYTES, Described, describe, of_product, read_file
from .products import split_product
from .readers import ReadText, read_text
from .told import Facts, Log, ToldFigure, ToldGpu, merged

_STDIN = "-"
_MOST_HOSTS = 64
_MOST = 1e18
"""The largest figure that is accepted in any unit. Tools print 0 for what they could not
measure."""


def read_given_files(paths: Sequence[Path]) -> list[ReadText]:
    """Returns all figures and facts in the files; `-` is stdin. Raises InputError if a file cannot
    be read."""
    if sum(str(path) == _STDIN for path in paths) > 1:
        raise InputError("- stands for stdin, which can be read once")
    read = (_from_stdin() if str(path) == _STDIN else read_file(path) for path in paths)
    return [text for some in read for text in some]


def _from_stdin() -> list[ReadText]:
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"stdin has more than {MOST_BYTES} bytes: give less")
    return read_text("stdin", data.decode("utf-8", "replace"))


def run_of_texts(texts: Sequence[ReadText], machine: str | None, label: str) -> Run:
    """Returns the run that the texts describe. Raises InputError if the texts have no figures, or
    if `machine` cannot be read."""
    logs = [log for text in texts for log in text.logs]
    told = [figure for log in logs for figure in log.figures if 0 < figure.figure < _MOST]
    if not told:
        raise _nothing(texts)
    described = _described(texts, told, machine)
    space = next((log.space for log in logs if log.space), "cuda")
    backend = "opencl" if any(one and one.amd for one in described.products) else space
    about = _about(texts, logs, described)
    known = machine_of(described, backend)
    ranks, own = max(one.ranks for one in told), len(known.all_devices)
    assumed = list(about.assumed)
    if len(about.hosts) < 2 and own < ranks <= _MOST_HOSTS * own and not ranks % own:
        hosts = tuple(f"host{number}" for number in range(ranks // own))
        assumed.append(
            f"the ranks are those of {len(hosts)} hosts with {own} accelerators each, all alike"
        )
        about = replace(about, hosts=hosts)
    if any(one.work is not None and not one.ranks for one in told):
        assumed.append("all accelerators took part (the text lists no ranks)")
    if len(about.hosts) > 1 and ranks > own:
        known = across(known, backend, about.hosts, ranks)
    results, judged = results_of(told, known, backend)
    if not judged:
        devices = len(known.all_devices)
        raise InputError(
            f"the figures are of more accelerators than the {devices} that the machine has: "
            "--machine names another"
        )
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Run(
        id=moment, label=label, command=tuple(command_line()), started=moment, finished=moment,
        machine=known, settings=Settings(sizes=tuple({one.size: 0 for one in results})),
        results=results, tool=replace(about, judged=judged, assumed=tuple(assumed)),
    )  # fmt: skip


def _nothing(texts: Sequence[ReadText]) -> InputError:
    logs = [log for text in texts for log in text.logs]
    failed = next((one for log in logs for one in log.failed), None)
    if failed is not None:
        said = f"no figure, as the tool says itself: {failed}"
    elif logs:
        tools = ", ".join(dict.fromkeys(log.tool for log in logs))
        said = f"{tools} shows no figure there that is judged here"
    elif any(text.facts and text.understood for text in texts):
        said = "no tool's figures, only what tells of a machine: give its output, too"
    else:
        said = "no output of a tool that is known (linkgauge judge --help lists them)"
    return InputError(f"{and_all(text.name for text in texts)}: {said}")


def _described(
    texts: Sequence[ReadText], told: Sequence[ToldFigure], machine: str | None
) -> Described:
    """Returns the machine of `--machine`, completed from the texts."""
    facts = [one for text in texts for one in text.facts]
    name = next((text.name for text in texts if any(f.joins for f in text.facts)), texts[0].name)
    if machine is not None:
        if (counted := split_product(machine)) is not None:
            return describe(machine, [of_product(*counted), *facts], told)
        own, text = load(machine)
        known, clashes = merged(facts)
        return Described(own, parse_description(text), (), clashes, known)
    is_known = any(one.joins or any(gpu.model for gpu in one.gpus.values()) for one in facts)
    if is_known or all(one.host is not None for one in told):
        return describe(name, facts, told)
    places = (int(one.column) for one in told if one.column.isdecimal() and one.work is None)
    count = min(max([1, *places, *(one.ranks - 1 for one in told)]) + 1, 64)
    found = describe(name, [Facts(gpus={n: ToldGpu() for n in range(count)}), *facts], told)
    return found._replace(assumed=(*found.assumed, _NAMELESS))


_NAMELESS = (
    'no text tells which accelerators these are: --machine "8 x H100 SXM" names them, or a text '
    f"({FORMS})"
)


def _about(texts: Sequence[ReadText], logs: Sequence[Log], described: Described) -> ToolRun:
    known = described.facts
    missed = next((text.missed for text in texts if text.missed), "")
    telling = [text.name for text in texts if any(_tells(facts) for facts in text.facts)]
    return ToolRun(
        name=", ".join(dict.fromkeys(log.tool for log in logs)),
        version=next((log.version for log in logs if log.version), None),
        files=tuple(text.name for text in texts),
        hosts=tuple(dict.fromkeys(host for log in logs for host in log.hosts)),
        lines=sum(text.lines for text in texts),
        understood=sum(text.understood for text in texts),
        missed=missed if len(missed) <= 120 else f"{missed[:119]}…",
        figures=sum(len(log.figures) for log in logs),
        machine=and_all([described.name, *telling]),
        assumed=tuple(dict.fromkeys(described.assumed)),
        clashes=described.clashes,
        settings=dict(known.settings),
        ways=tuple(sorted(known.ways)),
        adapters=known.used_adapters or known.adapters,
        nearest={str(index): near for index, near in known.nearest.items()},
        warnings=tuple(sorted(known.warnings))[:3],
        relaxed=known.relaxed,
        failed=tuple(one for log in logs for one in log.failed),
    )


def _tells(facts: Facts) -> bool:
    return bool(facts.joins or facts.bridges or any(gpu.links for gpu in facts.gpus.values()))


def keep(run: Run, out: Path) -> Path:
    """Writes a judged run to a folder like any other run, and returns the path of its run.json."""
    folder = create_run_folder(out, accelerator_of(run.machine), run.label, run.started)
    return write_run(folder, replace(run, id=folder.name))
