"""Measures a run of several ranks. Each rank has a worker, and a cell's ranks measure it together.

Rank 0 cannot replace a rank that crashes or hangs. The loss of a rank ends the run, as in MPI,
unless network interfaces are measured."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

import linkgauge
from linkgauge import __version__
from linkgauge.backends import ACCELERATORS, ACROSS_RANKS, GPUS, OF_ROOMS, ON_REQUEST, SIMULATED
from linkgauge.engine.workers.messages import Measure
from linkgauge.engine.workers.outcomes import FIRST, Repetition, failed, measure_able
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.machine.processes.channel import Refused
from linkgauge.machine.source import commit
from linkgauge.model.documents.result import CellResult, PlannedCell
from linkgauge.model.errors import DeviceBusy, InputError, LinkgaugeError, Unsupported
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.network import CounterRise
from linkgauge.model.memory import NETWORK, Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import named
from linkgauge.model.ranks import RankLost, nic_problem
from linkgauge.model.settings import Profiler, Settings, Tried
from linkgauge.model.transfer import NIC_ENGINES, Transfer

from .clocks import compare
from .commands import Hold, Open, PartTaken, Present, ReadAccelerators, TakePart
from .gathering import Gathering
from .meeting import Meetings
from .passages import FOUNDED, SHARE

AGAIN_SECONDS = 0.5
"""The interval at which a device that another run measures is asked for again."""
PASSED = ("pass", "fail")
"""The statuses of cells that were measured to the end, equally in all ranks."""


class ClusterWorker:
    def __init__(self, gathering: Gathering, settings: Settings) -> None:
        self._settings = settings
        self._gathering = gathering
        self.links = gathering.links
        self.links.deadlines = self.links.deadlines._replace(limit=settings.timeout)
        self._here = LocalWorker(settings)
        self._meetings = Meetings(gathering.links)
        self._machine: Machine | None = None
        self._backend = ""
        self._shared: frozenset[str] = frozenset()
        """The memories of ranks that share one device."""
        self._unlike: set[tuple[tuple[int, ...], int]] = set()
        """The cells, by their numbers and size, whose last repetition ended differently in
        different ranks."""

    def survey(self, accelerators: Sequence[str]) -> Machine:
        """Opens a device of one backend in each rank, and returns the machine with all of them."""
        if self._machine is None:
            self.links.doing = "opening devices"
            self._machine = self._survey(accelerators)
            self._shared = self._machine.shared
            self.links.doing = "planning"
        return self._machine

    def _survey(self, accelerators: Sequence[str]) -> Machine:
        name, present = self._open(accelerators)
        devices = {number: one.device for number, one in present.items() if one.device}
        gpus = {number: one.gpu for number, one in present.items() if one.gpu}
        lacking = [f"{self.links.ranks[n]}: {one.lacks_gpu}" for n, one in present.items()
                   if one.lacks_gpu]  # fmt: skip
        compared = {rank: compare(self.links, rank) for rank in self.links.all}
        for number, rank in self.links.ranks.items():
            offset, device = compared[number], devices[number]
            self.links.ranks[number] = msgspec.structs.replace(
                rank,
                memory=device.memory,
                model=device.model,
                ahead=offset.ahead,
                unsure=offset.unsure,
                nics=present[number].nics,
            )
        self.links.goes_on = name == NETWORK  # ranks beside a pair have no part in its copies
        self._backend = name
        simulation = self._settings.simulation
        return Machine(
            host=self._here.host,
            devices={
                name: tuple(devices.values()),
                **({GPUS: tuple(gpus.values())} if gpus else {}),
            },
            unavailable={GPUS: lacking[0]} if lacking else {},
            linkgauge=__version__,
            commit=commit(Path(linkgauge.__file__)),
            python=platform.python_version(),
            simulated=simulation.machine if simulation else None,
            inventory=self.look(()),
            ranks=tuple(self.links.ranks[number] for number in self.links.all),
            oversubscription=None if simulation else self._gathering.oversubscription,
        )

    def _open(self, accelerators: Sequence[str]) -> tuple[str, dict[int, Present]]:
        """Opens the backend with which the ranks measure: by default GPUs, or host memory if no
        rank has a GPU. Raises InputError if only some ranks have a GPU."""
        if self._settings.simulation is not None:
            return SIMULATED, self._devices(SIMULATED)
        named = () if {*ACCELERATORS} <= {*accelerators} else OF_ROOMS
        for name in (NETWORK, ACROSS_RANKS, *ON_REQUEST, *named):
            if name in accelerators:
                return name, self._devices(name, with_gpus=GPUS in accelerators)
        found = self._ask_for(GPUS)
        without = {rank: one for rank, one in found.items() if one.device is None}
        if not without:
            return GPUS, found
        if len(without) == len(found) and tuple(accelerators) != (GPUS,):
            return ACROSS_RANKS, self._devices(ACROSS_RANKS)
        rank, present = next(iter(without.items()))
        others = f", nor have {len(without) - 1} more ranks" if len(without) > 1 else ""
        raise InputError(
            f"{self.links.ranks[rank]} has no GPU ({present.problem}){others}: "
            "--backend mpi measures the hosts' memories"
        )

    def _ask_for(self, backend: str, *, with_gpus: bool = False) -> dict[int, Present]:
        hosts = tuple(self.links.ranks[number].host for number in self.links.all)
        asked = Open(backend, self._settings, with_gpus, hosts)
        return self.links.ask(self.links.all, asked, Present)

    def _devices(self, backend: str, *, with_gpus: bool = False) -> dict[int, Present]:
        found = dict(sorted(self._ask_for(backend, with_gpus=with_gpus).items()))
        for rank, present in found.items():
            if present.device is None:
                raise InputError(f"{self.links.ranks[rank]}: {present.problem}")
        return found

    def look(self, accelerators: Sequence[str]) -> Inventory:
        seen = self.links.one(0, ReadAccelerators(), Inventory)
        if self._settings.simulation is not None:
            return seen
        return msgspec.structs.replace(self._here.look(()), accelerators=seen.accelerators)

    def hold(self, *, wait: bool, tell: Callable[[str], None]) -> None:
        """Makes one rank hold each device until the run ends. Raises DeviceBusy if another run
        measures a device; with `wait`, reports that run once and waits until it ends."""
        first: dict[tuple[str, str], int] = {}
        for device in self.survey(()).all_devices:
            number = parse_memory(device.memory).rank or 0
            if (key := device.pci or device.uuid) and self._settings.simulation is None:
                first.setdefault((self.links.ranks[number].host, key), number)
        self.links.doing = "taking the devices"
        for number in sorted(first.values()):
            self._hold(number, tell if wait else None)

    def _hold(self, number: int, tell: Callable[[str], None] | None) -> None:
        reported = False
        while True:
            try:
                return self.links.one(number, Hold(), type(None))
            except DeviceBusy as busy:
                if tell is None:
                    raise
                if not reported:
                    tell(f"waiting: {busy}")
                    reported = True
                time.sleep(AGAIN_SECONDS)

    def measure(
        self, cells: Sequence[PlannedCell], size: int, repetition: Repetition = FIRST
    ) -> tuple[CellResult, ...]:
        """Measures cells. If a rank is lost during a cell, the cell fails. Raises RankLost if an
        earlier loss ended the run."""
        if self.links.lost is not None:
            raise self.links.lost
        return measure_able(
            cells, self._check, lambda able: self._measure(Measure(able, size, repetition))
        )

    def _measure(self, work: Measure) -> tuple[CellResult, ...]:
        key = tuple(cell.number for cell in work.cells), work.size
        parties = self._parties(work.cells)
        part = TakePart(work, parties, tuple(self._shared), key in self._unlike)
        self._unlike.add(key)
        transfers = [transfer for cell in work.cells for transfer in cell.transfers]
        moved = 2 * sum(transfer.bytes_moved(work.size) for transfer in transfers)
        self.links.phase = "allocate"
        try:
            answers, reported = self._meetings.carry_out(part, moved)
        except RankLost as lost:
            return tuple(failed(cell, self.links.phase, lost) for cell in work.cells)
        found: dict[int, tuple[CellResult, ...]] = {}
        rises: tuple[CounterRise, ...] = ()
        for rank, answer in sorted(answers.items()):
            if isinstance(answer, Refused):
                raise self.links.refusal(rank, answer.reason)
            taken = answer.of(PartTaken)
            found[rank] = taken.cells
            rises += taken.rises
        if not reported and all(cell.status in PASSED for of in found.values() for cell in of):
            self._unlike.discard(key)
        # Of a rank that left the cell, if any did: the others only know that it has.
        cells = next(of for rank, of in found.items() if of and rank not in reported)
        return tuple(msgspec.structs.replace(cell, rises=rises) for cell in cells)

    def _parties(self, cells: Sequence[PlannedCell]) -> tuple[int, ...]:
        """Returns the ranks that own memories or engines; all for broadcasts and simulations."""
        if self._backend == SIMULATED or any(named(cell.operation).from_one for cell in cells):
            return self.links.all
        places = {m for cell in cells for t in cell.transfers for m in _places(t)}
        return tuple(sorted({memory.rank or 0 for memory in places}))

    def _check(self, cell: PlannedCell) -> None:
        for transfer in cell.transfers:
            kind = transfer.engine.kind
            if kind in NIC_ENGINES and self._backend != NETWORK:
                why = f"{transfer}: {kind} is measured without engines of other kinds"
                raise Unsupported(why)
            is_part = kind == "ccl" and self._backend in FOUNDED
            if is_part and str(transfer.source) in self._shared:
                raise Unsupported(SHARE)
            self.links.check_there(memory.rank or 0 for memory in _places(transfer))
            of_nic = transfer.engine.owner.is_nic
            if of_nic and (problem := nic_problem(transfer, self.links.ranks)):
                raise Unsupported(problem)

    def tune(self, device: str, peer: str | None, on_trial: Callable[[Tried], None]) -> bool:
        raise InputError("--tune works with one process only: run it first, without a launcher")

    def find_buffer(self, node: int, least: int, most: int) -> int:
        """Returns `least`, because only runs of one process search for a buffer size."""
        return least

    def keep_output(self, folder: Path) -> None:
        """Does nothing, because a launcher shows what ranks print."""

    def profile(self, profiler: Profiler, folder: Path) -> None:
        raise InputError(f"--{profiler} works with one process only: run it without a launcher")

    def end_profile(self, say: Callable[[str], None]) -> tuple[str, ...]:
        return ()

    def end(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends no rank: ranks and their devices stay until the gathering is closed."""
        with suppress(LinkgaugeError):  # it is over anyway
            if not self.links.is_over:
                self.links.doing = "leaving"


def _places(transfer: Transfer) -> tuple[Memory, ...]:
    return (*transfer.memories, transfer.engine.owner)
