"""A tool's server and client run as two ranks' parts of a measurement. The tool is iperf3 where it
is installed, and a program of this test that writes perftest's recorded answer."""

import os
import shutil
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from linkgauge.model.errors import BackendError, TookTooLong, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.rooms.network.outside import Outside, ToolCall, tool_of

RECORDED = Path(__file__).parents[1] / "data" / "perftest" / "ib_write_bw-quoted.json"
BY_TCP = parse_transfer("host:0@0 -> host:0@1 by nic:0.tcp")
STAND_IN = f"""#!{sys.executable} -S
import pathlib, socket, sys
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
if "--help" in words:
    sys.exit("usage: no GPUs")
if words[-1] == "127.0.0.1":
    socket.create_connection(("127.0.0.1", int(value("--port"))), 10).close()
    (file,) = (word.partition("=")[2] for word in words if word.startswith("--out_json_file="))
    pathlib.Path(file).write_text(pathlib.Path({str(RECORDED)!r}).read_text())
elif value("--ib-dev") == "gone":
    sys.exit(" Did not detect devices\\n Unable to find the Infiniband/RoCE device")
else:
    with socket.create_server(("127.0.0.1", int(value("--port")))) as door:
        door.accept()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as asked:
        return asked.getsockname()[1]


@pytest.fixture
def ends():
    """Makes the server's part and the client's."""
    made = []

    def make(operation, device=None, silent=15.0):
        port = free_port()
        for host in (None, "127.0.0.1"):
            call = ToolCall(1 << 20, 1, 1, device, host, port, Path())
            made.append(Outside(tool_of(operation), BY_TCP, call, silent))
        return made[-2:]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """An ib_write_bw that measures nothing."""
    program = tmp_path / "ib_write_bw"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def run(ends, loops):
    for one in ends:
        one.arm(loops)
        one.open()
    with ThreadPoolExecutor(1) as beside:
        other = beside.submit(ends[0].wait)
        return other, ends[1].wait()


def needs_iperf3():
    if shutil.which("iperf3") is None:
        if "iperf3" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail("LINKGAUGE_REQUIRE=iperf3, and there is none")
        pytest.skip("no iperf3 (Debian: iperf3)")


def test_iperf3_is_run_for_each_sample_and_its_client_says_how_long_it_took(ends):
    needs_iperf3()
    pair = ends("iperf3")
    for loops in (2, 8):
        other, ended = run(pair, loops)
        assert other.result().seconds == ()
        (seconds,) = ended.seconds
        assert seconds > 0


def test_perftests_file_is_read(ends, stand_in):
    other, ended = run(ends("ib_write_bw", "mlx5_0"), loops=100)
    assert other.result().seconds == ()
    assert ended.seconds[0] == pytest.approx(100 / 2229.27)


def test_a_tool_that_fails_says_why_in_its_own_words(ends, stand_in):
    server, _ = ends("ib_write_bw", "gone")
    with pytest.raises(BackendError, match=r"ib_write_bw: .*Unable to find .*\(exit code 1\)"):
        server.arm(5)


def test_a_server_to_which_nobody_comes_is_ended_at_its_deadline(ends, stand_in):
    server, _ = ends("ib_write_bw", "mlx5_0", silent=2.0)
    server.arm(5)
    server.open()
    with pytest.raises(TookTooLong, match=r"ib_write_bw: the server still runs after 2 s"):
        server.wait()


def test_what_is_missing_is_named_with_its_package(ends, stand_in, tmp_path, monkeypatch):
    with pytest.raises(Unsupported, match=r"ib_write_bw has no --use_cuda: .* without CUDA"):
        ends("ib_write_bw --use_cuda")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(Unsupported, match="ib_send_lat is missing: apt install perftest"):
        ends("ib_send_lat")
    with pytest.raises(Unsupported, match="iperf3 is missing: apt install iperf3"):
        ends("iperf3")
