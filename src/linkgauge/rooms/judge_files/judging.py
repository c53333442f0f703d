"""Turns texts into judged runs, one for each host, and compares each host with the others."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path, PurePath
from statistics import median

from msgspec.structs import replace

from linkgauge.backends.sim.description import load, parse_description
from linkgauge.engine.kept.folder import accelerator_of, create_run_folder
from linkgauge.judge.blame.xids import severity_of
from linkgauge.judge.outcome import Outcome, outcome_of
from linkgauge.judge.vendor import tool_of
from linkgauge.machine.kernel_log import printed_log
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import HostFigures, ToolRun
from linkgauge.model.errors import InputError, worst_code
from linkgauge.model.grouped import grouped
from linkgauge.model.names import and_all
from linkgauge.model.settings import Settings
from linkgauge.model.stats.moments import median_without
from linkgauge.report.files import write_run

from .assemble import across, are_judged, machine_of, results_of, results_without_figures
from .descriptions import FORMS, MOST_BYTES, Described, describe, of_product, read_bytes, read_file
from .facts import (
    Facts,
    HostFigure,
    Log,
    ReportedFigure,
    ReportedGpu,
    is_telling,
    merged,
    vendor_of,
    warnings_of,
)
from .failures import meaning_of
from .products import VENDORS, product_of, split_product
from .readers import ReadText

_STDIN = "-"
_MOST_HOSTS = 512
_HOST = re.compile(r"(?i)(?:^|[-_.])(?:(?:node|host|nid|[dh]gx)[-_]?\d+|desktop|laptop)$")
_RUN = re.compile(r"(?i)(?:run|test|try|trial|attempt|before|after|old|new)?[-_.]?\d*")
"""Names of hosts' files (others do not say what differs), and names of folders that hold runs."""


def read_given_files(paths: Sequence[Path]) -> list[ReadText]:
    """Reads files; `-` is stdin. Raises InputError if one cannot be read."""
    if sum(str(path) == _STDIN for path in paths) > 1:
        raise InputError("- stands for stdin, which can be read once")
    times = Counter(path.name for path in paths)
    found = list[ReadText]()
    for path in paths:
        if str(path) == _STDIN:
            found += read_bytes("stdin", sys.stdin.buffer.read(MOST_BYTES + 1))
            continue
        own = PurePath(path.name).stem if _HOST.search(path.stem) else ""
        folder = path.absolute().parent.name if times[path.name] > 1 else ""
        folder = "" if _RUN.fullmatch(folder) else folder
        found += [replace(o, shell=o.shell or own or folder) for o in read_file(path)]
    return found


