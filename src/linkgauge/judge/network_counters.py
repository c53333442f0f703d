"""Finds network counters that rose during cells, and whether they explain low figures."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

from linkgauge.judge.findings import Evidence
from linkgauge.model.documents.result import CellResult
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.network import CounterRise, CounterSource
from linkgauge.model.hardware.part import Part
from linkgauge.model.ranks import nic_ends

from .blame.cases import Case, cases_of

Kind = Literal[
    "sent again", "out of order", "overtaken", "twice", "no room", "dropped", "held back", "paused",
    "marked", "broken", "down", "too long", "traffic",
]  # fmt: skip
"""What a counter counts. No rise of `traffic` is a fault."""
KINDS: tuple[Kind, ...] = get_args(Kind)
_TABLE = Path(__file__).with_name("doctor") / "network_counters.yml"
_PACKETS = re.compile(
    r"(?:[Tt]cp)?(?:Out|In)Segs|(?:rx|tx|sent|rcvd)_(?:packets|pkts)(?:_phy)?"
    r"|port_(?:xmit|rcv)_packets|[rt]x_total_frames|ip[46](?:In|Out)Pkts"
)
"""Counters of packets. The largest counts, because drivers count a segment that they split once."""
_AGAIN = "TcpRetransSegs"
_HAD_SEGMENTS, _HAD_REPORTS = "TcpExtTCPDSACKRecvSegs", "TcpExtTCPDSACKRecv"
_REPORTED = "TcpExtTCPDSACKOldSent"
"""`_HAD_SEGMENTS` counts segments that the receiver already had when they came, `_HAD_REPORTS` the
reports of this that the sender received (DSACK, RFC 2883), `_REPORTED` those that the receiver
sent. Such segments were not lost: a timer was too fast, or a CPU too slow."""
_LATE = ("TcpExtTCPTSReorder", "TcpExtTCPLostRetransmit")
"""Counters of segments that came late according to their timestamps, or were sent a third time.
Hardly any lost segment is sent a third time."""
_WAITED, _WINDOW = "TcpExtTCPOFOQueue", 1000
"""The counter of segments that waited for earlier ones. At most `_WINDOW` wait behind a lost one:
1.4 MB."""
_RETRIES, _DOUBLE = "completer_retry_err", "duplicate_request"
"""rxe's counters of packets that it sent again, also because an answer was late, and of those that
came twice."""
_RANGE = 16
"""The segments of a report that the sender has not read when a cell ends: reports name a range."""
_EXPLAINS = 3.0
"""Counters explain low cells if they rise so many times as often per byte in low cells as in other
cells."""


class Meaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of network_counters.yml: the meaning of counters. `names` are regular expressions
    for whole names. `counts` is what they count, `origin` is the source of `counts`."""

    kind: Kind
    source: tuple[CounterSource, ...]
    names: tuple[str, ...]
    counts: str
    origin: str = msgspec.field(name="from")
    drivers: tuple[str, ...] = ()


@cache
def meanings() -> tuple[Meaning, ...]:
    return msgspec.yaml.decode(_TABLE.read_bytes(), type=tuple[Meaning, ...])


@cache
def meaning_of(source: CounterSource, name: str) -> Meaning | None:
    """Returns the first entry of network_counters.yml that matches a counter, or None."""
    own = (one for one in meanings() if source in one.source)
    found = (one for one in own if any(re.fullmatch(form, name) for form in one.names))
    return next(found, None)


class Counted(msgspec.Struct, frozen=True):
    """Counters of one kind that rose on a rank's host during a cell. `events` is the largest rise
    of the counters `names`. `packets` is the host's count in `seconds`; the cell moved `bytes`."""

    case: Case
    about: Part | str
    rank: int
    kind: Kind
    events: int
    names: tuple[str, ...]
    packets: int
    seconds: float
    bytes: int

    @property
    def is_low(self) -> bool:
        return is_low(self.case.cell)


def interface_of(cell: CellResult, rank: int) -> Part | None:
    """Returns the network interface of a rank that a cell uses, or None if it uses none."""
    ends = (end for one in cell.transfers if one.engine.owner.is_nic
            for end in nic_ends(one) if end.rank == rank)  # fmt: skip
    nic = next(ends, None)
    return None if nic is None else Part.device(str(nic.place))


def is_low(cell: CellResult) -> bool:
    """Whether a cell is below its peers or its expected figure, or ended in an error or timeout."""
    is_below = cell.peers is not None and (cell.share(cell.peers) or 1.0) < 1
    return is_below or cell.verdict in ("low", "perhaps low") or cell.status in ("error", "timeout")


