"""The transfer notation reads and prints every value, and errors point at the fault."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.errors import NotationError
from linkgauge.model.memory import HOST_KINDS, NULL, Memory, host
from linkgauge.model.notation import (
    decode_hook,
    encode_hook,
    parse_memory,
    parse_transfer,
    parse_transfers,
)
from linkgauge.model.transfer import Engine, Transfer

indices = st.integers(0, 999_999_999)
ranks = st.none() | st.integers(0, 4095)
spaces = st.sampled_from(["cuda", "opencl", "sim", "torch:xpu", "torch:npu:die", "hip0"])
hosts = st.builds(Memory, st.just("host"), indices, st.sampled_from(["", *HOST_KINDS]), ranks)
devices = st.builds(Memory, spaces, indices, st.just(""), ranks)
memories = hosts | devices


@st.composite
def engines(draw, places=memories):
    owner = draw(places).place
    if owner.is_host:
        return Engine(owner, "cpu", draw(st.none() | st.integers(1, 512)))
    return Engine(owner, draw(st.sampled_from(["ce", "sm"])))


cpus = st.builds(Memory, st.just("cpu"), indices, st.just(""), ranks)


@st.composite
def exchanges(draw):
    """Between the caches of two CPUs, by one of any."""
    engine = Engine(draw(cpus), "cpu", draw(st.none() | st.integers(1, 512)))
    return Transfer(draw(cpus), draw(cpus), engine, draw(st.integers(1, 64)), draw(st.booleans()))


@st.composite
def transfers(draw):
    if draw(st.integers(0, 9)) == 0:
        return draw(exchanges())
    both_ways = draw(st.booleans())
    ends = (draw(memories), draw(memories))
    if not both_ways:
        ends = draw(st.sampled_from([ends, (NULL, ends[1]), (ends[0], NULL)]))
    load = draw(st.sampled_from([100, 100, 1, 25, 99]))
    return Transfer(*ends, draw(engines()), draw(st.integers(1, 64)), both_ways, load)


@given(st.lists(transfers(), min_size=1, max_size=5))
def test_every_cell_is_read_back_as_it_was_printed(cell):
    assert parse_transfers(" & ".join(map(str, cell))) == tuple(cell)


NEAR_MISSES = st.text(alphabet="hostcuda:0123456789 -><&xbyate%./*@mnul\t\n\u0663é", max_size=60)


@given(st.text(max_size=60) | NEAR_MISSES)
def test_no_text_raises_anything_but_a_notation_error(text):
    try:
        parsed = parse_transfers(text)
    except NotationError as error:
        assert 0 <= error.position <= len(text)
        assert str(error).splitlines()[-1].endswith("^")
    else:
        assert parse_transfers(" & ".join(map(str, parsed))) == parsed


@given(transfers(), st.data())
def test_a_damaged_notation_never_raises_anything_else(transfer, data):
    text = str(transfer)
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.text(max_size=2)) + text[at + data.draw(st.integers(0, 3)) :]
    try:
        parse_transfer(damaged)
    except NotationError as error:
        assert 0 <= error.position <= len(damaged)


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("cuda:0 -> cuda:1 by ce", "cuda:0.ce"), ("cuda:0 -> cuda:1 by cuda:1.ce", "cuda:1.ce"),
        ("host:0 -> cuda:1 by sm", "cuda:1.sm"), ("host:1 -> host:0 by cpu*8", "host:1.cpu*8"),
        ("null -> host:2 by cpu", "host:2.cpu"), ("host:1/huge -> null by cpu", "host:1.cpu"),
        ("host:0 -> opencl:3", "opencl:3.ce"), ("host:0 -> host:1", "host:0.cpu"),
        ("torch:xpu:0 -> host:0", "torch:xpu:0.ce"), ("cpu:3 -> cpu:1", "cpu:3.cpu"),
        ("cpu:3 -> cpu:1 by cpu:1.cpu", "cpu:1.cpu"),
    ],
)  # fmt: skip
def test_the_owner_left_out_is_the_source_device_else_the_destination_else_the_node(text, engine):
    assert str(parse_transfer(text).engine) == engine


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "expected a memory"), ("host:0", 6, "expected '->'"),
        ("host:0 ->", 9, "expected a memory"),
        ("host:0 -> opencl:0 by cx", 22, "unknown engine 'cx'"),
        ("host:0 -> opencl:0 by ce extra", 25, "expected '&' or the end"),
        ("host -> opencl:0", 4, "expected ':'"), ("host: -> opencl:0", 5, "number of a memory"),
        ("host:0/fast -> opencl:0", 7, "unknown kind of memory"),
        ("opencl:0/huge -> host:0", 9, "unknown kind of memory"),
        ("host:0 -> opencl:0 by host:0.ce", 29, "has no engine 'ce'"),
        ("host:0 -> opencl:0 by cpu*4", 22, "has no engine 'cpu'"),
        ("host:0 -> host:0 by cpu*0", 24, "at least 1"),
        ("host:0 -> opencl:0 by ce*2", 24, "only cpu"),
        ("host:0 -> opencl:0 by ce x0", 26, "at least 1"), ("null -> null", 8, "moves nothing"),
        ("null <-> cuda:0 by sm", 0, "both ends"),
        ("host:0 -> opencl:0 by ce &", 26, "expected a memory"),
        ("host:1234567890 -> cuda:0", 14, "too many digits"),
        ("cpu:0/huge -> cpu:1", 6, "unknown kind of memory"),
        ("cpu:0 -> cpu:1 by ce", 18, "has no engine 'ce'"),
        ("cpu:0 -> host:1 by cpu", 0, "only with another CPU"),
        ("null -> cpu:1 by cpu", 0, "only with another CPU"),
        ("host:0 -> host:0 by cpu & cuda:0 -> cpu:1", 26, "only with another CPU"),
        ("host:0 -> host:0 by cpu:1.cpu", 0, "only with another CPU"),
    ],
)  # fmt: skip
def test_the_caret_stands_under_the_character_at_fault(text, position, problem):
    with pytest.raises(NotationError) as caught:
        parse_transfers(text)
    assert caught.value.position == position
    assert problem in caught.value.problem
    *_, shown, caret = str(caught.value).splitlines()
    assert shown == f"  {text}"
    assert caret == " " * (position + 2) + "^"


@pytest.mark.parametrize(
    ("text", "label"),
    [("cuda:1", "1"), ("torch:xpu:0", "xpu:0"), ("torch:npu:die:2", "npu:die:2"), ("host:3", "3"),
     ("host:0/huge", "0")],
)  # fmt: skip
def test_a_label_is_the_name_among_those_of_a_backend(text, label):
    memory = parse_memory(text)
    assert memory.label == label
    assert f"{memory.backend}:{memory.label}" == str(memory.place)


def test_the_pieces_of_a_transfer():
    transfer = parse_transfer("host:0/pageable <-> cuda:1@2 by cuda:1@2.sm x2")
    assert transfer.source == host(0, "pageable")
    assert transfer.destination == Memory("cuda", 1, rank=2)
    assert transfer.engine == Engine(Memory("cuda", 1, rank=2), "sm")
    assert (transfer.scale, transfer.both_ways) == (2, True)
    assert transfer.bytes_moved(100) == 200


class TestNetworkInterfaces:
    """They are engines between two ranks."""

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("nic:0@0 -> host:0@1 by nic:0.tcp", "nic:0 holds no bytes"),
            ("host:0 -> host:0 by nic:0.tcp", "moves bytes between two ranks"),
            ("host:0@1 -> host:0@1 by nic:0.tcp", "moves bytes between two ranks"),
            ("host:0@0 -> null by nic:0.tcp", "moves bytes between two ranks"),
            ("host:0@0 -> host:0@1 by nic:0@2.tcp", "is of neither rank"),
            ("host:0@0 -> host:0@1 by nic:0.ce", "has no engine 'ce'"),
            ("host:0@0 -> host:0@1 by host:0@0.tcp", "a host's node has no engine 'tcp'"),
            ("host:0@0 -> host:0@1 by nic:0.rdma*2", "tcp one of streams"),
            ("host:0@0 -> host:0@1 by nic:0.tcp to host:1", "expected 'nic:'"),
        ],
    )
    def test_what_they_cannot_do_is_named(self, text, problem):
        with pytest.raises(NotationError, match=problem):
            parse_transfer(text)


@pytest.mark.parametrize(
    ("size", "forward"),
    [(1, 0), (512, 0), (513, 1), (1000, 488), (1024, 512), (1536, 512), (1 << 20, 1 << 19)],
)
def test_both_ways_only_odd_chunks_go_forward(size, forward):
    assert parse_transfer("host:0 <-> cuda:0 by sm").bytes_each_way(size) == forward


class TestJson:
    """A transfer is its notation in JSON."""

    TEXT = "cuda:0 -> cuda:1 by cuda:1.ce"

    def decode(self, data):
        return msgspec.json.decode(data, type=list[Transfer], dec_hook=decode_hook())

    def test_is_written_and_read_back(self):
        transfers = [parse_transfer(self.TEXT), parse_transfer("null -> host:0 by cpu*2 x3")]
        data = msgspec.json.encode(transfers, enc_hook=encode_hook)
        assert json.loads(data) == list(map(str, transfers))
        assert self.decode(data) == transfers

    def test_equal_texts_are_one_object(self):
        one, other = self.decode(json.dumps([self.TEXT] * 2))
        assert one is other

    @pytest.mark.parametrize("wrong", ["cuda:0 -> nowhere", 5, None, ["host:0"]])
    def test_what_is_no_transfer_is_refused(self, wrong):
        with pytest.raises(msgspec.ValidationError):
            self.decode(json.dumps([wrong]))
