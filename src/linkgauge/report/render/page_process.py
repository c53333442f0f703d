"""Writes a run's page in a separate process, while this process shows the run."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from linkgauge.hooks import all_left_out, also_left_out
from linkgauge.machine.processes.channel import Channel, carry_out, decoder
from linkgauge.machine.processes.process import Process

if TYPE_CHECKING:
    from linkgauge.report.rows import OneRun

_STDERR = 2


class PageProcess:
    """A process that writes a page. It loads libraries early, those for charts only if `charts`."""

    def __init__(self, *, charts: bool) -> None:
        self._process = Process(__name__, output=_STDERR, session=True)
        self._process.ask(pickle.dumps(charts))

    def close(self) -> None:
        self._process.kill()

    def write(self, one: OneRun) -> None:
        self._process.ask(pickle.dumps(one))

    def wait(self) -> None:
        also_left_out(self._process.answer(dict[str, list[str]]))


def serve(channel: Channel) -> None:
    from linkgauge.report.reading import page_of_run

    from .drawing import Drawer
    from .writing import REPORT_FILE, write_page

    decode = decoder(bytes)
    charts = pickle.loads(decode(channel.receive()))  # noqa: S301  # from our parent
    with Drawer(early=charts) as drawer:

        def write(pickled: bytes) -> dict[str, list[str]]:
            one: OneRun = pickle.loads(pickled)  # noqa: S301  # from our parent
            if one.folder is not None:
                write_page(one.folder / REPORT_FILE, page_of_run(one), drawer)
            return all_left_out()

        carry_out(decode(channel.receive()), write, channel.send)
