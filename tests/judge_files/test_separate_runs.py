"""Texts of a tool are hosts only if they say so; else each is a run, and no other one blames it."""

import json
import re

import pytest

from command_kit import called

OSU = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n2097152  {}\n4194304  {}\n"
RATES = (135000.5, 40700.5, 40800.5)


def judged(folder, texts):
    paths = [folder / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    tool = json.loads(called("judge", *paths, "--json").stdout)["tool"]
    return called("judge", *paths), tool


def osu(rate, before=""):
    return before + OSU.format(rate * 0.9, rate)


@pytest.mark.parametrize("name", ["osu-{}.txt", "run-{}/osu.txt"])
def test_texts_that_name_no_host_are_runs(tmp_path, name):
    done, tool = judged(tmp_path, {name.format(n): osu(rate) for n, rate in enumerate(RATES)})
    assert "3 texts, each a run of its own" in done.stdout
    assert (done.returncode, "below the others" in done.stdout) == (0, False)
    assert "fail" not in done.stdout
    assert "warn" not in done.stdout
    assert done.stdout.count("osu_bw (GB/s)") == 1
    assert [one["medians"]["osu_bw"] / 1e6 for one in tool["peers"]] == [*RATES]


@pytest.mark.parametrize(
    "names",
    [
        [f"r1-u{n}/osu.txt" for n in range(3)],
        ["node1.txt", "node2.txt", "node3.txt"],
        ["a.txt", "b.txt", "c.txt"],
    ],
)
def test_texts_that_name_hosts_are_compared(tmp_path, names):
    prompt = "user@host{}:~$ ./osu_bw D D\n" if "a.txt" in names else ""
    texts = {
        name: osu(rate, prompt.format(n))
        for n, (name, rate) in enumerate(zip(names, (40600.5, 20000.5, 40800.5), strict=True))
    }
    done, _ = judged(tmp_path, texts)
    assert (done.returncode, "3 hosts" in done.stdout) == (1, True)
    assert "fail host" in done.stdout


def test_two_runs_of_one_host_are_no_two_hosts(tmp_path):
    done, tool = judged(tmp_path, {f"{n}.txt": osu(RATES[n], "u@h1:~$ osu_bw\n") for n in (0, 1)})
    assert "2 texts, each a run of its own" in done.stdout
    assert [one["host"] for one in tool["peers"]] == ["h1", "1"]


PERFTEST = """u@{host}:~$ ib_write_bw
                    RDMA_Write BW Test
 local address: LID 0000 QPN 0x0011 PSN {own}
 remote address: LID 0000 QPN 0x0011 PSN {other}
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             97.10              96.50              0.184000
"""
IPERF3 = """u@{host}:~$ iperf3
[  5] local 192.0.2.{own} connected to 192.0.2.{other}
[  5]   0.00-10.00  sec  13.8 GBytes  11.9 Gbits/sec                  receiver
"""


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [(PERFTEST, "0x94c092", "0x2c7304"), (IPERF3, "4 port 49068", "5 port 5201")],
)
def test_both_sides_of_a_connection_are_one_run(tmp_path, text, one, other):
    client = text.format(host="node1", own=one, other=other)
    server = text.format(host="node2", own=other, other=one)
    _, tool = judged(tmp_path, {"client.txt": client, "server.txt": server})
    assert (tool["figures"], tool["peers"]) == (1, [])
    _, tool = judged(
        tmp_path, {"client.txt": client, "server.txt": server.replace(one, "7 port 9")}
    )
    assert len(tool["peers"]) == 2


# Of NVIDIA/nccl-tests 290: 8 H100 of one node, and 16 of two with srun's labels, cut to two sizes.
ONE_NODE = """
 4294967296  1073741824  float  sum  -1   15870  270.63  473.60    0   15773  272.30  476.53    0
"""
TWO_NODES = """
 4294967296  1073741824  float  sum  -1   52043   82.53  154.74  N/A   51992   82.61  154.89  N/A
 8589934592  2147483648  float  sum  -1  103530   82.97  155.57  N/A  103538   82.96  155.56  N/A
"""


def nccl(rows, nodes):
    ranks = [
        f"#  Rank {8 * node + n:2} Group  0 Pid {5000 + n} on  node00{node + 1} device {n:2} "
        f"[0x{0x10 + n:x}] NVIDIA H100 80GB HBM3"
        for node in range(nodes)
        for n in range(8)
    ]
    return "\n".join([*ranks, *rows.strip("\n").splitlines(), ""])


def test_what_was_not_judged_comes_before_what_is_ok(tmp_path):
    """A healthy node is no verdict on two nodes, of which no text tells what their network is."""
    labelled = "".join(f" 0: {line}\n" for line in nccl(TWO_NODES, 2).splitlines())
    done, tool = judged(tmp_path, {"one.txt": nccl(ONE_NODE, 1), "two.txt": labelled})
    assert {one["verdict"] for one in tool["peers"]} == {"not judged", "ok"}
    assert re.search(r"^verdict: +not judged", done.stdout, re.MULTILINE)
    assert "155.57" in done.stdout
    assert "no adapter and no network between the nodes" in done.stdout
    assert done.returncode == 0
