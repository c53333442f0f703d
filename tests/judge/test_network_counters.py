"""Counters that rose while cells were measured are notes, or the cause of low figures."""

import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import fakes
from judge_kit import run_of
from linkgauge.judge.doctor import diagnose, interface_setup, network
from linkgauge.judge.findings import Evidence, evidence_of
from linkgauge.judge.network_counters import KINDS, meaning_of, meanings
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import CounterRise, CounterSource
from linkgauge.model.notation import parse_transfers
from linkgauge.model.ranks import Rank
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from remedy_kit import assert_pasteable

SIZE = 64 << 20
DOCS = Path(__file__).parents[2] / "docs" / "network-counters.md"
TREE = """
source: made up
noise: 0.3%
host:
  cpu_model: Example CPU
  nodes: [{count: 4, cpus: 16, memory: 64G}]
link_kinds:
  slot: {kind: pcie, speed: 32, width: 16, latency: 500 ns}
  ndr: {kind: network, rate: 12.5 GB/s, efficiency: {read: 0.96, write: 0.96}, latency: 2 us}
switches: [{name: leaf0, kind: network}]
adapters: [{name: "mlx5_0..3", rate: 12.5 GB/s}]
devices: [{count: 4, model: Example, memory: 16G, memory_rate: 2 TB/s}]
links:
  - {kind: slot, each: "sim:0..3", to: "host:0..3"}
  - {kind: slot, each: "mlx5_0..3", to: "host:0..3"}
  - {kind: ndr, each: "mlx5_0..3", to: leaf0}
"""
"""Four hosts as nodes, with an accelerator and an adapter each."""


def cell(*rises, row="0", verdict="not judged", samples=10):
    """A copy of rank 0 to rank 1 over their nic:1, while this rose."""
    transfers = parse_transfers("host:0@0 -> host:0@1 by nic:1.tcp")
    return CellResult(
        row, "1", transfers, Report.FIRST, "pass", bytes=SIZE, loops=1, samples=(1e9,) * samples,
        summary=summarize([1e9] * samples), rises=rises, verdict=verdict,
    )  # fmt: skip


def evidence(*cells, mtus=(1500, 1500)):
    nics = [(Interface(name="lo"), Interface(name="eth0", mtu=mtu)) for mtu in mtus]
    ranks = tuple(Rank(n, f"node{n}", 1, nics=own) for n, own in enumerate(nics))
    result = Result(
        benchmark="copy", title="copy", backend="net", size=SIZE, unit="B/s", better="higher",
        status="pass", cells=cells,
    )  # fmt: skip
    return Evidence(replace(fakes.machine(), ranks=ranks), results=(result,))


def found(*cells, **more):
    """What the checks of networks find."""
    known = evidence(*cells, **more)
    checks = network.check_network_counters, network.check_tcp, interface_setup.check_ends
    findings = [finding for check in checks for finding in check(known)]
    assert_pasteable(findings)
    return findings


def host(rank=0, segments=100_000, **rose):
    return CounterRise(rank, "host", "", 2.0, {"TcpOutSegs": segments, **rose})


@pytest.mark.parametrize(
    ("rise", "words"),
    [
        (host(TcpRetransSegs=1000), "1,000 packets were sent again (500 a second, 1.49e+03 a GB"),
        (host(TcpRetransSegs=10), "10 packets were sent again"),
        (host(TcpExtTCPSACKReorder=740), "740 packets arrived out of order"),
        (host(rank=1, TcpExtTCPOFOQueue=20_000), "20,000 packets came out of order and waited"),
        (host(TcpRetransSegs=900, TcpExtTCPDSACKRecv=500), "400 packets were sent again"),
        (host(TcpRetransSegs=900, TcpExtTCPDSACKRecv=9, TcpExtTCPDSACKRecvSegs=800),
         "100 packets were sent again"),
        (host(rank=1, TcpExtTCPDSACKOldSent=900), "900 packets arrived twice"),
        (CounterRise(0, "queue", "eth0", 2.0, {"overlimits": 3000}), "packets were held back"),
        (CounterRise(1, "interface", "eth0", 2.0, {"carrier_down_count": 1}), "went down 1 times"),
        (CounterRise(1, "ethtool", "eth0", 2.0, {"rx_oversize_pkts_phy": 1}), "longer than a hop"),
        (CounterRise(1, "rdma", "mlx5_0:1", 2.0, {"symbol_error": 2}), "2 packets or symbols"),
        (CounterRise(1, "ethtool", "eth0", 2.0, {"rx_out_of_buffer": 5}), "no room"),
        (CounterRise(0, "rdma", "efa_0:1", 2.0, {"retrans_pkts": 9, "retrans_bytes": 70_000}),
         "9 packets were sent again"),
        (CounterRise(1, "rdma", "irdma0:1", 2.0, {"Rcvd Out of order packets": 3}), "out of order"),
    ],
)  # fmt: skip
def test_a_fault_is_named_at_the_side_whose_counter_rose(rise, words):
    (finding,) = found(cell(rise))
    assert words in finding.found
    assert (finding.check, finding.severity) == ("network", "note")
    assert finding.subject == f"nic:1@{rise.rank}"
    name = next(name for name in rise.rose if name != "TcpOutSegs")
    assert name in finding.found


