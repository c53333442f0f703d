"""The program of a worker process, which measures cells."""

from __future__ import annotations

from contextlib import closing

from linkgauge.engine.interrupts import collecting_seldom
from linkgauge.hooks import watched_from_outside
from linkgauge.machine.processes.channel import Channel, carry_out, decoder, encode

from . import messages
from .messages import Signs
from .worker import LocalWorker

_decode = decoder(messages.Command)


def serve(channel: Channel) -> None:
    """Runs the controller's commands. Raises EOFError or OSError once the controller is gone."""
    watched_from_outside()
    start = _decode(channel.receive())
    if not isinstance(start, messages.Start):
        raise TypeError(f"expected Start, got {start!r}")
    signs = Signs(lambda at: channel.send(encode(at)))
    with collecting_seldom(), closing(LocalWorker(start.settings, signs.enter)) as worker:

        def do(command: messages.Command) -> object:
            match command:
                case messages.Survey(names, brief):
                    return worker.survey(names, brief=brief)
                case messages.ReadInventory(names):
                    return worker.look(names)
                case messages.Measure(cells, size, repetition):
                    return worker.measure(cells, size, repetition)
                case messages.Tune(device, peer):
                    return worker.tune(
                        device, peer, lambda tried: channel.send(encode(messages.Trying(tried)))
                    )
                case messages.FindBuffer(node, least, most):
                    return worker.find_buffer(node, least, most)
            raise TypeError(f"unexpected {command!r}")

        while True:
            command = _decode(channel.receive())
            if isinstance(command, messages.Release):
                worker.release()
            else:
                carry_out(command, do, channel.send)
