"""Reads NCCL, RCCL and their tests. The number of a line's words tells its columns, which differ by
version and options. Lines whose time and algbw contradict their size are left out."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from linkgauge.benchmarks.collectives import row_of
from linkgauge.model.operations.collective import (
    COLLECTIVE_NAMES,
    NUMBERS,
    REDUCTIONS,
    Collective,
    CollectiveName,
    NumberName,
    Reduction,
    bus_factor,
    has_root,
    reduces,
)
from linkgauge.model.units import count_of, format_size

from ..facts import HostFigure, ReportedFigure, ReportedGpu
from ..failures import meaning_of
from ..lines import address_of, at, index_of, number_of
from ..scan import TextScan

_RANK = re.compile(
    r".*?(?:#\s|^\s*)\s*Rank\s+(?P<rank>\d+)(?:\s+Group\s+\d+)?\s+Pid\s+\d+ on\s+"
    r"(?P<host>\S{1,80})\s+device\s+(?P<gpu>\d{1,3})\s+\[(?P<at>[\w:.]{1,16})\]\s+"
    r"(?P<model>.{1,100})"
)
_HEAD = re.compile(r"(?:.*?#)?\s+size\s+count\s+type\b(.*)")
_NAME = re.compile(r"(?:^|[\s/])(" + "|".join(COLLECTIVE_NAMES) + r")_perf(?:_mpi)?\b")
_UNEVEN = re.compile(r"(?:^|[\s/])alltoallv_perf\b")
_VERSION = re.compile(r"# (n|r)ccl-tests version (\S{1,40})|(?:NCCL|RCCL) version ?:? ?(\S{1,40})")
_DEBUG = re.compile(
    r"(?:(\S{1,80}):\d+:\d+ )?(?:\[\d+\] )?(?:\S{1,200}\.(?:cc|cpp|h):\d+ )?"
    r"[NR]CCL (?:INFO|WARN|TRACE|ABORT)"
)
_SET = re.compile(r"((?:NCCL|RCCL)_[A-Z0-9_]{2,40}) set (?:by environment )?to (\S{1,400})")
_COMMAND = re.compile(
    r"\s*(?:[$#]+ |export |-x |mpirun |srun |\S{1,60}[$#] |[NR]CCL_\w+=\S+ (?!<)|.{0,2000}_perf\b)"
)
_GIVEN = re.compile(r"\b((?:NCCL|RCCL)_[A-Z0-9_]{2,40})=[\"']?=?([\w.:,]{1,400})")
_VIA = re.compile(r"via (SHM|P2P|NET/[A-Za-z]+)(?:/\d+)?(?:/(GDRDMA))?")
_OTHERWISE = {
    "via direct shared memory": "SHM",
    "Using network Socket": "NET/Socket",
    "P2P is disabled between": "P2P disabled",
    "NVLS multicast support is not available": "no NVLS",
}
_BOUND = re.compile(r"Affinity for GPU (\d{1,3}) is (\d[\d,-]{0,400}\d|\d)")
_ADAPTER = re.compile(r"\[\d+\](\S{1,40}):\d+/(?:IB|RoCE)")
_FOOT = re.compile(
    r".*?# ((?:Out of bounds values|Avg bus bandwidth)\s*: \S{1,24} FAILED)"
    r"|(rank=\d+ #wrong=[1-9]\d*)"
)
"""What the foot of a table, and lines of ranks within it, tell of failures."""
_ENDED = (
    r".{0,400}?\b(?P<test>[a-z_]{4,20}_perf)\b",
    r".{0,200}?(?P<said>Test (?:NCCL|CUDA) failure .{3,200})",
    r".{0,200}? pid +\d+: Test failure ",
)
"""What names the program, and what it says of the call that ended it."""
_STAMP = re.compile(r"\s\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\s*$")
_WARNS = re.compile(r"NCCL WARN (\S.{10,160})")


_Ranks = dict[int, re.Match[str]]
"""Lines that name a rank's host, GPU and model, by number."""


