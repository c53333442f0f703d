"""`linkgauge as all_reduce_perf` as mpirun starts it: a process for each device, or for each share
of the hosts' memories."""

import re
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from collected_kit import Fake
from compat_kit import speak
from fakes import machine
from launch_kit import launch
from linkgauge.compat import nccl_tests as tests
from linkgauge.compat.base import Context, Where
from linkgauge.model.ranks import Rank
from linkgauge.model.result import RankTimes
from processes_kit import as_rank, of_processes


@pytest.fixture
def perf(capfd, monkeypatch):
    for name in ("NCCL_TESTS_DEVICE", "NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK"):
        monkeypatch.delenv(name, raising=False)

    def run(count, name, *arguments, fake=None, rank=0):
        as_rank(monkeypatch, rank, count)
        fabric = of_processes(count)
        devices = tuple(replace(one, memory_bytes=1 << 34) for one in fabric.devices)
        fabric = replace(fabric, devices=devices)
        ranks = tuple(
            Rank(n, f"{host}.example", 100 + n, one.memory)
            for n, (host, one) in enumerate(zip(fabric.hosts, devices, strict=True))
        )
        box = replace(machine(), devices={"cuda": devices}, ranks=ranks)

        @contextmanager
        def opened(where, settings, *, several, across):
            assert several
            assert "all_reduce" in across
            request = SimpleNamespace(settings=settings)
            yield Context(SimpleNamespace(machine=box, request=request), fabric)

        monkeypatch.setattr(tests, "opened", opened)
        monkeypatch.setattr(tests, "measure", fake or Fake())
        return speak(capfd, name, *map(str, arguments), on=Where())

    return run


def test_a_rank_is_a_process(perf):
    done = perf(4, "all_reduce_perf")
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"#  Rank.*", done.out) == [
        "#  Rank  0 Group  0 Pid    100 on      first device  0 [0000:10:00] Fake Card X1",
        "#  Rank  1 Group  0 Pid    101 on      first device  1 [0000:11:00] Fake Card X1",
        "#  Rank  2 Group  0 Pid    102 on     second device  0 [0000:10:00] Fake Card X1",
        "#  Rank  3 Group  0 Pid    103 on     second device  1 [0000:11:00] Fake Card X1",
    ]


def test_groups_work_at_the_same_time(perf, monkeypatch):
    monkeypatch.setenv("NCCL_TESTS_SPLIT", "DIV 2")
    fake = Fake()
    done = perf(4, "gather_perf", "-r", "-1", fake=fake)
    assert re.findall(r"Rank  (\d) Group  (\d)", done.out) == [*zip("0123", "0011", strict=True)]
    assert {work.split for work in fake.works} == {"DIV 2"}
    roots = [line.split()[4] for line in done.out.splitlines() if not line.startswith("#") and line]
    assert roots == ["0", "1"]


def test_a_hypercube_is_of_a_group(perf, monkeypatch):
    monkeypatch.setenv("NCCL_TESTS_SPLIT_MASK", "1")
    assert perf(6, "hypercube_perf").code == 4
    assert perf(4, "hypercube_perf").code == 0


@pytest.mark.parametrize(("average", "microseconds"), [(0, 8.0), (1, 10.0), (2, 8.0), (3, 13.0)])
def test_which_rank_is_reported(perf, average, microseconds):
    def change(_, result):
        own = tuple(RankTimes(n, (each * 2e-6,) * 4) for n, each in enumerate((8, 9, 13)))
        return replace(result, iterations=own)

    done = perf(3, "all_reduce_perf", "-a", average, fake=Fake(lambda *_: 10e-6, change))
    (line,) = [line for line in done.out.splitlines() if not line.startswith("#") and line]
    assert float(line.split()[5]) == microseconds


@pytest.mark.parametrize("arguments", [("-g", "2"), ("-t", "2")])
def test_a_process_has_one_device(perf, arguments):
    done = perf(2, "all_reduce_perf", *arguments)
    assert (done.code, done.out) == (5, "")
    assert done.err == "-t, -g: each process that mpirun starts uses one device\n"
    assert perf(2, "all_reduce_perf", *arguments, rank=1).err == ""


def test_a_process_has_the_device_of_its_number(perf, monkeypatch):
    monkeypatch.setenv("NCCL_TESTS_DEVICE", "1")
    done = perf(2, "all_reduce_perf")
    assert (done.code, done.out) == (5, "")
    assert done.err.startswith("NCCL_TESTS_DEVICE: each process uses the device")


def test_processes_without_gpus_have_the_memories_of_their_hosts(tmp_path):
    done = launch(tmp_path, 2, "as", "all_reduce_perf", "-b", "8", "-e", "32", "-f", "4")
    lines = re.findall(
        r"^#  Rank  \d Group  0 Pid +\d+ on +\S+ device .*$", done.stdout, re.MULTILINE
    )
    assert len(lines) == 2
    assert all(re.search(r"\[host:\d+\] host memory$", line) for line in lines)
    assert done.stdout.count("# Collective test starting: all_reduce_perf") == 1