def counted(evidence: Evidence) -> Iterator[Counted]:
    """Yields counters that rose. Does not count packets that arrived twice because of a resend."""
    adapters = (one for one in evidence.machine.known.adapters if one.leads_to)
    cables = {one.name: Part.link(one.device, one.leads_to or "") for one in adapters}
    for case in cases_of(evidence):
        rises = [
            one for one in case.cell.rises
            if one.of not in cables or cables[one.of] in case.touched
        ]  # fmt: skip
        places = grouped(((one.rank, cables.get(one.of)), one) for one in rises)
        again, retries, doubles = (
            sum(one.rose.get(name, 0) for one in rises) for name in (_AGAIN, _RETRIES, _DOUBLE)
        )
        had = {rank: _had(rank, rises) for rank, _ in places}
        lost = max(0, again - sum(n for n in had.values() if n > 0))
        less = {_WAITED: _WINDOW * lost, _RETRIES: doubles, _DOUBLE: _WINDOW * retries}
        for (rank, cable), own in places.items():
            about = cable or interface_of(case.cell, rank) or f"rank {rank}"
            for kind, by_events in _by_kind(own, {_AGAIN: had[rank], **less}).items():
                events = max(by_events) - (again if kind == "twice" else 0)
                if events > 0:
                    names = tuple(by_events[n] for n in sorted(by_events, reverse=True))
                    of = _packets(own), max(one.seconds for one in own), moved(case.cell)
                    yield Counted(case, about, rank, kind, events, names, *of)


def _had(rank: int, rises: Iterable[CounterRise]) -> int:
    """Returns how many segments a rank sent again although the receiver already had them."""
    own, others, connections = Counter[str](), Counter[str](), Counter[str]()
    for one in rises:
        is_own, is_connection = one.rank == rank, one.source == "connection"
        (connections if is_connection else own if is_own else others).update(one.rose)
    received = connections["data_segments_received"]
    lost = max(0, connections["data_segments_sent"] - received)
    if received and lost <= connections["segments_sent_again"]:
        return own[_AGAIN] - lost
    # Unknown: a receiver behind virtio counts merged segments as one.
    unread = max(0, others[_REPORTED] - own[_HAD_REPORTS])
    had = max(own[_HAD_SEGMENTS], own[_HAD_REPORTS])
    return had + sum(own[name] for name in _LATE) + _RANGE * unread


def _by_kind(rises: Iterable[CounterRise], less: Mapping[str, int]) -> dict[Kind, dict[int, str]]:
    """Groups rises by kind. `less` maps counters to the number of events that are left out."""
    found: defaultdict[Kind, dict[int, str]] = defaultdict(dict)
    for one in rises:
        for name, rose in one.rose.items():
            meaning = meaning_of(one.source, name)
            more = rose - less.get(name, 0)
            if meaning is not None and meaning.kind != "traffic" and more > 0:
                shown = f"{name} of {one.of}" if one.of else name
                found[meaning.kind].setdefault(more, shown)
    return found


def _packets(rises: list[CounterRise]) -> int:
    counts = (each for one in rises for each in one.rose.items())
    return max((rose for name, rose in counts if _PACKETS.fullmatch(name)), default=0)


def moved(cell: CellResult) -> int:
    return (cell.bytes or 0) * (cell.loops or 0) * len(cell.samples)


def network_errors(evidence: Evidence) -> frozenset[Part]:
    """Returns the interfaces and cables whose counters explain low figures."""
    found = grouped(((one.about, one.kind), one) for one in counted(evidence))
    return frozenset(
        about for (about, _), own in found.items()
        if isinstance(about, Part) and explains(own, evidence)
    )  # fmt: skip


def explains(found: list[Counted], evidence: Evidence) -> bool:
    """Whether counters rose clearly more often per byte in low cells than in other cells."""
    low = [one for one in found if one.is_low]
    if not low:
        return False
    others, seen = [one for one in found if not one.is_low], {one.case for one in found}
    calm = sum(one.bytes for one in others) + sum(
        moved(case.cell) for case in cases_of(evidence)
        if case not in seen and any(one.rank == found[0].rank for one in case.cell.rises)
    )  # fmt: skip
    if not calm:
        return True
    often = sum(one.events for one in low) / max(1, sum(one.bytes for one in low))
    return often > _EXPLAINS * sum(one.events for one in others) / calm