@pytest.mark.parametrize(
    "rise",
    [
        host(), host(TcpRetransSegs=300, TcpExtTCPDSACKRecv=300), host(TcpRetransSegs=2),
        host(segments=10**6, TcpRetransSegs=20), host(rank=1, TcpExtTCPOFOQueue=1_500),
        host(TcpRetransSegs=30, TcpExtTCPLostRetransmit=15, TcpExtTCPDSACKRecvSegs=15),
        host(TcpActiveOpens=7, TcpExtDelayedACKs=500),
        CounterRise(0, "ethtool", "eth0", 2.0, {"tx_prio3_pause": 9, "nobody_knows": 12}),
        CounterRise(0, "rdma", "mlx5_0:1", 2.0, {"np_cnp_sent": 40, "rx_write_requests": 10**6}),
    ],
)  # fmt: skip
def test_what_healthy_networks_count_and_unknown_names_are_silent(rise):
    assert not found(cell(rise))


def test_pauses_are_a_cause_only_of_low_figures():
    rise = CounterRise(0, "ethtool", "eth0", 2.0, {"rx_prio3_pause": 90_000})
    (finding,) = found(cell(rise, verdict="low"), cell(row="1", verdict="ok"))
    assert (finding.severity, len(finding.cells)) == ("warn", 1)


def test_what_rises_as_often_in_good_cells_explains_no_low_one():
    often = host(TcpRetransSegs=1000)
    (finding,) = found(cell(often, verdict="low"), cell(often, row="1", verdict="ok"))
    assert finding.severity == "note"
    calm = host(TcpRetransSegs=10)
    (finding,) = found(cell(often, verdict="low"), cell(calm, row="1", verdict="ok"))
    assert finding.severity == "warn"


def test_segments_that_waited_for_lost_ones_were_not_overtaken():
    waited = host(rank=1, TcpExtTCPOFOQueue=20_000)
    (finding,) = found(cell(host(TcpRetransSegs=30), waited))
    assert "sent again" in finding.found
    (finding,) = found(cell(host(TcpRetransSegs=30, TcpExtTCPDSACKRecvSegs=30), waited))
    assert "waited for earlier ones" in finding.found


def of_rxe(rank=0, packets=3000, **rose):
    return CounterRise(rank, "rdma", f"rxe{rank}:1", 2.0, {"sent_pkts": packets, **rose})


def test_rxe_sends_again_what_is_late_and_that_is_no_loss():
    """As in an emulated machine, over a wire between two devices of rxe."""
    late = of_rxe(completer_retry_err=4), of_rxe(1, duplicate_request=79)
    assert not found(cell(*late))
    lost = of_rxe(completer_retry_err=22, rcvd_seq_err=21), of_rxe(1, out_of_seq_request=22)
    again, order = found(cell(*lost))
    assert "22 packets were sent again" in again.found
    assert "rcvd_seq_err" in again.found
    assert (order.subject, "out_of_seq_request" in order.found) == ("nic:1@1", True)
    (finding,) = found(cell(of_rxe(1, duplicate_request=30)))
    assert "30 packets arrived twice" in finding.found


def test_packets_that_were_sent_again_are_not_doubled_by_the_network():
    rises = host(TcpRetransSegs=900), host(rank=1, TcpExtTCPDSACKOldSent=20)
    (finding,) = found(cell(*rises))
    assert "sent again" in finding.found
    needless = host(TcpRetransSegs=900, TcpExtTCPDSACKRecvSegs=900)
    assert not found(cell(needless, rises[1]))


