"""A rank's part of copies by UCX: the engine's rank puts or gets, and flushes; the other rank lets
UCX make progress until a word says that all is there."""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from linkgauge.model.errors import TookTooLong
from linkgauge.model.inventory import Interface
from linkgauge.model.nics import nic_ends
from linkgauge.model.transfer import Engine, Transfer

from .ucx import Mapped, Pending, Worker

BY_UCX = ("ucx", "rdma")
"""Kinds of engines that it carries out."""
WINDOW = 128
"""Copies of one buffer under way at once: enough that the sender rarely waits for one to end."""
_LOOKS, _STEPS = 1024, 64
"""Calls of UCX between two looks at the clock, and at what is under way."""


class Workers:
    """Of each choice of devices one, opened when it is needed, in the thread that uses it."""

    def __init__(self, nics: Sequence[Interface]) -> None:
        self._nics = nics
        self._opened: dict[int | None, Worker] = {}
        self._rdma: set[int] = set()

    def of(self, transfer: Transfer, rank: int) -> Worker:
        if not transfer.engine.owner.is_nic:
            return self._at(None, transfer.engine)
        near, far = nic_ends(transfer)
        return self._at(near.nic if near.rank == rank else far.nic, transfer.engine)

    def of_engine(self, engine: Engine, rank: int) -> Worker:
        """The one that serves this rank's memory to the engine."""
        if not engine.owner.is_nic:
            return self._at(None, engine)
        own = engine.owner.rank == rank or engine.far is None
        return self._at(engine.owner.index if own else engine.far, engine)

    def _at(self, number: int | None, engine: Engine) -> Worker:
        key = number if engine.kind == "ucx" or number is None else ~number
        if key not in self._opened:
            self._opened[key] = Worker(self._settings(number, engine))
        return self._opened[key]

    def _settings(self, number: int | None, engine: Engine) -> dict[str, str]:
        """What limits UCX to one interface: without any, it chooses by itself."""
        if number is None:
            return {}
        nic = self._nics[number]
        if engine.kind == "rdma":
            return {"NET_DEVICES": f"{nic.rdma}:1", "TLS": "ib"}
        return {"NET_DEVICES": nic.name, "TLS": "tcp"}

    def progress(self) -> int:
        return sum([worker.progress() for worker in self._opened.values()])

    def close(self) -> None:
        for worker in self._opened.values():
            worker.close()
        self._opened.clear()


class Part(NamedTuple):
    """A rank's part of the copy at `place`: its own memory, and the other rank's. The one that has
    the engine `moves`."""

    place: int
    transfer: Transfer
    worker: Worker
    address: int
    size: int
    there: Mapped
    puts: bool
    moves: bool
    tag: int


class Mover:
    """The part of the rank that has the engine."""

    def __init__(self, part: Part, loops: int) -> None:
        self.place = part.place
        self.ended = 0.0
        end = part.worker.end(part.there.worker)
        self._move = end.mover(part.address, part.size, part.there, puts=part.puts)
        self._end, self._tag, self._left = end, part.tag, loops
        self._word = ctypes.create_string_buffer(1)
        self._under_way: deque[Pending] = deque()
        self._last: list[Pending] = []

    def step(self) -> bool:
        """Begins what may begin; whether all is done."""
        while self._under_way and self._under_way[0].is_done:
            self._under_way.popleft()
        while self._left and len(self._under_way) < WINDOW:
            self._under_way.append(self._move())
            self._left -= 1
        if self._left or self._under_way:
            return False
        if not self._last:
            self._last.append(self._end.flush())
        if not self._last[-1].is_done:
            return False
        if not self.ended:
            self.ended = time.monotonic()
            self._last.append(self._end.say(self._word, self._tag))
        return self._last[-1].is_done


class Listener:
    """The part of the other rank."""

    def __init__(self, part: Part) -> None:
        self._word = ctypes.create_string_buffer(1)
        self._heard = part.worker.hear(self._word, part.tag)

    def step(self) -> bool:
        return self._heard.is_done


def carry_out(
    parts: Sequence[Part], loops: int, workers: Workers, silent: float
) -> dict[int, float]:
    """All of them at the same time; when those that this rank moves had ended, by place. Raises
    TookTooLong if nothing happens for so many seconds."""
    movers = [Mover(part, loops) for part in parts if part.moves]
    active: list[Mover | Listener] = [*movers, *(Listener(p) for p in parts if not p.moves)]
    looks, happened, last = 0, 0, time.monotonic()
    active = [one for one in active if not one.step()]
    while active:
        moved = workers.progress()
        happened += moved
        looks += 1
        if moved or looks % _STEPS == 0:  # what is under way seldom ends without that
            active = [one for one in active if not one.step()]
        if looks % _LOOKS == 0:
            now = time.monotonic()
            last, happened = (now, 0) if happened else (last, 0)
            if now - last > silent:
                raise TookTooLong("UCX", f"{parts[0].transfer}: silent for {silent:g} s")
    return {mover.place: mover.ended for mover in movers}