class Call(NamedTuple):
    """A result in or out of place, with bandwidths in GB/s. `wrong` is as the tool prints it."""

    size: int
    type: NumberName
    reduction: Reduction | None
    root: int | None
    seconds: float
    in_place: bool = False
    wrong: str = ""
    algbw: float = 0.0
    busbw: float = 0.0

    @property
    def agrees(self) -> bool:
        return _is_rate(self.algbw, self.size / self.seconds / 1e9)


def _read_tables(seen: TextScan) -> None:
    lines, heads = seen.lines, [number for number, _ in seen.each(_HEAD)]
    if not heads:  # cut off: the table begins with its first row
        heads = [n for n, line in enumerate(lines) if "float" in line and _calls(line, None)][:1]
    found = [*seen.each(_DEBUG, _RANK)]
    debug = [match for _, match in found if match.re is _DEBUG]
    ranks = {number: match for number, match in found if match.re is _RANK}
    for _, own, so_far in seen.marks(*_ENDED, test="nccl-tests"):
        if "said" in own:
            seen.fail(own["said"], so_far["test"])
    if not (heads or ranks or debug or seen.failures):
        return
    lists = _lists(ranks, heads)
    # A list of other hosts than those of the list before is of another run.
    seen.machines |= {
        min(own) for before, own in pairwise(lists) if _machines(before) != _machines(own)
    }
    facts = _facts(seen, ranks.values(), [match.string for match in debug])
    hosts = dict.fromkeys(match["host"] for match in ranks.values())
    if any(map(_is_of_several, lists)):
        seen.remarks.append(
            f"the ranks are numbered from 0 on each of {len(hosts)} hosts, as where the tests were "
            "built without MPI (make MPI=1): each host ran alone, and nothing crossed the network"
        )
        hosts = dict.fromkeys([*hosts][:1])
        ranks = {number: match for number, match in ranks.items() if match["host"] in hosts}
    _tables(seen, heads, list(ranks))
    if not (heads or ranks or seen.failures):
        seen.facts(**facts)
        return
    seen.hosts = tuple(hosts)
    if not ranks and len(said := dict.fromkeys(match[1] for match in debug if match[1])) > 1:
        seen.hosts = tuple(said)  # one alone may be the host whose lines were kept
    versions = filter(None, map(_VERSION.search, lines))
    version = next((match[2] or f"library {match[3]}" for match in versions), "")
    tool = "rccl-tests" if any("rccl" in line.lower() for line in lines[:2000]) else "nccl-tests"
    vendor = "amd" if tool == "rccl-tests" else None
    seen.log(tool, version, sure=True, vendor=vendor, **facts)


def _lists(ranks: _Ranks, heads: Sequence[int]) -> list[_Ranks]:
    lists = list[_Ranks]()
    for last, (number, match) in zip([-1, *ranks], ranks.items(), strict=False):
        lists += [{}] if not lists or any(last < head < number for head in heads) else []
        lists[-1][number] = match
    return lists


def _machines(ranks: _Ranks) -> set[tuple[str, str]]:
    return {(match["host"], match["model"].strip()) for match in ranks.values()}


def _is_of_several(ranks: _Ranks) -> bool:
    """Whether hosts have ranks of the same number: each of them is a run of its own."""
    each = {(match["rank"], match["host"]) for match in ranks.values()}
    return len({rank for rank, _ in each}) < len(each)


