"""Reads nvidia-smi (its first screen, -L, `topo -m`, `-q`, and `nvlink -s`) and DCGM."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile

from msgspec.structs import replace

from linkgauge.model.hardware.pcie import SPEEDS

from ..facts import MIB, ReportedGpu, ReportedNic, ReportedNode, copied
from ..lines import DECIMAL, address_of, words_of
from ..products import model_of
from ..scan import TextScan
from .host import count_of_list

_CPUS = re.compile(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*")
_JOIN = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC|PSB")
_NEAR = ("PSB", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
_GPU = re.compile(r"GPU(\d{1,3})")
_LEGEND = re.compile(
    r"\s*(?:Legend:|(?:X|SYS|NODE|PHB|PXB|PIX|SOC|PSB|NV#|OK|[CGT]?NS|DR|U)\s+= "
    r"|NIC Legend:|NIC\d+: \S+$)"
)
_NAMED = re.compile(r"\s*(NIC\d{1,3}): (\S{1,40})$")
_MOST_LENGTH = 4000
_REFUSED = {
    "CNS": "the chipset does not support it",
    "GNS": "the GPUs do not support it",
    "TNS": "the topology does not support it",
    "NS": "not supported",
    "DR": "disabled by a key of the driver",
}
_SCREEN = (
    r".*?\|\s+(?P<gpu>\d{1,3})\s+(?P<model>\S.{1,40}?)\s+(?:On|Off|N/A)\s+\|\s+"
    r"(?P<pci>[0-9A-Fa-f:.]{12,18})\s|\s*[|+]"
)


def _tables(seen: TextScan) -> Iterator[tuple[int, list[str], dict[int, list[str]]]]:
    for _ in seen.each(_LEGEND):
        pass
    words = [words_of(line) if len(line) < _MOST_LENGTH else [] for line in seen.lines]
    starts = [n for n, own in enumerate(words) if own[:1] == ["GPU0"] and "X" not in own]
    for start, end in pairwise([*starts, len(words)]):
        heads = [*takewhile(lambda word: word != "CPU", words[start])]
        below = ((number, words[number]) for number in range(start + 1, end))
        if rows := {number: own for number, own in below if own[1:] and own[0] in heads}:
            yield start, heads, rows


def _topology(seen: TextScan) -> None:
    names = {match[1]: match[2] for line in seen.lines if (match := _NAMED.match(line))}
    for start, heads, rows in _tables(seen):
        count = len(heads) + 1
        links = {n: row for n, row in rows.items() if all(map(_JOIN.fullmatch, row[1:count]))}
        if links:
            seen.used |= {start, *links}
            own = {int(m[1]): row[1:] for row in links.values() if (m := _GPU.fullmatch(row[0]))}
            _matrix(seen, [names.get(head, head) for head in heads], own)
            return


def _matrix(seen: TextScan, heads: Sequence[str], rows: Mapping[int, Sequence[str]]) -> None:
    joins, nodes = dict[tuple[int, int], str](), dict[int, ReportedNode]()
    gpus = {at: int(match[1]) for at, one in enumerate(heads) if (match := _GPU.fullmatch(one))}
    near: dict[str, dict[int, str]] = {one: {} for at, one in enumerate(heads) if at not in gpus}
    rests = {own: words[len(heads) :] for own, words in rows.items()}
    lists = {own: rest[0] for own, rest in rests.items() if rest and _CPUS.fullmatch(rest[0])}
    sockets = _sockets(lists)
    for own, words in rows.items():
        node = _node(rests[own])
        node = sockets.get(own) if node is None else node
        seen.gpus[own] = ReportedGpu(node=node)
        if node is not None:
            nodes.setdefault(node, ReportedNode(count_of_list(lists.get(own, ""))))
        for at, word in enumerate(words[: len(heads)]):
            how = "SYS" if word == "SOC" else word
            if at not in gpus:
                near[heads[at]][own] = how
            elif gpus[at] > own:
                joins[own, gpus[at]] = how
    ways = {own: {of[own] for of in near.values() if own in of} & {*_NEAR} for own in rows}
    nearest = {own: min(some, key=_NEAR.index) for own, some in ways.items() if some}
    nics = {name: ReportedNic(near=of, node=_beside(seen.gpus, of)) for name, of in near.items()}
    seen.facts(
        joins=joins, nodes=nodes, adapters=len(nics) or None, nearest=nearest, nics=nics, cpus=lists
    )  # fmt: skip


def _beside(gpus: Mapping[int, ReportedGpu], near: Mapping[int, str]) -> int | None:
    """Returns the node of the nearest accelerator. If all accelerators are far, but on the same one
    of two nodes, returns the other node."""
    known = {index: _NEAR.index(how) for index, how in near.items() if how in _NEAR}
    closest = min(known, key=lambda index: known[index], default=None)
    if closest is None or near[closest] != "SYS":
        return None if closest is None else gpus[closest].node
    far = {gpus[index].node for index in near}
    return {frozenset([0]): 1, frozenset([1]): 0}.get(frozenset(far))  # type: ignore[arg-type]


def _sockets(cpus: Mapping[int, str]) -> dict[int, int]:
    """Returns each accelerator's node, from old tables: equal lists of CPUs are one node."""
    found = sorted(set(cpus.values()), key=lambda text: int(re.split("[-,]", text)[0]))
    separate = sum(count_of_list(text) or 0 for text in found) == count_of_list(",".join(found))
    return {own: found.index(text) for own, text in cpus.items()} if separate and found[1:] else {}


