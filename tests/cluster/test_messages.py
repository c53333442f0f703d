"""What ranks say to each other arrives as it was said."""

from typing import get_args

import msgspec
import pytest

from linkgauge.backends.protocol import Pace, Wrong
from linkgauge.cluster import messages
from linkgauge.cluster.messages import (
    PROTOCOL,
    Card,
    Command,
    Lent,
    Reply,
    SharedCopy,
    decode_command,
    decode_reply,
    encode,
)
from linkgauge.model.collective import Collective
from linkgauge.model.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfer
from linkgauge.model.ranks import Rank
from linkgauge.model.result import Placement
from linkgauge.model.settings import Settings, Simulation

WRITE = parse_transfer("cuda:0@0 -> cuda:1@1 by ce")
MEMORY = Memory("cuda", 1, rank=1)
LENT = Lent(4, MEMORY, 1 << 20, b"\x00\xff handle")
COPY = SharedCopy(WRITE, None, LENT, 1 << 20, 7, interference=True, tracked=True, warm_ups=3)
COMMANDS = (
    messages.Told(Rank(0, "node7", 12, "cuda:0@0", "GPU", 0.0, 1e-6), "/runs/journal.jsonl"),
    messages.Open("sim", Settings((1 << 20,), simulation=Simulation("m", "devices: []"))),
    messages.Hold(),
    messages.Doing("measuring"),
    messages.Look(),
    messages.Clock(),
    messages.Virtual(),
    messages.Refuses(WRITE),
    messages.Remarks(WRITE),
    messages.Allocate(4, MEMORY, 1 << 20, WRITE.engine),
    messages.Allocate(4, MEMORY, 1 << 20, WRITE.engine, abroad=True),
    messages.Free(4),
    messages.Fill(4, 1 << 20, 1, 7, inverted=True),
    messages.Mismatch(4, 1 << 20, 1, 7),
    messages.Checksum(4, 1 << 20),
    messages.Prepare((COPY, COPY), "copy"),
    messages.Prepare((COPY,), Collective("reduce", "int8", "max", 1), (b"\x00\xff token", b"")),
    messages.Prepare((COPY, COPY), "copy", (b"", b"token")),
    messages.Token(),
    messages.Reach((COPY,)),
    messages.Arm(12, 3),
    messages.Begin(123.456),
    messages.Begin(),
    messages.Iterate(12),
    messages.Check(),
    messages.Close(),
    messages.Enter({3: (WRITE, WRITE)}, "measure", 2, 5),
    messages.Ping(),
    messages.Pong(),
    messages.End(lost=True),
)
REPLIES = (
    Card(3, "node7", 4711, "1.2", PROTOCOL, b"token"),
    messages.Done(msgspec.Raw(encode((1, 2)))),
    messages.Refused(messages.Reason("memory", "out of memory")),
    messages.Broke("KeyError: 3"),
    messages.Ping(),
    messages.Pong(),
)
RESULTS = (
    (messages.Present(Device("cuda:0@1", "GPU", 1 << 30, 1 << 30)), messages.Present),
    (messages.Present(None, "no GPU"), messages.Present),
    (messages.Allocated(Placement("cuda:0@1", 64), ("far",), b"h"), messages.Allocated),
    (messages.Prepared(Pace(seconds=0.5, loops=3), 16), messages.Prepared),
    (messages.Prepared(), messages.Prepared),
    (messages.Ended(1.5, {2: 0.25}, {2: 1 << 63}, {2: (0.0, 0.25)}), messages.Ended),
    (messages.Ended(1.5, {0: 0.25}, {0: None}), messages.Ended),
    (Wrong(3, 1, 1 << 40), Wrong),
    ((0.25, 0.5), tuple[float, ...]),
    (b"\x00\xff token", bytes),
    (messages.Reason("peer", "no"), messages.Reason | None),
    (None, messages.Reason | None),
    (None, int | None),
    (1 << 40, int | None),
    (("a", "b"), tuple[str, ...]),
    (("a", None), tuple[str | None, ...]),
    (123.456, float),
    (None, type(None)),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_command_arrives_as_it_was_given(command):
    arrived = decode_command(encode(command))
    assert arrived == command
    assert type(arrived) is type(command)


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: type(reply).__name__)
def test_a_reply_arrives_as_it_was_given(reply):
    arrived = decode_reply(encode(reply))
    assert type(arrived) is type(reply)
    assert encode(arrived) == encode(reply)


def test_none_is_left_out():
    assert {type(command) for command in COMMANDS} == set(get_args(Command))
    assert {type(reply) for reply in REPLIES} == set(get_args(Reply))


@pytest.mark.parametrize(("result", "kind"), RESULTS)
def test_a_result_arrives_as_the_command_says(result, kind):
    done = decode_reply(encode(messages.Done(msgspec.Raw(encode(result)))))
    assert msgspec.msgpack.decode(done.result, type=kind, dec_hook=messages.hook) == result


def test_transfers_travel_in_their_notation():
    assert b"cuda:0@0 -> cuda:1@1 by ce" in encode(messages.Refuses(WRITE))


class TestLaterProtocols:
    """Ranks of different versions say so to each other: so much must be understood for ever."""

    def test_the_card_is_understood(self):
        later = {
            "type": "Card", "rank": 3, "host": "node7", "process": 4711, "version": "9.0",
            "protocol": PROTOCOL + 7, "token": b"t", "colour": ["of", {"a": "later"}, "day"],
        }  # fmt: skip
        card = decode_reply(msgspec.msgpack.encode(later))
        assert card == Card(3, "node7", 4711, "9.0", PROTOCOL + 7, b"t")

    def test_the_card_of_the_first_protocol_is_understood(self):
        first = {"type": "Card", "rank": 3, "host": "node7", "process": 1, "version": "0.1"}
        assert decode_reply(msgspec.msgpack.encode(first)).protocol == PROTOCOL

    def test_the_end_is_understood(self):
        assert decode_command(msgspec.msgpack.encode({"type": "End", "lost": True, "why": "x"}))

    @pytest.mark.parametrize("sent", [b"", b"\xc1", b"GET / HTTP/1.1", encode({"type": "Dance"})])
    def test_what_is_unknown_is_not(self, sent):
        with pytest.raises(msgspec.DecodeError):
            decode_command(sent)
        with pytest.raises(msgspec.DecodeError):
            decode_reply(sent)

    def test_a_transfer_that_is_none_is_not(self):
        with pytest.raises(msgspec.DecodeError):
            decode_command(encode({"type": "Refuses", "transfer": "here -> there"}))
