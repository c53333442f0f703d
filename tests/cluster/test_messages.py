"""What ranks say to each other arrives as it was said."""

import msgspec
import pytest

from linkgauge.engine.ranks.commands import PROTOCOL, Card, decode_command, decode_reply
from linkgauge.machine.channel import encode


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