def _peers(seen: TextScan) -> None:
    """Reads `nvidia-smi topo -p2p`: with `n` it shows NVLink, with `a` atomics, else peer access.
    Without the command in the text, `NS` is ignored: it may only mean that there is no NVLink."""
    ways, warnings = set[str](), set[str]()
    for start, _, rows in _tables(seen):
        how = {word for row in rows.values() for word in row[1:]}
        if not {"X"} < how <= {"X", "OK", "U", *_REFUSED}:
            continue
        seen.used |= {start, *rows}
        above = _ASKED.findall(" ".join(seen.lines[max(start - 3, 0) : start]))
        way = _WAYS.get(above[-1], "peer access") if above else "peer access"
        ways |= {way} if how == {"X", "OK"} else set()
        if way != "peer access":
            ways |= set() if "OK" in how else {f"no {way}"}
        else:
            refused = how & (_REFUSED.keys() - ({"NS"} if not above else set()))
            warnings |= {f"no peer access, {_REFUSED[one]}" for one in refused}
    ways -= {"peer access"} if warnings else set()
    seen.facts(ways=frozenset(ways), warnings=frozenset(warnings))


_ASKED = re.compile(r"\btopo (?:-p2p|--p2p\w*)[ =](\w)")
_WAYS = {"n": "NVLink", "a": "peer atomics"}


def _node(rest: Sequence[str]) -> int | None:
    match = re.fullmatch(r"(\d{1,3})(?:[-,]\d.*)?", rest[1] if len(rest) > 1 else "")
    return int(match[1]) if match and int(match[1]) < 64 else None


def _links(seen: TextScan) -> None:
    counts, rates, errors = Counter[tuple[str, bool]](), dict[str, float](), set[str]()
    for _, own, said in seen.marks(
        r"\s*GPU (?P<gpu>\d{1,3}): (?P<model>.{1,100}?)(?: \(UUID: .{1,60}\))?$",
        rf"\s*Link \d{{1,2}}: (?:(?P<up>{DECIMAL}) GB/s|(?P<down><?inactive))",
        r"\s*Link (?P<link>\d{1,2}): "
        r"(?P<errors>Recovery Errors: [1-9]\d{0,12}|(?:Replay|CRC) Errors: \d{3,12})\b",
        r"(?P<gpu>)\s*$", gpu="",
    ):  # fmt: skip
        if said["gpu"] and "errors" in own:
            errors.add(f"GPU {said['gpu']}, NVLink {own['link']}: {own['errors']}")
        elif said["gpu"] and not own.keys().isdisjoint(("up", "down")):
            counts[said["gpu"], "up" in own] += 1
            rates |= {said["gpu"]: float(own["up"]) * 1e9} if "up" in own else {}
    for number, gpu in seen.gpus.items():
        up, rate = counts[str(number), True], rates.get(str(number))
        is_listed = up or counts[str(number), False]
        seen.gpus[number] = replace(gpu, links=up, link_rate=rate) if is_listed else gpu
    seen.facts(warnings=errors | frozenset(
        f"GPU {number}: {down} of {down + up} links down"
        for (number, is_up), down in counts.items()
        if not is_up and (up := counts[number, True])
    ))  # fmt: skip