def _facts(
    seen: TextScan, ranks: Collection[re.Match[str]], debug: Sequence[str]
) -> dict[str, Any]:
    first, text = next((match["host"] for match in ranks), None), "\n".join(debug)
    for match in ranks:
        if match["host"] == first:
            gpu = ReportedGpu(match["model"].strip(), _address(match["at"]))
            seen.gpus.setdefault(int(match["gpu"]), gpu)
    ways = {way for found in _VIA.findall(text) for way in found if way}
    ways |= {way for words, way in _OTHERWISE.items() if words in text}
    used = {one for line in debug if "NET/IB : Using" in line for one in _ADAPTER.findall(line)}
    settings = {name: value.rstrip(".") for name, value in _SET.findall(text)}
    for line in seen.lines:  # also those of the command line: NCCL_P2P_LEVEL=SYS ./all_reduce_perf
        if "CCL_" in line and _COMMAND.match(line):
            settings |= dict(_GIVEN.findall(line))
    return {
        "settings": settings, "ways": frozenset(ways), "hostname": first,
        "bound": {int(gpu): cpus for gpu, cpus in _BOUND.findall(text)},
        "used_adapters": len(used) or None, "warnings": frozenset(_WARNS.findall(text)),
    }  # fmt: skip


def _address(text: str) -> str | None:
    """Returns the PCI address of `0000:1b:00`, or the bus of an old version's `0x1b`."""
    text = text.lower().removeprefix("0x")
    if re.fullmatch(r"[0-9a-f]{1,2}", text):
        return f"{int(text, 16):02x}" if int(text, 16) else None
    return address_of(text)


def _tables(seen: TextScan, heads: Sequence[int], ranks: Sequence[int]) -> None:
    """Reads all tables. Wrong elements in a table's foot count for each of its lines, unless the
    lines themselves report wrong elements."""
    lines = seen.lines
    for before, head, end in zip([0, *heads], heads, [*heads[1:], len(lines)], strict=False):
        unit = _unit(lines[head : head + 3])
        rows = {n: calls for n in range(head, end) if (calls := _calls(lines[n], unit))}
        right = {n: calls for n, calls in rows.items() if all(call.agrees for call in calls)}
        odd = [calls for n, calls in rows.items() if n not in right]
        if odd:
            seen.remarks.append(
                f"{count_of(len(odd), 'line')} left out, whose time and algbw do not give its "
                f"size: {odd[0][0].size}"
            )
        rows = right
        if unit is None and rows:
            seen.remarks.append("a table without its head is read in the usual form")
        seen.used.update(rows)
        if any(map(_UNEVEN.search, lines[before : head + 1])):
            seen.figures += map(_uneven, rows.values())
            continue
        every = [call for calls in rows.values() for call in calls]
        listed = sum(before <= number < head for number in ranks) or len(ranks)
        is_unchecked = any(lines[number].endswith(" N/A") for number in rows)
        name = _name(lines, head, before) or _by_columns(every, listed, is_unchecked)
        # The list of ranks may be cut or of another run; busbw by algbw tells their number.
        # Without ranks between the previous table and this one, those of the whole text count.
        count = ranks_by_speeds(name, every)
        count = count or listed or _ranks_by_command(name, every, lines[before:head])
        first = len(seen.figures)
        note(seen, name, every, count)
        is_reported = any(call.wrong for call in every)
        for line in lines[head:end]:
            said = (foot[1] or foot[2]) if (foot := _FOOT.match(line)) else ""
            if said and not (is_reported and meaning_of(said).kind == "wrong-bytes"):
                seen.fail(said, name, seen.since(first))


def _uneven(calls: Sequence[Call]) -> ReportedFigure:
    """Returns alltoallv's best figure. Its pairs' sizes are unknown, so no rate is expected."""
    call = max(calls, key=lambda one: one.algbw)
    what = HostFigure("null -> null by host:0.cpu")
    return ReportedFigure(
        "alltoallv", call.type, "bus", call.busbw * 1e9, max(call.size, 1), host=what
    )


def ranks_by_speeds(name: CollectiveName, calls: Iterable[Call]) -> int:
    """Returns the number of ranks that busbw / algbw implies, or 0 if that is ambiguous."""
    speeds = ((call.algbw, call.busbw) for call in calls)
    algorithm, bus = max(speeds, key=lambda one: one[0], default=(0.0, 0.0))
    for ranks in range(2, 129) if bus and bus_factor(name, 2) != bus_factor(name, 3) else ():
        if abs(algorithm * bus_factor(name, ranks) - bus) <= 0.011:
            is_sure = algorithm * (bus_factor(name, ranks + 1) - bus_factor(name, ranks)) > 0.022
            return ranks if is_sure else 0
    return 0


