"""What is read where a text holds a test more than once, and what its numbers of lines hide."""

import pytest

from command_kit import called
from linkgauge.rooms.judge_files.readers import read_text

OSU = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n4194304     {:.2f}\n"
MLC = "Intel(R) Memory Latency Checker - v3.8\nALL Reads        :      {:.2f}\n"
NCCL = "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
ROW = "{0} {1} float sum -1 {2:.2f} {3:.2f} {3:.2f} 0 {2:.2f} {3:.2f} {3:.2f} 0\n"


def reduced(rate):
    size = 1 << 28
    return "all_reduce_perf -g 2\n" + NCCL + ROW.format(size, size // 4, size / rate / 1e3, rate)


def columns(text):
    return [
        one.column
        for read in read_text("log.txt", text)
        for log in read.logs
        for one in log.figures
    ]


@pytest.mark.parametrize("test", [OSU.format, MLC.format, reduced])
@pytest.mark.parametrize(("rates", "apart"), [([9000, 5000], 1), ([9000, 8000], 0)])
def test_runs_that_differ_are_no_samples_of_one(test, rates, apart):
    scale = 1e-3 if test is reduced else 1.0
    found = columns("".join(test(rate * scale) for rate in rates))
    assert sum(column.endswith(", run 2") for column in found) == len(found) // 2 * apart


def test_ten_runs_are_samples():
    assert len({*columns("".join(MLC.format(rate) for rate in range(9000, 99000, 9000)))}) == 1


def test_what_runs_differ_in_is_said(tmp_path):
    (tmp_path / "log.txt").write_text(OSU.format(3120) + OSU.format(23980))
    answer = " ".join(called("judge", tmp_path / "log.txt").stdout.split())
    assert "Runs of osu_bw differ in 3.12 GB/s and 24 GB/s for the same size" in answer


def numbered(text, first=1, step=1):
    lines = enumerate(text.splitlines())
    return "".join(f"{first + step * n:6}  {line}\n" for n, line in lines)


@pytest.mark.parametrize(("first", "step", "read"), [(1, 1, 1), (0, 1, 1), (41, 1, 1), (1, 2, 0)])
def test_numbers_of_lines_are_taken_off(first, step, read):
    text = "a note\n" * 8 + OSU.format(9000)
    assert len(columns(numbered(text, first, step))) == read


@pytest.mark.parametrize(("access", "said"), [("CAN", "peer"), ("CANNOT", "staged")])
def test_times_of_pairs_without_peer_access_are_none_of_peers(access, said):
    pairs = "".join(f"Device={a} {access} Access Peer Device={1 - a}\n" for a in range(2))
    grid = "   GPU     0      1\n     0   2.00   9.00\n     1   9.00   2.00\n"
    text = pairs + "P2P=Enabled Latency (P2P Writes) Matrix (us)\n" + grid
    found = [log for read in read_text("log.txt", text) for log in read.logs]
    assert {one.benchmark for log in found for one in log.figures} == {f"{said}_latency"}


@pytest.mark.parametrize("names", ["cuda:0-cuda:3", ""])
def test_pairs_without_a_link_are_named(tmp_path, names):
    how = [["X", "NV2", "NV2", "NODE" if names else "NV2"], ["NV2", "X", "NV2", "NV2"]]
    how += [["NV2", "NV2", "X", "NV2"], [how[0][3], "NV2", "NV2", "X"]]
    head = "        GPU0    GPU1    GPU2    GPU3    CPU Affinity\n"
    topology = head + "".join(
        f"GPU{n}    {'     '.join(row)}     0-9\n" for n, row in enumerate(how)
    )
    rates = [[700, 48, 48, 9 if names else 48], [48, 700, 48, 48]]
    rates += [[48, 48, 700, 48], [rates[0][3], 48, 48, 700]]
    grid = "   D\\D     0      1      2      3\n"
    grid += "".join(
        f"     {n} {' '.join(f'{one}.00' for one in row)}\n" for n, row in enumerate(rates)
    )
    peers = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n" + grid
    (tmp_path / "log.txt").write_text(topology + "\n" + peers)
    answer = " ".join(called("judge", tmp_path / "log.txt").stdout.split())
    assert (f"No NVLink joins {names}" if names else "verdict") in answer
    assert ("No NVLink joins" in answer) is bool(names)


def sent(rates, again, streams=("5",)):
    lines = ["Connecting to host 192.0.2.2, port 5201"]
    for end, tail in (("sender", f"  {again}  "), ("receiver", "  ")):
        lines += [
            f"[{name:>3}]   0.00-10.00  sec  9.99 GBytes  {rate:.2f} Gbits/sec{tail}{end}"
            for name, rate in zip(streams, rates, strict=True)
        ]
    return "\n".join([*lines, "", "iperf Done.", ""])


def test_each_run_of_iperf3_has_a_figure(tmp_path):
    text = sent([9.41], 12) + sent([2.74], 1500)
    (log,) = (log for read in read_text("log.txt", text) for log in read.logs)
    assert [one.figure * 8e-9 for one in log.figures] == pytest.approx([9.41, 2.74])
    assert [one.column for one in log.figures] == ["1", "1, run 2"]
    (tmp_path / "log.txt").write_text(text)
    answer = " ".join(called("judge", tmp_path / "log.txt").stdout.split())
    assert "1512 packets were sent again" in answer
    assert "Runs of nic_tcp_iperf3 differ in 0.343 GB/s and 1.18 GB/s" in answer


def test_streams_of_one_run_of_iperf3_are_one_figure():
    text = sent([4.0, 5.0, 9.0], 7, ("5", "7", "SUM")) + sent([8.0], 0)
    (log,) = (log for read in read_text("log.txt", text) for log in read.logs)
    assert [(one.column, one.figure * 8e-9) for one in log.figures] == [("2", 9.0), ("1", 8.0)]
