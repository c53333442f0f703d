"""Checks network counters that rose, and the waits of TCP connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from linkgauge.judge.blame.cases import cases_of, named
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.network_counters import (
    Counted,
    Kind,
    counted,
    explains,
    interface_of,
    is_low,
)
from linkgauge.model.grouped import grouped

_FEW = 5e-5
"""The share of packets from which losses are reported. At 1 in 20,000 and 100 µs, TCP still reaches
some GB/s (M. Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm)."""
_SOME, _MANY = 5e-3, 0.01
_OVERTAKEN = 0.05
"""The share of segments that waited: at most 1.6 % in 50 healthy runs in an emulated machine, and
21 % and more where one packet of ten comes 4 ms later."""
_LEAST = 3
"""The fewest events for which a share of packets is meaningful."""
_NEVER = 0.0
"""The share for kinds of which a single event is a fault."""


class _Words(NamedTuple):
    """How to report one kind of counter, with texts for the finding. `share` is the least share of
    packets that is reported (None: the counter is reported only if it explains low figures)."""

    share: float | None
    found: str
    why: str
    remedy: tuple[str, ...]


_LOOK = "ip -s -s link show  # errors and drops by interface, on both hosts and the switch"
_ONE_WAY = "# Let the switches send all packets of a connection the same way (hashing by flow)."
_CABLE = "# Reseat the cable or the transceiver, or try another one; clean the ends of fibres."
_WORDS: Mapping[Kind, _Words] = {
    "sent again": _Words(
        _FEW, "{} packets were sent again",
        "the way to the other end loses packets or delays them, and the sender slows down",
        (_LOOK, "# Look for drops at the ports of the switch in between."),
    ),
    "out of order": _Words(
        _SOME, "{} packets arrived out of order",
        "packets took several ways or were lost: receivers put them in order, and senders take it "
        "for loss",
        (_ONE_WAY,),
    ),
    "overtaken": _Words(
        _OVERTAKEN, "{} packets came out of order and waited for earlier ones",
        "packets take several ways: each that is late holds up those that overtook it",
        (_ONE_WAY,),
    ),
    "twice": _Words(
        _FEW, "{} packets arrived twice",
        "something in between doubles packets, as a loop or a mirrored port does",
        ("# Look for a loop between switches (spanning tree), and for bonds with mode broadcast.",),
    ),
    "no room": _Words(
        _FEW, "{} packets found no room at the receiver",
        "the receiving host takes packets off its queues too slowly, and senders send them again",
        ("# Give the rings of the interface more entries: ethtool -G INTERFACE rx MOST",
         "# Spread its interrupts over CPUs of its own NUMA node."),
    ),
    "dropped": _Words(
        _FEW, "{} packets were dropped at the interface",
        "TCP and RDMA send them again, and slow down",
        ("tc -s qdisc show  # which queue drops", _LOOK),
    ),
    "held back": _Words(
        _MANY, "packets were held back {} times to keep a rate",
        "a limit is set: by a qdisc of this host, or by the instance's allowance",
        ("tc -s qdisc show  # tbf, htb and others have a rate",),
    ),
    "paused": _Words(
        None, "{} pauses were asked for or kept",
        "a port stood still because the other side of its link had no room",
        ("# Find the host that sends pauses: it takes packets too slowly.",),
    ),
    "marked": _Words(
        None, "{} packets were marked as congested",
        "several senders share a port of a switch, and each slows down",
        ("# Look for flows that share an uplink, and for priorities that differ between hosts.",),
    ),
    "broken": _Words(
        _NEVER, "{} packets or symbols were broken", "the cable, a transceiver or a port is bad",
        (_CABLE,),
    ),
    "down": _Words(
        _NEVER, "the link went down {} times",
        "nothing goes over it meanwhile, and TCP waits longer",
        (_CABLE, "journalctl -k | grep -i 'link is'"),
    ),
    "too long": _Words(
        _NEVER, "{} packets were longer than a hop takes",
        "the ends, or a switch between them, have different MTUs",
        ("# `ping -M do -s 8972` to the other host passes if the whole way takes 9000 bytes.",),
    ),
}  # fmt: skip


def check_network_counters(evidence: Evidence) -> Iterator[Finding]:
    """Reports counters that rose: as a warning if they explain low figures, else as a note."""
    found = grouped(((str(one.about), one.kind), one) for one in counted(evidence))
    for (_, kind), own in found.items():
        is_cause, words = explains(own, evidence), _WORDS[kind]
        events, packets = sum(one.events for one in own), sum(one.packets for one in own)
        if _is_named(events, packets, words, is_cause=is_cause):
            severity: Severity = "warn" if is_cause else "note"
            cells = named(one.case for one in own if one.is_low or not is_cause)
            names = [*dict.fromkeys(name for one in own for name in one.names)][:3]
            text = words.found.format(f"{events:,}")
            text += f" ({_rates(events, packets, own)}): {', '.join(names)}"
            yield Finding("network", severity, own[0].about, text, words.why, words.remedy, cells)


def _is_named(events: int, packets: int, words: _Words, *, is_cause: bool) -> bool:
    if not words.share:
        return is_cause or words.share is not None
    return events >= _LEAST and events >= words.share * packets


def _rates(events: int, packets: int, own: list[Counted]) -> str:
    seconds, size = sum(one.seconds for one in own), sum(one.bytes for one in own)
    rates = [f"{events / seconds:.3g} a second"] if seconds else []
    rates += [f"{events / size * 1e9:.3g} a GB"] if size else []
    rates += [f"{events / packets:.2g} of the packets"] if packets and events < packets else []
    return ", ".join(rates)


# What limited TCP.


_MOSTLY = 0.5
_OFTEN = 0.1
"""The share of the time. Between near hosts, filling a window that is too small takes as long as
waiting for room in it."""
_SMALL_WINDOW = 1 << 16
"""The bytes that a receive window has without scaling, and with which Linux begins."""
_FAR = 1e-3
"""The seconds of a round trip of 100 km of fibre: within a room it takes a hundredth of them."""
_SHORT = 1460
"""The bytes of a segment that fit the standard MTU of 1500."""
_MANY_AGAIN = 0.3
"""The share of segments that is sent again if none arrives: at such losses nothing is measured."""


class _Waits(NamedTuple):
    """Averages over TCP connections: shares of time spent waiting for the receive window and the
    send buffer, the window in bytes, the shortest round trip in seconds, the bytes of the longest
    segment, and the share of segments that were sent again."""

    window: float
    buffer: float
    window_bytes: float
    rtt: float
    segment_bytes: float
    again: float

    @classmethod
    def of(cls, rose: Mapping[str, int]) -> _Waits:
        busy, number = (max(1, rose.get(of, 0)) for of in ("busy_us", "connections"))
        shares = (rose.get(of, 0) / busy for of in ("window_limited_us", "buffer_limited_us"))
        window, rtt, segment = (
            rose.get(of, 0) / number for of in ("window", "least_rtt_us", "segment_bytes")
        )
        again = rose.get("segments_sent_again", 0) / max(1, rose.get("data_segments_sent", 0))
        return cls(next(shares), next(shares), window, rtt * 1e-6, segment, again)


class _Limit(NamedTuple):
    holds: Callable[[_Waits], bool]
    found: str
    why: str
    remedy: str


_LIMITS = (
    _Limit(
        lambda waits: waits.again > _MANY_AGAIN and waits.segment_bytes > _SHORT,
        "TCP sent {0.again:.0%} of its segments again: those of {0.segment_bytes:,.0f} bytes do "
        "not arrive, and shorter ones do",
        "a hop in between takes only shorter packets (MTU), and the sender does not hear of it",
        "sudo sysctl -w net.ipv4.tcp_mtu_probing=1  # or the same MTU at all ends and switches",
    ),
    _Limit(
        lambda waits: waits.window > _OFTEN and 0 < waits.window_bytes <= _SMALL_WINDOW,
        "TCP waited {0.window:.0%} of its time for room in a receive window of "
        "{0.window_bytes:,.0f} bytes",
        "each round trip moves no more bytes than the window: its limit is too low",
        "sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 67108864'  # at the receiver",
    ),
    _Limit(
        lambda waits: waits.buffer > _MOSTLY,
        "TCP waited {0.buffer:.0%} of its time for room in its send buffer",
        "each round trip moves no more bytes than the buffer: its limit is too low",
        "sudo sysctl -w net.ipv4.tcp_wmem='4096 65536 67108864'  # at the sender",
    ),
    _Limit(
        lambda waits: waits.rtt >= _FAR,
        "the shortest round trip takes {0.rtt:.3g} s",
        "the ends are far from each other, or something in between delays packets: TCP needs as "
        "many bytes on their way as go in that time",
        "# `ping` to the other host shows a round trip without load.",
    ),
)


def check_tcp(evidence: Evidence) -> Iterator[Finding]:
    found = grouped(
        (part, (case, _Waits.of(one.rose)))
        for case in cases_of(evidence)
        for one in case.cell.rises
        if one.source == "connection" and (part := interface_of(case.cell, one.rank)) is not None
    )
    for part, own in found.items():
        for limit in _LIMITS:
            if held := {case: waits for case, waits in own if limit.holds(waits)}:
                severity: Severity = "warn" if any(is_low(case.cell) for case in held) else "note"
                text = limit.found.format(next(iter(held.values())))
                of = text, limit.why, (limit.remedy,), named(held)
                yield Finding("tcp-limit", severity, part, *of)