def _screens(seen: TextScan) -> None:
    is_screen, lost = any("NVIDIA-SMI" in line for line in seen.lines), set[str]()
    for _, own, _ in seen.marks(
        r"\s*(?P<gpu>\d{1,3}), (?P<model>[A-Z][^,]{3,80}), (?P<pci>[0-9A-Fa-f:.]{12,18})\s*(?:,|$)",
        r"Unable to determine the device handle for (?P<lost>.{3,80}?): (?P<why>[A-Z].{2,80})",
        *([_SCREEN] if is_screen else []),
    ):
        if "lost" in own:
            lost.add(f"the driver does not reach {own['lost']}: {own['why'].rstrip('. ')}")
    seen.facts(warnings=frozenset(lost))


# -q: fields by indentation.

_OWN = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_PIECE = re.compile(r"\s*PCIe Generation\s*$")


def _query(seen: TextScan) -> None:
    """Reads GPUs. Of a text without heads, as `grep -A` leaves it, each piece is of a GPU."""
    warnings, is_closed, link = set[str](), False, "GPU Link Info/"
    pieces = (
        (start, head, {link + (name if "/" in name else f"PCIe Generation/{name}"): value
                       for name, value in fields.items()})
        for start, head, fields in seen.blocks(_PIECE)
    )  # fmt: skip
    for index, (start, head, fields) in enumerate([*seen.blocks(_OWN)] or pieces):
        seen.used.update(range(start if index else max(start - 8, 0), start))
        seen.gpus[index] = _described(fields, head[0])
        warnings |= set(_troubles(index, fields))
        is_closed |= _is_closed(fields)
    ways = frozenset(["confidential computing"] if is_closed else [])
    seen.facts(warnings=frozenset(warnings), ways=ways)


def _is_closed(fields: Mapping[str, str]) -> bool:
    said = fields.get("Confidential Compute", ""), fields.get("Confidential Compute/CC State", "")
    protected = fields.get("Conf Compute Protected Memory Usage/Total", "")
    return bool({one.lower() for one in said} & {"on", "enabled"} or re.match("[1-9]", protected))


_UNHEALTHY = {"True", "Unhealthy", "Degraded"}


def _troubles(index: int, fields: Mapping[str, str]) -> Iterator[str]:
    state = fields.get("Fabric/State", "N/A")
    if state not in ("N/A", "Completed"):
        yield f"NVLink's fabric is {state}, not Completed: does the fabric manager run?"
    status = fields.get("Fabric/Status", "N/A")
    if status not in ("N/A", "Success"):
        yield f"GPU {index} is not part of NVLink's fabric, whose status is {status}"
    for name, value in fields.items():
        if name.startswith("Fabric/Health/") and value in _UNHEALTHY:
            yield f"NVLink's fabric: {name.removeprefix('Fabric/Health/')} is {value}"
    card, slot = (_generation(fields.get(f"GPU Link Info/PCIe Generation/{of} Max"))
                  for of in ("Device", "Host"))  # fmt: skip
    if card and slot and slot < card:
        yield (
            f"GPU {index}: its slot carries {slot:g} GT/s, the GPU {card:g} GT/s: use a slot of "
            "its generation, or ask the board's vendor for one"
        )


def _described(fields: dict[str, str], head: str) -> ReportedGpu:
    link, lanes = "GPU Link Info", r"(\d{1,2})x"
    # The GPUs of one board share its slot, and no text states how many lanes each can have.
    most = None if fields.get("MultiGPU Board") == "Yes" else fields.get(f"{link}/Link Width/Max")
    memory = _count(r"(\d{1,9}) MiB", fields.get("FB Memory Usage/Total"))
    return ReportedGpu(
        model=fields.get("Product Name"),
        pci=address_of(fields.get("PCI/Bus Id", head)),
        speed=_generation(fields.get(f"{link}/PCIe Generation/Current")),
        max_speed=_generation(fields.get(f"{link}/PCIe Generation/Max")),
        width=_count(lanes, fields.get(f"{link}/Link Width/Current")),
        max_width=_count(lanes, most),
        memory=memory << 20 if memory else None,
    )


