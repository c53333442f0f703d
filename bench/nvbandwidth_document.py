"""Renders a campaign as a markdown document, and derives the exit status from its verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from linkgauge.model.documents.result import Run
from nvbandwidth_figures import HOST_TESTS, TESTS, Document, Figures, key_paths, shown
from nvbandwidth_judge import (
    WALL_BAR,
    RoundsRow,
    Verdict,
    compare_as,
    compare_devices,
    compare_hosts,
    compare_spreads,
    compare_tuned,
    examine_suite,
    medians,
    misses,
)
from nvbandwidth_plan import (
    TOOLS,
    TUNED_BARS,
    Campaign,
    Record,
    Tool,
    Topic,
    command_line,
    tools_of,
)

TITLES: dict[Topic, str] = {
    "device": "Within and between devices, and latencies",
    "host": "To and from the host",
    "tuned": "After `linkgauge run --tune`",
    "suite": "All 35 tests, again and again",
    "as": "`linkgauge as nvbandwidth -j`",
}


@dataclass(frozen=True)
class Section:
    """Text under its own heading, and a verdict for each bar in it."""

    title: str
    text: str
    verdicts: list[Verdict]


def exit_status(sections: Sequence[Section], interrupted: bool, problems: bool) -> int:
    """130 after an interruption, 3 if something was not measured, 1 if a bar was missed."""
    found = {verdict for section in sections for verdict in section.verdicts}
    if interrupted:
        return 130
    if problems or not found or "not measured" in found:
        return 3
    return 1 if "MISSED" in found else 0


def make_sections(campaign: Campaign) -> list[Section]:
    """One for each requested part of the comparison."""
    makers: dict[Topic, Callable[[Campaign], tuple[list[str], list[Verdict]]]] = {
        "device": _device,
        "host": _host,
        "tuned": _tuned,
        "suite": _suite,
        "as": _as,
    }
    sections = []
    for topic in campaign.sections():
        lines, verdicts = makers[topic](campaign)
        counted, complete = _count_runs(campaign, topic)
        text = "\n".join([counted, "", *lines])
        sections.append(Section(TITLES[topic], text, verdicts + complete))
    return sections


def problems_of(campaign: Campaign) -> list[str]:
    """What went wrong, run by run."""
    return [
        f"{record.tool} {record.scope} {record.round}: {problem}"
        for record in campaign.records
        for problem in record.reading().problems
    ]


def render(campaign: Campaign, sections: Sequence[Section], problems: Sequence[str]) -> str:
    """The whole document, its first heading of the second level."""
    lines = [f"## Beside nvbandwidth, {campaign.started[:10]}", "", *_machine(campaign)]
    lines += ["", "```sh", *_command_lines(campaign.records), "```", ""]
    lines += _table(
        ("", "held", "missed", "not measured"), [_tally(section) for section in sections]
    )
    for section in sections:
        lines += ["", f"### {section.title}", "", section.text]
    if problems or campaign.stopped:
        lines += ["", "### What went wrong", ""]
        lines += [f"- {problem}" for problem in (campaign.stopped, *problems) if problem]
    return "\n".join(lines) + "\n"


def _tally(section: Section) -> tuple[str, ...]:
    counts = Counter(section.verdicts)
    return section.title, *(str(counts[name]) for name in ("ok", "MISSED", "not measured"))


def _machine(campaign: Campaign) -> list[str]:
    """Date, GPUs and driver as nvidia-smi reported them, else as the tools did; both versions."""
    runs = [run for record in campaign.records if (run := record.run())]
    theirs = [
        msgspec.convert(record.document, Document).nvbandwidth
        for record in campaign.records
        if record.tool == "nvbandwidth" and record.document is not None
    ]
    gpus = campaign.gpus or next((found for run in runs if (found := _devices(run))), ())
    if not gpus and theirs:
        gpus = tuple(f"{name}, driver {theirs[0].driver}" for name in theirs[0].devices)
    counted = (f"{count} × {gpu}" for gpu, count in Counter(gpus).items())
    spoke = any(record.tool == "linkgauge as nvbandwidth" for record in campaign.records)
    ours = runs[0].machine.linkgauge if runs else "as nvbandwidth" if spoke else "(not run)"
    return [
        f"- Started: {campaign.started}",
        f"- GPUs: {'; '.join(counted) or 'unknown'}",
        f"- linkgauge {ours}, nvbandwidth {theirs[0].version if theirs else '(not run)'}",
    ]


def _devices(run: Run) -> tuple[str, ...]:
    found = run.machine.devices.get("cuda", ())
    return tuple(f"{one.model}, driver {one.driver}" for one in found)


def _command_lines(records: Iterable[Record]) -> list[str]:
    """Each command line once, in the order of first use."""
    return list(dict.fromkeys(command_line(record) for record in records))


def _count_runs(campaign: Campaign, topic: Topic) -> tuple[str, list[Verdict]]:
    """The number of runs made and wanted, and a verdict if too few were made."""
    counts, few = [], False
    for tool in tools_of(topic):
        done, wanted = len(campaign.of(tool, topic)), campaign.wanted(tool, topic)
        few |= done < wanted
        if done or wanted:
            counts.append(f"{tool} {done}" + (f" of {wanted}" if done < wanted else ""))
    return f"Runs: {', '.join(counts)}.", ["not measured"] if few else []


def _figures(campaign: Campaign, tool: Tool, topic: Topic) -> list[Figures]:
    return [record.reading().figures for record in campaign.of(tool, topic)]


def _device(campaign: Campaign) -> tuple[list[str], list[Verdict]]:
    ours, theirs = (medians(_figures(campaign, tool, "device"), TESTS) for tool in TOOLS)
    rows = compare_devices(ours, theirs)
    head = ("test", "figures", "nvbandwidth", "linkgauge", "ratio min … max", "bar", "")
    cells = [
        (
            f"`{row.test}`",
            str(len(row.ratios)),
            shown(row.test, row.theirs) if row.theirs else "—",
            shown(row.test, row.ours) if row.ours else "—",
            f"{min(row.ratios):.4f} … {max(row.ratios):.4f}" if row.ratios else "—",
            row.bar,
            row.verdict + (f" (one tool only: {'; '.join(map(str, row.alone))})" * bool(row.alone)),
        )
        for row in rows
    ]
    note = "Medians where there was more than one run; linkgauge untuned."
    return [note, "", *_table(head, cells)], [row.verdict for row in rows]


def _host(campaign: Campaign) -> tuple[list[str], list[Verdict]]:
    ours, theirs = (_figures(campaign, tool, "host") for tool in TOOLS)
    rows = compare_hosts(ours, theirs)
    note = "Medians over the rounds; a spread is (max − min) ÷ median; linkgauge untuned."
    return [note, "", *_rounds_table(rows)], [row.verdict for row in rows]


def _tuned(campaign: Campaign) -> tuple[list[str], list[Verdict]]:
    ours, theirs = (_figures(campaign, tool, "tuned") for tool in TOOLS)
    rows = compare_tuned(ours, theirs, TUNED_BARS)
    note = "Medians over the rounds; a spread is (max − min) ÷ median."
    return [note, "", *_rounds_table(rows)], [row.verdict for row in rows]


def _as(campaign: Campaign) -> tuple[list[str], list[Verdict]]:
    """Keys, names and statuses of the whole documents, then every figure."""
    ours, theirs = (campaign.of(tool, "as") for tool in tools_of("as"))
    if not ours or not theirs:
        return ["Nothing to compare."], ["not measured"]
    keys = sorted(key_paths(ours[0].document) ^ key_paths(theirs[0].document))
    tests = _names(ours[0].document) == _names(theirs[0].document)
    left, right = ([record.reading().figures for record in runs] for runs in (ours, theirs))
    rows = compare_as(left, right)
    compared = (
        f"Keys that only one of the documents has: {', '.join(keys) or 'none'}. Tests, their order "
        f"and statuses: {'alike' if tests else 'not equivalent'}. nvbandwidth took "
        f"{theirs[0].seconds:.1f} s, linkgauge {ours[0].seconds:.1f} s."
    )
    note = (
        "Medians over the rounds; a spread is (max − min) ÷ median. A single run of either tool, "
        "held in the same way against nvbandwidth's runs of the other rounds, misses the bar in so "
        f"many cells that cross to the host: linkgauge {_listed(misses(left, right))}; nvbandwidth "
        f"{_listed(misses(right, right))}."
    )
    verdicts: list[Verdict] = ["MISSED" if keys else "ok", "ok" if tests else "MISSED"]
    return [compared, "", note, "", *_rounds_table(rows)], verdicts + [row.verdict for row in rows]


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))


def _names(document: object) -> list[tuple[str, str]]:
    cases = msgspec.convert(document, Document).nvbandwidth.testcases
    return [(case.name, case.status) for case in cases]


def _rounds_table(rows: Sequence[RoundsRow]) -> list[str]:
    head = ("test", "row,column", "nvbandwidth", "linkgauge", "ratio",
            "spread of nvbandwidth", "spread of linkgauge", "bar", "")  # fmt: skip
    cells = [
        (
            f"`{row.key.test}`",
            "—" if row.key.column == "-1" else str(row.key),
            "—" if row.theirs is None else shown(row.key.test, [row.theirs]),
            "—" if row.ours is None else shown(row.key.test, [row.ours]),
            "—" if row.ratio is None else f"{row.ratio:.4f}",
            _percent(row.their_spread),
            _percent(row.our_spread),
            row.bar,
            row.verdict + (f" ({row.clause})" if row.clause else ""),
        )
        for row in rows
    ]
    return _table(head, cells)


def _suite(campaign: Campaign) -> tuple[list[str], list[Verdict]]:
    lines, verdicts = _suite_runs(campaign)
    more, spreads = _suite_spreads(campaign)
    return [*lines, "", *more], verdicts + spreads


def _suite_runs(campaign: Campaign) -> tuple[list[str], list[Verdict]]:
    records = campaign.of("linkgauge", "suite")
    runs = [
        examine_suite(record.round, record.seconds, run)
        for record in records
        if (run := record.run())
    ]
    head = ("run", "wall", "cells", "95 % interval ≤ ±1 %", "not verified", "not pass", "")
    rows = [
        (
            str(run.round),
            f"{run.seconds:.1f} s",
            str(run.cells),
            f"{run.exact / run.cells:.1%}" if run.cells else "—",
            str(run.not_verified),
            str(run.not_pass),
            run.verdict,
        )
        for run in runs
    ]
    note = (
        f"Bars: at most {WALL_BAR:g} s of wall time from the process's start to its end, every "
        "interval's half width at most 1 % of the median, every cell verified and passed."
    )
    for record in campaign.of("nvbandwidth", "suite"):
        note += f" nvbandwidth's whole suite took {record.seconds:.1f} s."
    return [note, "", *_table(head, rows)], [run.verdict for run in runs]


def _suite_spreads(campaign: Campaign) -> tuple[list[str], list[Verdict]]:
    """Device-only cells against their bars; the host's only if nvbandwidth was run too."""
    theirs = _figures(campaign, "nvbandwidth", "host")
    rows = compare_spreads(_figures(campaign, "linkgauge", "suite"), theirs)
    compared = len(theirs) > 1
    head = ("test", "cells", "widest spread", "bar", "nvbandwidth's widest", "cells wider", "")
    cells, verdicts = [], []
    for row in rows:
        judged = compared or row.test not in HOST_TESTS
        verdicts += [row.verdict] if judged else []
        cells.append(
            (
                f"`{row.test}`",
                str(row.cells),
                _percent(row.ours),
                "its own cells'" if row.limit is None else f"≤ {row.limit:.0%}",
                _percent(row.theirs),
                str(row.wider) if judged else "—",
                row.verdict if judged else "—",
            )
        )
    note = "Spread of each cell's medians over the runs, (max − min) ÷ median."
    return [note, "", *_table(head, cells)], verdicts


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value:.2%}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A markdown table; bars within cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines]
