"""What iperf3 and perftest are told, and how their answers are read. perftest's are recorded."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.errors import BackendError
from linkgauge.rooms.network.outside import (
    ToolCall,
    iperf_command,
    iperf_seconds,
    perftest_command,
    perftest_seconds,
)

RECORDED = Path(__file__).parents[1] / "data" / "perftest"
VERSIONS = ("4.5-0.17", "24.01.0-0.38", "26.04.17")
PROGRAMS = ("ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat")
MIB = 1 << 20


def call(file="ib_write_bw-quoted.json", **more):
    settings = {
        "size": MIB, "loops": 100, "streams": 1, "device": "mlx5_0", "host": "10.0.0.2",
        "port": 7001, "file": RECORDED / file,
    }  # fmt: skip
    return ToolCall(**settings | more)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_version_is_understood(version, program):
    """The same answer says in other words what its figure is to be."""
    file = f"{version}/{program}.json"
    text = (RECORDED / file).read_text()
    found = dict(re.findall(r'"?([\w.]+)"? ?: "?([\w.]+)"?', text))
    assert "rxe" in found["Device"]
    told = call(file, size=int(found["MsgSize"]), loops=int(found["n_iterations"]))
    seconds = perftest_seconds(program, told)
    if program.endswith("_bw"):
        messages = told.loops / seconds
        assert messages == pytest.approx(float(found["MsgRate"]) * 1e6, abs=1)
    else:
        assert float(found["t_min"]) <= seconds / told.loops * 1e6 <= float(found["t_max"])
        assert seconds / told.loops * 1e6 == pytest.approx(float(found["t_avg"]))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_version_accepts_what_it_is_told(version, program):
    known = (RECORDED / version / f"{program}.options").read_text().split()
    told = [word.partition("=")[0] for word in perftest_command(program, "", call())]
    assert {word for word in told if word.startswith("--")} <= {*known}


@pytest.mark.parametrize("content", [b"[" * 5000, b"\xff", b"x" * (1 << 10)])
def test_what_is_no_answer_of_perftest_is_an_error(content, tmp_path):
    file = tmp_path / "said.json"
    file.write_bytes(content)
    with pytest.raises(BackendError, match="ib_read_bw: its answer is not understood"):
        perftest_seconds("ib_read_bw", call(file=file))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rate_of_the_clock_that_was_not_found_out_is_said(version, tmp_path):
    """Such a version writes inf in its own way."""
    text = (RECORDED / version / "ib_send_lat.json").read_text()
    file = tmp_path / "said.json"
    file.write_text(re.sub(r"(t_avg\"?: )[\d.]+", r"\1inf", text))
    with pytest.raises(BackendError, match=r"no t_avg \(inf\): .* rate of the clock"):
        perftest_seconds("ib_send_lat", call(file=file))


def test_both_ends_of_perftest_are_told_the_same_but_for_the_address():
    client = perftest_command("ib_write_bw", "", call())
    assert perftest_command("ib_write_bw", "", call(host=None)) == client[:-1]
    assert client == [
        "--port", "7001", "--size", "1048576", "--CPU-freq", "--iters", "100",
        "--ib-dev", "mlx5_0", "--noPeak", "--qp", "1", "--out_json",
        f"--out_json_file={RECORDED / 'ib_write_bw-quoted.json'}", "10.0.0.2",
    ]  # fmt: skip
    assert "--noPeak" not in perftest_command("ib_read_lat", "", call())
    few = perftest_command("ib_read_lat", "", call(loops=1))
    assert few[few.index("--iters") + 1] == "5"


def test_memory_of_a_gpu_is_reached_by_the_drivers_module_or_as_a_dma_buffer():
    peermem = perftest_command("ib_send_lat", "--use_cuda", call())
    dmabuf = perftest_command("ib_send_lat", "--use_cuda_dmabuf", call())
    assert [word for word in peermem if "cuda" in word] == ["--use_cuda=0"]
    assert [word for word in dmabuf if "cuda" in word] == ["--use_cuda=0", "--use_cuda_dmabuf"]


def test_iperf3_sends_for_a_time_over_so_many_streams():
    assert iperf_command(call(host=None)) == ("--server", "--one-off", "--port", "7001")
    client = iperf_command(call(streams=4))
    assert client[:2] == ("--client", "10.0.0.2")
    assert client[client.index("--time") + 1] == "1"
    assert client[client.index("--parallel") + 1] == "4"


@given(st.integers(1, 1 << 50), st.floats(1e-6, 1e6))
def test_iperf3s_rate_is_what_its_server_received(received, seconds):
    said = json.dumps({"end": {"sum_received": {"bytes": received, "seconds": seconds}}})
    found = iperf_seconds(call(), said.encode())
    assert 100 * MIB / found == pytest.approx(received / seconds)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b'{"end": {}, "error": "unable to connect to server"}', "unable to connect to server"),
        (b'{"end": {}}', "received nothing"),
        (b"iperf3: what", "not understood"),
        (b'{"error": "\xff"}', "not understood"),
        (b'{"end": ' + b"[" * 100_000, "not understood"),
    ],
)
def test_iperf3s_errors_are_in_its_answer(said, problem):
    with pytest.raises(BackendError, match=f"iperf3: .*{problem}"):
        iperf_seconds(call(), said)
