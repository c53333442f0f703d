"""The request for a run as plain values. Equal requests on one machine lead to equal plans."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import ClassVar, Literal, Protocol

import msgspec

from linkgauge.backends import ACCELERATORS, ACROSS_RANKS, KNOWN, SIMULATED
from linkgauge.benchmarks.catalog import select
from linkgauge.benchmarks.table import COMPARISON, FIRST_LOOK, DeviceSet
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.memory import NETWORK, Memory
from linkgauge.model.names import hint
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.collective import CollectiveChoice
from linkgauge.model.operations.operation import HostMode
from linkgauge.model.operations.workload import WorkloadChoice
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import NIC_ENGINES, Benchmark, Cell, Report

from .plan import check_exists, fabrics, lay_out

_MEANT = {"rocm": "torch", "hip": "torch", "amd": "torch", "nvidia": "cuda", "cpu": "host"}
"""The backends that reach what people call by these names."""
DeviceEngine = Literal["ce", "sm"]
"""Kinds of engines that devices copy by."""


class What(Protocol):
    @property
    def is_across_ranks(self) -> bool:
        """Whether any benchmark takes several processes. Raises InputError for unknown names."""

    @property
    def of_one_process(self) -> tuple[str, ...]:
        """The names of the benchmarks that only one process can measure."""

    def accelerators(self, request: RunRequest) -> tuple[str, ...]:
        """Returns the backends to open. Raises InputError for mistakes in the request."""

    def lay_out(self, request: RunRequest, machine: Machine) -> tuple[Benchmark, ...]:
        """Returns the benchmarks. Raises InputError for memories or devices that do not exist."""


class Selection(msgspec.Struct, frozen=True, tag=True):
    """A choice of catalog benchmarks by `names` and `prefixes`; if both are empty, of the profile's
    benchmarks. `host_mode` selects how host threads access memory; None selects all ways."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    only_d2d: bool = False
    host_mode: HostMode | None = None

    @property
    def is_across_ranks(self) -> bool:
        if not self.names and not self.prefixes:
            return False
        return any(row.across_ranks for row in select(self.names, self.prefixes))

    @property
    def of_one_process(self) -> tuple[str, ...]:
        rows = select(self.names, self.prefixes)
        return tuple(row.name for row in rows if not row.across_ranks)

    def accelerators(self, request: RunRequest) -> tuple[str, ...]:
        named = bool(self.names or self.prefixes)
        rows = select(self.names, self.prefixes) if named else ()
        asked = request.backends
        only = [row.only_by for row in rows]
        if set(only) == {"host"}:
            return ()
        with_ranks = [row.ranks_with for row in rows]
        if rows and asked in ((), (NETWORK,)) and all(with_ranks):
            return tuple(dict.fromkeys(chain.from_iterable(with_ranks)))
        more = [one for one in dict.fromkeys(only) if one and one not in ("host", *asked)]
        if more and request.settings.simulation is None:
            asked = (*(() if set(only) <= set(more) else asked or ACCELERATORS), *more)
        return choose_backends(asked, request.settings.simulation)

    def fleet(self, request: RunRequest, machine: Machine) -> str | None:
        """Describes the devices if there are too many to measure all pairs. Returns None otherwise,
        or if the request names benchmarks or takes a sample of pairs."""
        is_open = not (self.names or self.prefixes or self.only_d2d)
        sampled = request.settings.sample_pairs is not None
        if not is_open or sampled:
            return None
        from linkgauge.benchmarks.nodes import fleet_of

        return fleet_of(request.over(machine))

    def lay_out(self, request: RunRequest, machine: Machine) -> tuple[Benchmark, ...]:
        """Returns the benchmarks. Raises InputError if a requested backend has no devices."""
        for name in request.backends:
            if name in machine.unavailable:
                why = machine.unavailable[name]
                lacks = "does not answer" if name in machine.unanswered else "has no devices here"
                raise InputError(f"backend {name} {lacks}: {why}")
        profile = FIRST_LOOK if is_first_look(request, machine) else request.settings.profile
        rows = select(self.names, self.prefixes, only_d2d=self.only_d2d, profile=profile)
        with_host = not request.backends or "host" in request.backends
        nodes = machine.host.nodes if with_host else ()
        over = request.over(machine)
        if self.fleet(request, machine) is not None:
            from linkgauge.benchmarks.nodes import of_fleet

            rows = of_fleet(rows)
        only = dict.fromkeys(filter(None, map(attrgetter("only_by"), rows)))
        # What is opened for some rows alone does not measure the others.
        general = [
            one for one in over if one.backend in request.backends or one.backend not in only
        ]
        others = [row for row in rows if not row.only_by]
        laid_out: tuple[Benchmark, ...] = ()
        for backend in only:
            theirs = [one for one in over if one.backend == backend]
            if backend == "host":
                theirs = [DeviceSet("host", machine.host.nodes, workloads=request.workloads)]
            theirs = theirs or [DeviceSet(backend, (), reason=machine.unavailable.get(backend))]
            own = (row for row in rows if row.only_by == backend)
            laid_out += tuple(row.lay_out(one) for row in own for one in theirs)
        if others or not laid_out:
            separate = machine.inventory.host.separate if machine.inventory else frozenset()
            at_all = lay_out(others, general or over, nodes, profile, separate, request.buffer)
            laid_out = (*at_all, *laid_out)
        return laid_out if self.host_mode is None else tuple(map(self._in_mode, laid_out))

    def _in_mode(self, benchmark: Benchmark) -> Benchmark:
        modes = [cell.does.mode for cell in benchmark.cells]
        if benchmark.backend != "host" or not any(modes):
            return benchmark
        wanted = (None, self.host_mode)
        cells = tuple(c for c, mode in zip(benchmark.cells, modes, strict=True) if mode in wanted)
        reason = None if cells else f"no figure for --host-mode {self.host_mode}"
        return msgspec.structs.replace(benchmark, cells=cells, reason=reason)