def _generation(text: str | None) -> float | None:
    return SPEEDS[int(text) - 1] if text and re.fullmatch(f"[1-{len(SPEEDS)}]", text) else None


def _count(pattern: str, text: str | None) -> int | None:
    match = re.match(pattern, text or "")
    return int(match[1]) or None if match else None


# DCGM.

_RATE = re.compile(
    r"GPU\s+(\d{1,3})(?::)? (GPU to Host|Host to GPU) bandwidth:"
    rf"(?:\s|\\t){{0,8}}({DECIMAL}) GB/s"
)
_RESULT = re.compile(
    r'"name":\s{0,8}"([^"]{1,60})"|"status":\s{0,8}("Fail)'
    r"|\|\s*(\w[\w -]{0,40}?)\s*\|\s*(?:Pass - GPUs?: [\d, ]{1,200})?Fail\b"
    r"(?: - GPUs?: (\d[\d, ]{0,200}))?"
    r"|(GPU \d{1,3} (?:was )?unsuccessfully [^\"|]{1,120})"
)
"""The name of a test in JSON, the status in JSON, a test that failed in the table and on which
GPUs, and the words about peers with wrong data."""
_GOES_ON = re.compile(r"\s*\|\s{8,40}\|(.*)\|\s*$")
_IDS = re.compile(r"(?i)gpu[ _]device[ _]ids[^\[]{0,80}\[([^\]]{0,4000})")


def _dcgm(seen: TextScan) -> None:
    lines, test, words, failed = seen.lines, "", dict[str, str](), set[str]()
    for numbers, line in _unwrapped(lines):
        for match in _RESULT.finditer(line):
            test = match[1] or match[3] or test
            if match[2] or match[3]:
                words.setdefault(test.lower(), f"{test}: Fail")
                failed |= {*re.findall(r"\d+", match[4] or "")} if test.lower() == "pcie" else set()
            elif match[5]:
                words[test.lower()] = f"{test}: {match[5]}"
        for match in _RATE.finditer(line):
            if rate := float(match[3]):
                own = int(match[1])
                source, to = (None, own) if match[2] == "Host to GPU" else (own, None)
                seen.figures.append(copied(source, to, rate, 512 * MIB))
                seen.used |= numbers
    listed = _IDS.search(" ".join(lines))
    models = map(model_of, re.findall('"([0-9a-f]{4})"', listed[1] if listed else ""))
    seen.gpus = {index: ReportedGpu(model) for index, model in enumerate(models) if model}
    is_one = seen.figures or any("DCGM" in line or "Diagnostic" in line for line in lines)
    for name, said in words.items() if is_one else ():
        # The figures are those of the PCIe test, which may have failed on GPUs without any.
        some = [n for n, o in enumerate(seen.figures) if not failed or o.column in failed]
        seen.fail(said, name, some if name == "pcie" else ())
    seen.facts()
    seen.log("DCGM")


def _unwrapped(lines: Sequence[str]) -> Iterator[tuple[set[int], str]]:
    found = list[tuple[set[int], str]]()
    for number, line in enumerate(lines):
        if found and (more := _GOES_ON.match(line)):
            numbers, before = found[-1]
            found[-1] = numbers | {number}, f"{before.rstrip().removesuffix('|')}{more[1]}|"
        else:
            found.append(({number}, line))
    yield from found


READERS = {
    _topology: ("GPU0",), _peers: ("GPU0",), _links: ("GPU ",), _query: ("GPU ", "PCIe Generation"),
    _screens: (", ", "NVIDIA-SMI", "Unable to determine"),
    _dcgm: ("DCGM", "Diagnostic", " bandwidth:", "evice IDs", "evice ids", "evice_ids"),
}  # fmt: skip
