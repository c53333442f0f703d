"""The output of several hosts, as files or as one log with prefixes: the odd one out is named."""

import json
import random
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from command_kit import called
from linkgauge.judge.verdict import judge
from linkgauge.rooms.judge_files.judging import judged_hosts
from linkgauge.rooms.judge_files.lines import bare, by_label
from linkgauge.rooms.judge_files.readers import read_text

WAYS = {"host_to_device_memcpy_ce": "->", "device_to_host_memcpy_ce": "<-"}


def output(host: str, *, slow: int | None = None, share: float = 0.5) -> str:
    """What nvbandwidth prints of four H100, of which one is slow."""
    draw = random.Random(host)
    lines = ["nvbandwidth Version: v0.8", "", "Driver Version: 570.86.15", "", host]
    lines += [f"Device {n}: NVIDIA H100 80GB HBM3 (00000000:{n + 1}b:00)" for n in range(4)]
    for name, arrow in WAYS.items():
        rates = [55 * draw.uniform(0.99, 1.01) * (share if n == slow else 1) for n in range(4)]
        lines += [
            "", f"Running {name}.", f"memcpy CE CPU(row) {arrow} GPU(column) bandwidth (GB/s)",
            "          0         1         2         3",
            " 0 " + "".join(f"{rate:10.2f}" for rate in rates), "", f"SUM {name} {sum(rates):.2f}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def woven(outputs: dict[str, str], draw: random.Random, prefix: str = "{}: ") -> str:
    """All lines with their host's prefix, as pdsh collects them."""
    left = {host: text.splitlines() for host, text in outputs.items()}
    lines = []
    while any(left.values()):
        host = draw.choice([one for one in left if left[one]])
        lines.append(prefix.format(host) + left[host].pop(0))
    return "\n".join(lines) + "\n"


HOSTS = {f"node0{n}": output(f"node0{n}", slow=2 if n == 3 else None) for n in range(1, 5)}


def test_the_odd_host_of_one_log_is_named(tmp_path):
    log = tmp_path / "pdsh.log"
    log.write_text(woven(HOSTS, random.Random(7)))
    done = called("judge", log)
    assert done.returncode == 1
    assert re.search(r"fail host +node03: 2 of 8 figures are below .* 3 hosts", done.stdout)
    assert not re.search(r"fail host +node0[124]", done.stdout)
    assert "All else here is of node03." in done.stdout
    assert re.search(r"^verdict: +fail host  node03:", done.stdout, re.MULTILINE)
    peers = json.loads(called("judge", log, "--json").stdout)["tool"]["peers"]
    assert {one["host"]: (one["low"], one["verdict"]) for one in peers} == {
        "node01": (0, "ok"), "node02": (0, "ok"), "node03": (2, "fail"), "node04": (0, "ok"),
    }  # fmt: skip
    assert all(50e9 < one["medians"]["host_to_device_memcpy_ce"] < 56e9 for one in peers)


def test_cells_of_another_tool_do_not_drift(tmp_path):
    row = " 0      12.00      8.41      4.12      6.75"
    (tmp_path / "log").write_text(re.sub(r"(?m)^ 0 .*", row, output("node01")))
    done = called("judge", tmp_path / "log")
    assert (done.returncode, "drift" in done.stdout) == (1, False)


def test_files_are_hosts_and_each_run_is_kept(tmp_path):
    paths = [tmp_path / f"{host}.log" for host in HOSTS]
    for path, text in zip(paths, HOSTS.values(), strict=True):
        path.write_text(text)
    done = called("judge", *paths, "--out", tmp_path / "kept")
    assert (done.returncode, "fail host  node03" in done.stdout) == (1, True)
    assert {one.parents[1].name for one in (tmp_path / "kept").rglob("run.json")} == {*HOSTS}


def test_two_hosts_do_not_tell_which_is_usual(tmp_path):
    logs = [tmp_path / name for name in ("a.log", "b.log")]
    logs[0].write_text(output("a"))
    logs[1].write_text(output("b", slow=1, share=0.8))
    said = called("judge", *logs).stdout
    assert re.search(r"warn host +b: 2 of 8 figures are below those of the other host", said)
    assert "nothing tells which of two hosts is as usual" in " ".join(said.split())


def test_a_text_without_figures_is_of_all_hosts(tmp_path):
    files = [tmp_path / f"{name}.txt" for name in ("node01", "node02", "topo")]
    for file, text in zip(files, [*map(output, ("node01", "node02")), TOPOLOGY], strict=True):
        file.write_text(text)
    (tmp_path / "more.txt").write_text(output("node01").replace("memcpy_ce", "memcpy_sm"))
    tool = json.loads(called("judge", *files, tmp_path / "more.txt", "--json").stdout)["tool"]
    assert [one["host"] for one in tool["peers"]] == ["node01", "node02"]
    assert tool["files"] == ["node01.txt", "more.txt", "topo.txt"]


TOPOLOGY = """        GPU0    GPU1    GPU2    GPU3    CPU Affinity    NUMA Affinity
GPU0     X      NV18    NV18    NV18    0-31            0
GPU1    NV18     X      NV18    NV18    0-31            0
GPU2    NV18    NV18     X      NV18    32-63           1
GPU3    NV18    NV18    NV18     X      32-63           1
"""


def test_ranks_of_one_job_are_no_hosts(tmp_path):
    """Slurm's labels number the ranks of a job, of which the first prints the table."""
    log = tmp_path / "slurm.log"
    table = output("node01").splitlines()
    debug = [f"node01:{n}:{n} [0] NCCL INFO Channel {n:02}/32 : 0[0] -> 1[1]" for n in range(30)]
    log.write_text("\n".join([f"0: {one}" for one in table] + [f"1: {one}" for one in debug]))
    done = called("judge", log)
    assert (done.returncode, "hosts" in done.stdout) == (0, False), done.stdout


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(("{}: ", "[{}] ", "  {}: ")))
def test_every_line_comes_to_its_host(draw, prefix):
    numbered = dict(zip("0123", HOSTS.values(), strict=True))
    lines = woven(numbered, draw, prefix).split("\n")
    found = by_label([bare(line) for line in lines])
    written = {label.strip("[]"): list(filter(None, lines)) for label, lines in found.items()}
    assert written == {
        host: [line.rstrip() for line in text.splitlines() if line.strip()]
        for host, text in numbered.items()
    }


def test_many_hosts_show_those_that_differ(tmp_path):
    log = tmp_path / "pdsh.log"
    hosts = {f"n{n:03}": output(f"n{n:03}", slow=0 if n == 17 else None) for n in range(40)}
    log.write_text(woven(hosts, random.Random(1)))
    done = called("judge", log)
    assert "40 hosts, the 6 that differ most" in done.stdout
    assert re.search(r"fail host +n017", done.stdout)


def test_each_host_is_judged_once():
    judged = []
    texts = [read_text(name, output(name))[0] for name in ("a", "b", "c")]
    runs, code = judged_hosts(texts, None, "x", lambda run: judged.append(run) or judge(run))
    assert sorted(run.label for run in judged) == ["a", "b", "c"]
    assert (code, len(runs), {len(run.tool.peers) for run in runs}) == (0, 3, {3})