def run_of_texts(texts: Sequence[ReadText], machine: str | None, label: str) -> Run:
    """Builds a run. Raises InputError without figures, or if `machine` is unreadable."""
    logs = [log for text in texts for log in text.logs]
    reported = [one for log in logs for one in log.figures if one.is_measured or one.failure]
    failures = [failure for log in logs for failure in log.failures]
    is_bare = not reported and all(meaning_of(one.said).status == "skip" for one in failures)
    described = _described(texts, reported, machine)
    if is_bare and (failures or not is_telling(described.facts)):
        raise _nothing(texts)
    alone, facts = HostFigure("null -> null by host:0.cpu", with_device=True), described.facts
    unclear = {n for n, one in enumerate(reported) if described.is_unclear and one.is_of_pair}
    unknown = unclear | _cached(reported, facts)
    reported = [
        one._replace(host=alone, part=None) if number in unknown else one
        for number, one in enumerate(reported) if number not in unknown or one.part is None
    ]  # fmt: skip
    backend = VENDORS[vendor_of(described.facts)].space
    about = _about(texts, logs, described)
    known = machine_of(described, backend)
    ranks, own = max((one.ranks for one in reported), default=0), len(known.all_devices)
    assumed, hosts = list(about.assumed), about.hosts
    if len(hosts) < 2 and own < ranks <= _MOST_HOSTS * own and not ranks % own:
        hosts = tuple(f"host{number}" for number in range(ranks // own))
        assumed.append(
            f"the ranks are those of {len(hosts)} hosts with {own} accelerators each, all the same"
        )
    if any(one.work is not None and not one.ranks for one in reported):
        assumed.append("all accelerators took part (the text lists no ranks)")
    if len(hosts) > 1 and ranks > own:
        known = across(known, backend, hosts, ranks)
    results, judged, lost = results_of(reported, known, backend)
    results += tuple(results_without_figures((*failures, *lost), backend))
    if not results and not is_bare:
        raise InputError(
            f"the figures are of more accelerators than the {len(known.all_devices)} that the "
            "machine has: --machine names another"
        )
    # Warnings of narrow links come last, because some boards are built so. Without figures, the
    # check link-width reports some of them.
    narrow = (o for o in facts.narrow if results or not o.at or not are_judged(o.at, known))
    log = printed_log(facts.log)
    grave = (o.text for o in log.lines if results and severity_of(o) == "fail")  # else findings
    warnings = (*about.warnings, *grave, *sorted(map(str, narrow)))
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Run(
        id=moment, label=label, command=(), started=moment, finished=moment,
        machine=known, settings=Settings(sizes=tuple({one.size: 0 for one in results})),
        results=results, kernel_log=log if log.lines else None,
        tool=replace(about, hosts=hosts, judged=judged, assumed=tuple(assumed), warnings=warnings),
    )  # fmt: skip


def _cached(reported: Sequence[ReportedFigure], facts: Facts) -> set[int]:
    """Returns which figures are copies that a cache holds: all copies within accelerators of one
    model move more than their memory can."""
    shares = grouped(
        ((one.size, gpu.model), (2e-9 * one.figure / product.rate, number))
        for number, one in enumerate(reported)
        if one.benchmark == "device_local_copy" and (one.size or 0) <= _CACHED
        and (gpu := facts.gpus.get(int(one.column))) and (product := product_of(gpu.model))
    )  # fmt: skip
    held = (some for some in shares.values() if max(some)[0] > 1.1 and min(some)[0] > 1.0)
    return {number for some in held for _, number in some}


_CACHED = 256 << 20


def _nothing(texts: Sequence[ReadText]) -> InputError:
    logs = [log for text in texts for log in text.logs]
    failures = [f"{one.test}: {one.said}" for log in logs for one in log.failures]
    if failed := [*(said for log in logs for said in log.remarks), *failures]:
        said = f"no figure: {failed[0]}"
    elif logs:
        tools = ", ".join(dict.fromkeys(log.tool for log in logs))
        said = f"{tools} shows no figure there that is judged here"
    elif any(text.facts and text.understood for text in texts):
        said = "no tool's figures, only what tells of a machine: give its output, too"
    else:
        said = (
            "this is not the output of a known tool: give all that nvbandwidth, nccl-tests, "
            "p2pBandwidthLatencyTest or another tool of linkgauge judge --help printed"
        )
    return InputError(f"{and_all(text.name for text in texts)}: {said}")


def _described(
    texts: Sequence[ReadText], reported: Sequence[ReportedFigure], machine: str | None
) -> Described:
    facts = [one for text in texts for one in text.facts]
    name = next((text.name for text in texts if any(f.joins for f in text.facts)), texts[0].name)
    if machine is not None:
        if (counted := split_product(machine)) is not None:
            return describe(machine, [of_product(*counted), *facts], reported)
        own, text = load(machine)
        known, clashes = merged(facts)
        return Described(own, parse_description(text), (), clashes, known)
    ranks = max((one.ranks for one in reported), default=0)
    is_known = any(one.joins or any(gpu.model for gpu in one.gpus.values()) for one in facts)
    if is_known or all(one.host is not None for one in reported):
        # A text may list fewer accelerators than another one has figures of, and be cut off.
        listed = {n for one in facts for n in one.gpus}
        is_cut = listed and ranks % len(listed) and ranks > _USUAL_IN_A_HOST > len(listed)
        count = max(_places(reported), _USUAL_IN_A_HOST if is_cut else 0)
        more = range(count if listed and is_known else 0)
        return describe(name, [*facts, Facts(gpus={n: ReportedGpu() for n in more})], reported)
    count = max(_places(reported), ranks if ranks <= _MOST_IN_A_HOST else _USUAL_IN_A_HOST, 2)
    found = describe(name, [Facts(gpus={n: ReportedGpu() for n in range(count)}), *facts], reported)
    vendor = VENDORS[vendor_of(found.facts)]
    named = f'--machine "{vendor.example}" or ' if vendor.example else ""
    own = tool_of(vendor.pci, "topology")
    forms = FORMS if vendor.space == "cuda" else f"{own}; lspci -vvv and others are understood"
    nameless = f"accelerators of an unknown model; {named}a text would name it ({forms})"
    return found._replace(assumed=(*found.assumed, nameless))


def _places(reported: Sequence[ReportedFigure]) -> int:
    own = (one for one in reported if one.work is None and one.host is None)
    places = (int(place) for one in own for place in one.place if place.isdecimal())
    return min(max(places, default=-1) + 1, 64)


_MOST_IN_A_HOST, _USUAL_IN_A_HOST = 16, 8
"""More ranks than the first are assumed to be of several hosts, with as many as the second each."""


def _about(texts: Sequence[ReadText], logs: Sequence[Log], described: Described) -> ToolRun:
    known = described.facts
    missed = next((text.missed for text in texts if text.missed), "")
    telling = [
        text.name
        for text in texts
        for one in text.facts
        if one.joins or one.bridges or any(gpu.links for gpu in one.gpus.values())
    ]
    return by_name(
        ToolRun,
        known,
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
        ways=tuple(sorted(known.ways)),
        adapters=known.used_adapters or known.adapters or _named_adapters(known.settings),
        nearest={str(index): near for index, near in known.nearest.items()},
        warnings=(*warnings_of(known), *sorted(known.warnings)),
        failed=(
            *(one for log in logs for one in log.remarks),
            *(
                f"the run in {text.name} failed, without a figure"
                for text in texts
                if texts[1:] and _has_failed(text)
            ),
        ),
    )


def _has_failed(text: ReadText) -> bool:
    said = [one.said for log in text.logs for one in log.failures]
    is_failed = any(meaning_of(one).status != "skip" for one in said)
    return is_failed and not any(log.figures for log in text.logs)


def _named_adapters(settings: Mapping[str, str]) -> int | None:
    names = settings.get("NCCL_IB_HCA", "")
    return 1 + names.count(",") if "," in names and "^" not in names else None


def keep(run: Run, out: Path) -> Path:
    folder = create_run_folder(out, accelerator_of(run.machine), run.label, run.started)
    return write_run(folder, replace(run, id=folder.name))


# Several hosts.

_USUAL = 0.9
"""The least share of the other hosts' median that a figure of a healthy host reaches."""
_LARGE = 1 << 20
"""The size in bytes below which the time to start decides; such figures vary between hosts."""
_Key = tuple[object, ...]
_Figures = Mapping[_Key, tuple[Result, CellResult, float]]


def judged_hosts(
    texts: Sequence[ReadText], machine: str | None, label: str, judged: Callable[[Run], Run]
) -> tuple[list[Run], int]:
    """Returns each host's judged run, the worst first, and the worst exit code of several hosts (0
    for one host). Raises InputError if there are no figures."""
    texts = _once(texts)
    by_host, hosts = _by_host(texts)
    if len(by_host) < 2:
        return [judged(run_of_texts(texts, machine, label))], 0
    runs = {host: judged(run_of_texts(some, machine, host)) for host, some in by_host.items()}
    figures = {host: _figures(run) if host in hosts else {} for host, run in runs.items()}
    every = grouped((key, one[2]) for own in figures.values() for key, one in own.items())
    ranked = {key: sorted(some) for key, some in every.items()}
    outcomes = {host: outcome_of(run) for host, run in runs.items()}
    peers = tuple(
        _compared(run, outcomes[host], figures[host], ranked) for host, run in runs.items()
    )
    order = sorted(
        peers, key=lambda o: (not o.has_failed, -o.low, o.share or 1.0, _WORST.index(o.verdict))
    )
    worst = (runs[one.host] for one in order)
    found = [replace(run, tool=run.tool and replace(run.tool, peers=peers)) for run in worst]
    return found, worst_code(one.code for one in outcomes.values()) or 0


_WORST = "fail", "low", "warn", "not judged", "ok"


def _once(texts: Sequence[ReadText]) -> list[ReadText]:
    """Returns texts without runs that another text has from the other side of the connection."""
    every = [(len(log.figures), -n, log) for n, text in enumerate(texts) for log in text.logs]

    def is_again(n: int, log: Log) -> bool:
        own = len(log.figures), -n
        return any(one[:2] > own and log.is_other_side(one[2]) for one in every)

    return [
        replace(text, logs=tuple(o for o in text.logs if o.failures or not is_again(n, o)))
        for n, text in enumerate(texts)
    ]


def _by_host(texts: Sequence[ReadText]) -> tuple[dict[str, list[ReadText]], set[str]]:
    """Groups texts by host, and returns the groups and the names that are hosts' (other groups are
    runs). A text without figures belongs to all groups. A text that names no host joins an earlier
    group, unless both have a figure or a failed test in common."""
    found, keys, hosts = dict[str, list[ReadText]](), dict[str, set[_Key]](), set[str]()
    named = [(text.host or _hostname(text), text) for text in texts if text.has_figures]
    for name, text in sorted(named, key=lambda one: not one[0]):
        figures = {one[:3] + one[4:6] for log in text.logs for one in log.figures}
        tests: set[_Key] = {("test", one[0]) for one in figures}
        failed: set[_Key] = {("failed", one.test) for log in text.logs for one in log.failures}
        own = figures | failed
        own |= {("failed", test) for _, test in tests} | {("test", test) for _, test in failed}
        host = name or next((host for host in found if not keys[host] & own), "")
        if not host or keys.get(host, set()) & own:
            more = (f"{text.name} ({n})" for n in range(2, len(texts) + 2))
            names = (PurePath(text.name).stem, text.name, *more)
            host = next(one for one in names if one not in found)
        elif name:
            hosts.add(name)
        found.setdefault(host, []).append(text)
        keys.setdefault(host, set()).update(figures, tests, failed)
    shared = [text for text in texts if not text.has_figures]
    across = {
        host: frozenset(chain.from_iterable(map(_hosts_of, own))) for host, own in found.items()
    }
    times = Counter(across.values())
    hosts |= {host for host, named in across.items() if named and times[named] == 1}
    return {host: [*own, *shared] for host, own in found.items()}, hosts


def _hosts_of(text: ReadText) -> set[str]:
    return {host for log in text.logs for host in log.hosts}


def _hostname(text: ReadText) -> str:
    named = _hosts_of(text)
    named |= {one.hostname for one in text.facts if one.hostname}
    return named.pop() if len(named) == 1 else "" if named else text.shell


def _compared(
    run: Run, outcome: Outcome, own: _Figures, ranked: Mapping[_Key, Sequence[float]]
) -> HostFigures:
    shares = dict[str, float]()
    for key, (result, cell, figure) in own.items():
        if len(every := ranked[key]) > 1:
            share = figure / median_without(every, (bisect_left(every, figure),))
            shares[spoken(result, cell)] = share if result.better == "higher" else 1 / share
    less = {name: share for name, share in shares.items() if share < _USUAL}
    worst = min(less, key=lambda name: less[name], default="")
    return HostFigures(
        host=run.label, medians=dict(_medians(run)), cells=len(shares), low=len(less),
        worst=worst, share=less.get(worst), verdict=outcome.word,
    )  # fmt: skip


def _figures(run: Run) -> _Figures:
    models = tuple(one.model for one in run.machine.all_devices)  # others are not compared
    return {
        (models, one.benchmark, one.size, *cell.place, len(cell.transfers), str(cell.operation)):
            (one, cell, cell.headline)
        for one in run.results
        for cell in one.cells
        if cell.headline and (cell.bytes or one.size) >= min(_LARGE, one.size)
    }  # fmt: skip


def _medians(run: Run) -> Iterator[tuple[str, float]]:
    for result in sorted(run.results, key=lambda one: one.size):  # so that the largest counts
        figures = [cell.headline for cell in result.cells if cell.headline]
        if result.average or (figures and (len(figures) == 1 or not result.sweep)):
            yield result.benchmark, result.average or median(figures)
