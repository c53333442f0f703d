"""Ranks move bytes over TCP and by UCX, in two threads of one process."""

import shutil
import socket

import pytest

from linkgauge.model.errors import BackendError, TookTooLong, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.rooms.network import links as nic_links
from linkgauge.rooms.network import rank as net
from linkgauge.rooms.network import ucx
from net_ranks import Pair, began, run, without_ucx


@pytest.fixture
def pair(request):
    made = Pair(*getattr(request, "param", ()))
    yield made
    made.close()


impatient = pytest.mark.parametrize("pair", [(0.3,)], indirect=True)
"""Ranks that wait for nobody who is silent for longer."""


needs_ucx = pytest.mark.skipif(bool(without_ucx()), reason=without_ucx())
BY_UCX = ("host:0@0.ucx", "host:0@1.ucx", "nic:0.ucx", "nic:0@1.ucx")


@pytest.mark.parametrize(
    "engine",
    [
        "nic:0.tcp", "nic:0@1.tcp", "nic:0.tcp*3", "nic:0@1.tcp*5 to nic:0",
        *(pytest.param(one, marks=needs_ucx) for one in BY_UCX),
    ],
)  # fmt: skip
def test_every_byte_arrives_and_the_engines_rank_times(pair, engine):
    copy = pair.copy(f"host:0@0 -> host:0@1 by {engine}")
    assert pair.mismatch(copy) == 0
    ended = run(pair, [copy])
    timing = copy.transfer.engine.owner.rank
    assert pair.mismatch(copy) is None
    assert len(ended[timing].seconds) == 1
    assert ended[timing].seconds[0] > 0
    assert not ended[1 - timing].seconds


def test_a_buffer_has_a_number_that_no_other_rank_gives(pair):
    made = [pair.copy(f"host:0@{n} -> host:0@{1 - n} by nic:0@{n}.tcp") for n in (0, 1, 1)]
    numbers = {nic_links.reached(end).number for c in made for end in (c.source, c.destination)}
    assert len(numbers) == 6


@needs_ucx
class TestUcx:
    def test_beside_tcp_at_once(self, pair):
        there = pair.copy("host:0@0 -> host:0@1 by host:0@0.ucx", seed=3)
        back = pair.copy("host:0@1 -> host:0@0 by nic:0.ucx", seed=4)
        beside = pair.copy("host:0@0 -> host:0@1 by nic:0.tcp", seed=5)
        ended = run(pair, [there, back, beside])
        assert [pair.mismatch(copy) for copy in (there, back, beside)] == [None] * 3
        assert [len(one.seconds) for one in ended] == [2, 1]

    def test_a_call_that_fails_is_named_with_ucx_s_words(self):
        with pytest.raises(BackendError, match="ucp_config_modify: Invalid parameter"):
            ucx.Worker({"NO_SUCH_SETTING": "1"})


def test_without_ucx_it_is_said_how_to_get_it(pair, monkeypatch):
    monkeypatch.setattr(net, "library", lambda: ucx_missing())
    refused = pair.members[0].refusal(parse_transfer("host:0@0 -> host:0@1 by nic:0.rdma"))
    assert "pip install 'linkgauge[ucx]'" in str(refused)


@needs_ucx
def test_a_wheel_without_rdma_says_how_to_have_it(pair, monkeypatch):
    monkeypatch.setattr(net, "lacks_rdma", lambda: True)
    refused = pair.members[0].refusal(parse_transfer("host:0@0 -> host:0@1 by nic:0.rdma"))
    assert "RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY=true" in str(refused)


def ucx_missing():
    raise Unsupported(ucx.MISSING)


def test_a_flag_goes_there_and_back_and_each_time_is_kept(pair):
    copy = pair.copy("host:0@0 -> host:0@1 by nic:0.tcp")
    ended = run(pair, [copy], "flag-ping-pong", loops=5)
    assert pair.made[0].policy.steps == 2
    times = ended[0].progress[0]
    assert len(times) == 2
    assert times[0] == 0
    assert times[1] == ended[0].seconds[0] > 0


def test_a_stranger_is_not_taken_for_a_rank(pair):
    """It connects first, and shows another secret."""
    copy = pair.copy("host:0@0 -> host:0@1 by nic:0.tcp")
    port = pair.members[1]._door._listening.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(bytes(nic_links._HELLO.size))
        run(pair, [copy])
        assert stranger.recv(1) == b""
    assert pair.mismatch(copy) is None


@impatient
def test_a_rank_that_does_not_connect_is_named(pair):
    copy = pair.copy("host:0@0 -> host:0@1 by nic:0.tcp")
    with pytest.raises(BackendError, match="rank 0 does not connect from its nic:0 to nic:0"):
        pair.members[1].prepare([copy], "copy")
    with pytest.raises(BackendError, match="rank 1 does not answer at its nic:0: timed out"):
        pair.members[0].prepare([copy], "copy")


@impatient
@pytest.mark.parametrize(
    ("engine", "waits", "says"),
    [
        ("tcp", 0, "no byte went from nic:0 of rank 0 to nic:0 of rank 1"),
        pytest.param("ucx", 1, r"UCX: .* silent for 0.3 s", marks=needs_ucx),
    ],
)
def test_one_that_falls_silent_is_named(pair, engine, waits, says):
    copy = pair.copy(f"host:0@0 -> host:0@1 by nic:0.{engine}")
    group = pair.prepared(copy)[waits]
    group.arm(1, 1)
    with pytest.raises(TookTooLong, match=says):
        pair.by(waits, began, group)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("host:0@0 -> host:0@1 by rma", "network interfaces move bytes one way, by tcp, ucx"),
        ("host:0@0 <-> host:0@1 by nic:0.tcp", "one way"),
        ("host:0/huge@0 -> host:0@1 by nic:0.tcp", "tcp joins pinned host memory"),
        ("cuda:0@0 -> cuda:0@1 by nic:0.tcp", "tcp joins pinned host memory"),
    ],
)
def test_what_it_does_not_do_is_refused(pair, text, words):
    assert words in pair.members[0].refusal(parse_transfer(text))


def test_other_operations_and_empty_streams_are_refused(pair):
    copy = pair.copy("host:0@0 -> host:0@1 by nic:0.tcp")
    with pytest.raises(Unsupported, match="net"):
        pair.members[0].prepare([copy], "broadcast")


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="no iperf3 (Debian: iperf3)")
def test_iperf3_goes_from_rank_to_rank_and_touches_no_buffer(pair):
    copy = pair.copy("host:0@0 -> host:0@1 by nic:0.tcp*2")
    ended = run(pair, [copy], "iperf3")
    assert pair.made[0].policy.most < 8, "a run of it takes tenths of a second"
    assert ended[0].seconds[0] > 0
    assert ended[1].seconds == ()
    assert pair.mismatch(copy) == 0