_PROCESSES = re.compile(r".*\s(?:-np|-n|--np|--ntasks)[ =](\d{1,5})\b")
_EACH = re.compile(r"\s-[gt] ?(\d{1,2})\b")


def _ranks_by_command(name: CollectiveName, calls: Sequence[Call], lines: Sequence[str]) -> int:
    """Returns a command's processes × threads × GPUs, or 0 if busbw / algbw contradicts it."""
    for line in reversed(lines):
        launch, program, options = line.partition("_perf ")
        if program and len(line) < 4000:
            processes = _PROCESSES.match(launch)
            own = int(processes[1]) if processes else 1
            ranks = own * math.prod(map(int, _EACH.findall(f" {options}")))
            best = max(calls, key=lambda one: one.algbw, default=None)
            bus = best.algbw * bus_factor(name, ranks) if best and ranks > 1 else 0.0
            return ranks if best and abs(bus - best.busbw) <= 0.02 + 0.002 * bus else 0
    return 0


def _name(lines: Sequence[str], head: int, before: int) -> CollectiveName | None:
    """Returns the collective of the program named above the table, else below."""
    for number in [*range(head, before - 1, -1), *range(head, min(head + 400, len(lines)))]:
        if match := _NAME.search(lines[number]):
            return next(name for name in COLLECTIVE_NAMES if name == match[1])
    return None


def _by_columns(calls: Sequence[Call], ranks: int, is_unchecked: bool) -> CollectiveName:
    # Of two ranks, the ratio of bandwidths tells nothing. nccl-tests checks neither alltoall nor
    # sendrecv in place.
    has_roots = any(call.root not in (None, -1) for call in calls)
    reduces_data = any(call.reduction for call in calls)
    if has_roots:
        return "reduce" if reduces_data else "broadcast"
    best = max(calls, key=lambda one: one.algbw, default=None)
    if best is not None and ranks > 2 and abs(best.busbw - best.algbw) <= 0.011:
        return "sendrecv"
    if reduces_data:
        return "reduce_scatter" if best and 0 < best.busbw < best.algbw else "all_reduce"
    return "alltoall" if is_unchecked else "all_gather"


TYPES: dict[str, NumberName] = {name: name for name in NUMBERS}
TYPES |= {"fp8_e4m3": "f8e4m3", "fp8_e5m2": "f8e5m2"}
KINDS: dict[str, Reduction] = {name: name for name in REDUCTIONS}
"""Numbers and reductions as tools name them."""
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def _unit(lines: Sequence[str]) -> float | None:
    """Returns the unit of a table's times in seconds; None if the head is incomplete."""
    head = _HEAD.match(lines[0])
    units = (re.search(r"#.*\((us|ms|s)\)", line) for line in lines[1:])
    is_whole = head is not None and "busbw" in head[1].rpartition("time")[2]
    return next((_UNITS[match[1]] for match in units if match), 1e-6) if is_whole else None


def _usual_unit(size: int, words: Sequence[str]) -> float:
    """Returns the time's unit in seconds: 1e-6, or 1e-3 if the line fits ms (versions of 2019)."""
    time, rate = ([number_of(word) or 0.0 for word in words if number_of(word)] + [0.0, 0.0])[:2]
    return 1e-3 if time > 0 and _is_rate(rate, size / time / 1e6) else 1e-6