class Written(msgspec.Struct, frozen=True, tag=True):
    """Transfers as text such as `host:0 -> cuda:1`, all of which are measured at the same time."""

    transfers: str

    of_one_process: ClassVar[tuple[str, ...]] = ()

    @property
    def is_across_ranks(self) -> bool:
        return any(place.rank is not None for place in self._places)

    @property
    def _places(self) -> tuple[Memory, ...]:
        parsed = parse_transfers(self.transfers)
        return tuple(place for t in parsed for place in (*t.memories, t.engine.owner))

    def accelerators(self, _request: RunRequest) -> tuple[str, ...]:
        """Returns the backends that transfers name. Between ranks, adds the network's if all
        engines are network interfaces, else returns MPI's if transfers name none."""
        named = {place.backend for place in self._places} - {"host"}
        if self.is_across_ranks:
            kinds = {transfer.engine.kind for transfer in parse_transfers(self.transfers)}
            if kinds <= {*NIC_ENGINES}:
                named |= {NETWORK}
            elif not named:
                named = {ACROSS_RANKS}
        return tuple(sorted(named))

    def lay_out(self, request: RunRequest, machine: Machine) -> tuple[Benchmark, ...]:
        parsed = parse_transfers(self.transfers)
        if self.is_across_ranks and not machine.ranks:
            several = "start one process for each rank: mpiexec -n 2 linkgauge copy ..."
            raise InputError(f"{parsed[0]} is between processes; {several}")
        check_exists(parsed, machine)
        if any(transfer.engine.kind == "ccl" for transfer in parsed):
            raise InputError("ccl only carries out collectives: linkgauge run all_reduce")
        for transfer in parsed:
            if transfer.engine.kind == "ucx" and len({m.rank for m in transfer.memories}) < 2:
                raise InputError(
                    f"{transfer}: ucx moves bytes between two ranks: host:0@0 -> host:0@1 by ucx"
                )
        report = Report.TOTAL if len(parsed) > 1 or parsed[0].both_ways else Report.FIRST
        if any(memory.is_staging for transfer in parsed for memory in transfer.memories):
            report = Report.SUM  # host threads run for as long as others do: loops mean nothing
        cell = Cell("0", "0", parsed, report)
        backend = "+".join(self.accelerators(request)) or "host"
        return (Benchmark("copy", str(cell), backend, (cell,)),)


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a run. Empty `backends` or `devices` select all; the backend `host` stands for
    the host's own benchmarks. If `only_first` is true, only the first backend with devices is used.
    Processors that a backend lists as devices (PoCL) are measured only if `with_cpus` is true or
    the request names backends or benchmarks. `profile` is null if the user chose the sizes.
    `memory` replaces pinned host memory. `tune` first searches the devices' best settings. `budget`
    is the seconds of the whole run, "plan" for as many as its plan needs, or null for no limit.
    `buffer` is the buffer size in bytes for a first look. `wait` waits until another run ends. The
    run is stored below `out`, or nowhere if null. `command` and `options` are only recorded."""

    what: What = Selection()
    settings: Settings = Settings(sizes=())
    backends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    only_first: bool = False
    with_cpus: bool = False
    profile: str | None = None
    memory: str = ""
    engine: DeviceEngine | None = None
    graph: bool = False
    collectives: CollectiveChoice = CollectiveChoice()
    workloads: WorkloadChoice = WorkloadChoice()
    stated: dict[str, str] = {}
    tune: bool = False
    budget: float | Literal["plan"] | None = None
    buffer: int | None = None
    wait: bool = False
    out: str | None = None
    label: str = "default"
    command: tuple[str, ...] = ()
    options: dict[str, str] = {}

    def over(self, machine: Machine) -> tuple[DeviceSet, ...]:
        """Returns the device sets to make benchmarks for; none if only the host was named."""
        if set(self.backends) == {"host"}:
            return ()
        node = self.settings.engines.numa_node
        with_cpus = self.with_cpus or bool(self.backends)
        if not isinstance(self.what, Selection):
            with_cpus = True
        elif self.what.names or self.what.prefixes:  # but not to compare configurations
            with_cpus |= self.settings.profile != COMPARISON
        found = fabrics(machine, self.devices, node, with_cpus=with_cpus)
        asked = self.settings.sizes if self.profile is None else ()
        hosts = tuple(rank.host for rank in machine.ranks)
        return tuple(
            msgspec.structs.replace(
                each,
                profile=self.settings.profile,
                sizes=asked,
                hosts=hosts,
                ranks=machine.ranks,
                collectives=self.collectives,
                workloads=self.workloads,
            )
            for each in found
        )


def is_first_look(request: RunRequest, machine: Machine) -> bool:
    """Whether a quick run, without names of benchmarks, has only the host to measure."""
    what = request.what
    if not isinstance(what, Selection) or what.names or what.prefixes or what.only_d2d:
        return False
    if request.settings.profile != "quick" or machine.ranks or not machine.host.nodes:
        return False
    if request.backends and "host" not in request.backends:
        return False
    return not any(fabric.devices for fabric in request.over(machine))


def choose_backends(asked: Sequence[str], simulation: Simulation | None) -> tuple[str, ...]:
    """Returns the accelerator backends to open. Raises InputError for an unknown name."""
    here = ACCELERATORS if simulation is None else (SIMULATED,)
    there = (*KNOWN, ACROSS_RANKS, NETWORK) if simulation is None else here
    for name in asked:
        if name != "host" and name not in there:
            known = ("host", *there)
            if simulation is not None and name in KNOWN:
                raise InputError(f"backend {name!r}: a simulated machine has {', '.join(known)}")
            meant = _MEANT.get(name.lower())
            near = hint(name, known) if meant is None else f", did you mean {meant!r}?"
            raise InputError(f"unknown backend {name!r}{near}")
    return tuple(filter((asked or here).__contains__, there))