def test_reports_that_the_sender_has_not_read_yet_name_several_segments_each():
    """As on a host whose CPUs are busy: 79 sent again, one of 30 reports read."""
    again = host(TcpRetransSegs=79, TcpExtTCPDSACKRecv=1, TcpExtTCPDSACKRecvSegs=1)
    assert not found(cell(again, host(rank=1, TcpExtTCPDSACKOldSent=30)))
    lost = host(TcpRetransSegs=790, TcpExtTCPDSACKRecv=1, TcpExtTCPDSACKRecvSegs=1)
    (finding,) = found(cell(lost, host(rank=1, TcpExtTCPDSACKOldSent=30)))
    assert finding.found.startswith("325 packets were sent again")


def test_what_both_ends_count_says_how_many_segments_were_lost():
    """As in an emulated machine whose CPUs are late: nearly all that is sent again had arrived."""
    again = host(TcpRetransSegs=1117, segments=232_000, TcpExtTCPDSACKRecvSegs=836)
    ends = [{"data_segments_sent": 232_911, "segments_sent_again": 1117},
            {"data_segments_received": 232_893}]  # fmt: skip
    rises = [CounterRise(rank, "connection", "", 2.0, rose) for rank, rose in enumerate(ends)]
    (finding,) = found(cell(again, *rises))
    assert finding.found.startswith("18 packets were sent again")
    ends[1]["data_segments_received"] += 18
    assert not found(cell(again, *rises))
    ends[1]["data_segments_received"] = 9000  # merged segments count as one
    (finding,) = found(cell(again, *rises))
    assert finding.found.startswith("281 packets were sent again")


def connections(**counts):
    rose = {"connections": 2, "busy_us": 10**6, "window": 2 * 30_000, "least_rtt_us": 200, **counts}
    return CounterRise(0, "connection", "", 2.0, rose)


@pytest.mark.parametrize(
    ("rise", "words"),
    [
        (connections(), None),
        (connections(window_limited_us=900_000), "TCP waited 90% of its time for room in a rec"),
        (connections(window_limited_us=900_000, window=1 << 23), None),
        (connections(buffer_limited_us=700_000), "TCP waited 70% of its time for room in its send"),
        (connections(least_rtt_us=10_000), "the shortest round trip takes 0.005 s"),
        (connections(data_segments_sent=17, segments_sent_again=8, segment_bytes=2 * 8948),
         "TCP sent 47% of its segments again: those of 8,948 bytes do not arrive"),
        (connections(data_segments_sent=17, segments_sent_again=8, segment_bytes=2 * 1448), None),
    ],
)  # fmt: skip
def test_tcp_says_what_limited_it(rise, words):
    assert [one.found[: len(words)] for one in found(cell(rise))] == [words] * (words is not None)


def test_ends_that_take_packets_of_different_lengths_are_named():
    (finding,) = found(cell(), mtus=(9000, 1500))
    assert "nic:1@0 (eth0) 9000 and nic:1@1 (eth0) 1500" in finding.found
    assert not found(cell(), mtus=(9000, 9000))


def test_a_simulated_cable_counts_and_is_then_known_from_the_parts_beside_it():
    name = "device_to_device_memcpy_read_ce"
    run = judge(run_of("tree", TREE, name, faults=["slow mlx5_2-leaf0 rate=35%"]))
    findings = diagnose(evidence_of(run))
    (counted,) = (one for one in findings if one.check == "network")
    assert (counted.subject, counted.severity) == ("leaf0-mlx5_2", "warn")
    assert "symbol_error" in counted.found
    (slow,) = (one for one in findings if one.check == "slow")
    assert slow.subject == "leaf0-mlx5_2"
    assert counted.name in slow.explained_by
    healthy = judge(run_of("tree", TREE, name))
    assert not [one for one in diagnose(evidence_of(healthy)) if one.check in ("network", "slow")]


def test_each_row_of_the_table_is_well_formed_and_told_in_the_documentation():
    text = DOCS.read_text()
    for one in meanings():
        assert all(re.compile(form) for form in one.names)
        assert one.kind in KINDS
        assert one.origin
    for kind in KINDS:
        assert f"| {kind} |" in text
    drivers = {driver for one in meanings() for driver in one.drivers}
    assert {"mlx5", "bnxt_en", "bnxt_re", "efa", "irdma", "virtio_net", "rxe"} <= drivers
    assert all(f"`{driver}`" in text for driver in drivers)


def test_an_unknown_counter_means_nothing():
    sources = msgspec.inspect.type_info(CounterSource).values
    assert not any(meaning_of(source, "of_a_driver_to_come") for source in sources)