def _calls(line: str, unit: float | None) -> list[Call]:
    words = _STAMP.sub("", line).split()
    if len(words) < 6 or not words[0].isdecimal() or not words[1].isdecimal():
        return []
    kind, rest = TYPES.get(words[2]), words[3:]
    if kind is None or len(words[0]) > 16:
        return []
    size, reduction = int(words[0]), rest.pop(0) if number_of(rest[0]) is None else ""
    # Each side is time, algbw, busbw and, unless it is left out, errors; -I adds four.
    is_cut = len(rest) == 4 and re.fullmatch(r"\d+\.\d\d", rest[3])  # no errors, one side
    root = rest.pop(0) if len(rest) in (5, 7, 9, 17) or is_cut else ""
    wide = 8 if len(rest) == 16 else 4 if len(rest) % 4 == 0 else 3
    unit = unit or _usual_unit(size, rest)
    is_root = root.removeprefix("-").isdecimal() and len(root) < 6
    about = size, kind, KINDS.get(reduction), int(root) if is_root else None
    found = list[Call]()
    for number in range(2):
        time, algbw, busbw, wrong, *_ = [*rest[number * wide :][:wide], "", "", "", ""]
        rates = [number_of(word) for word in (time, algbw, busbw)]
        if rates[0] and rates[1] is not None and rates[2] is not None:
            # Versions before 2022 print the largest error of rounding there, which is below 1.
            wrong = wrong if (number_of(wrong) or 0) >= 1 else ""
            found.append(Call(*about, rates[0] * unit, number == 1, wrong, rates[1], rates[2]))
    return found


def _is_rate(algbw: float, rate: float) -> bool:
    """Whether `algbw` fits `rate` (GB/s, two decimals), or is at least half of it (hypercube)."""
    return 0.9 * rate / 2 - 0.011 <= algbw <= 1.1 * rate + 0.011


def note(seen: TextScan, name: CollectiveName, calls: Iterable[Call], ranks: int) -> None:
    """Adds calls' figures. Wrong elements in a call without a figure become a failure."""
    for call in calls:
        reduction = call.reduction if reduces(name) else None
        root = max(call.root or 0, 0) if has_root(name) else None
        work = Collective(name, call.type, reduction, root, call.in_place)
        wrong = (
            f"{call.wrong} wrong element{'' if call.wrong == '1' else 's'}" if call.wrong else ""
        )
        if call.size and work.is_checked:
            place = name, row_of(work), format_size(call.size)
            seen.figures.append(
                ReportedFigure(*place, call.seconds, call.size, work, ranks, failure=wrong)
            )
        elif wrong:
            seen.fail(wrong, name)


NAMES = {name.replace("_", ""): name for name in COLLECTIVE_NAMES}
"""The collectives, by their names without spaces, as other tools write them."""


# The file of nccl-tests.


def _read_json(seen: TextScan) -> None:
    for document in seen.documents("results"):
        listed, results = at(document, list, "config", "devices"), at(document, list, "results")
        calls = [call for one in results for call in _calls_of(one)]
        hosts = seen.hosts = tuple(dict.fromkeys(str(at(o, object, "hostname")) for o in listed))
        name = _name([" ".join(map(str, at(document, list, "args")))], 0, 0)
        name = name or _by_columns(calls, len(listed), is_unchecked=False)
        note(seen, name, calls, len(listed) or ranks_by_speeds(name, calls))
        if not calls:
            continue
        for one in listed:
            index = index_of(str(at(one, object, "device")))
            if index is not None and str(at(one, object, "hostname")) == hosts[0]:
                model = at(one, str, "device_info").strip()[:100] or None
                address = _address(str(at(one, object, "device_hex")))
                seen.gpus.setdefault(index, ReportedGpu(model, address))
        version = str(document.get("nccl_version"))[:40]
        seen.log("nccl-tests", f"library {version}", hostname=next(iter(hosts), None))
        return


def _calls_of(one: object) -> list[Call]:
    said = [at(one, object, key) for key in ("size", "count", "type", "redop", "root")]
    for side in (at(one, dict, "out_of_place"), at(one, dict, "in_place")):
        said += [side.get(key) for key in ("time", "alg_bw", "bus_bw", "nwrong")] if side else []
    return _calls(" ".join("".join(str(word).split()) or "-" for word in said), 1e-6)


READERS = {
    _read_tables: ("count", "Pid", "CCL ", "float", "failure common."),
    _read_json: ('"results"',),
}
