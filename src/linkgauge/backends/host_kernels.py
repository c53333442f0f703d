"""Chooses the code (kernel) with which host threads move bytes. It is the user's choice, the
fastest measured kernel, or a default.

The fastest kernel depends on the CPU, on the number of threads (one or all), and on whether the
data fit into the caches. A search runs once on each machine, and its result is stored. Later runs
test a stored kernel again before they use it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import product
from pathlib import Path

import msgspec

from linkgauge import _native
from linkgauge.machine.cpu import revision
from linkgauge.machine.environment import hypervisor
from linkgauge.machine.host import cpu_model
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Node
from linkgauge.model.names import hint
from linkgauge.model.operations.operation import ARRAYS
from linkgauge.model.settings import EngineSettings

from . import cache
from .host_arena import NativeArena
from .host_search import Arena, is_reversed, search

OPS = (
    _native.Op.READ,
    _native.Op.WRITE,
    _native.Op.COPY,
    _native.Op.SCALE,
    _native.Op.TRIAD,
)
"""The operations for which kernels are searched."""
_LIKE = {_native.Op.ADD: _native.Op.TRIAD}
"""Operations that use the kernel of another operation, because both move bytes in the same way."""
SEARCH_SECONDS = 4.0
"""Seconds of a full search. Only its last turn may overrun."""
BEYOND_SHARE = 0.7
"""The share of SEARCH_SECONDS for data larger than the caches, which take longer."""
CHECK_SECONDS = 0.06

Remembered = dict[str, tuple[str, str]]
"""The best and the second best kernel for each case."""


class Chosen(msgspec.Struct, frozen=True):
    """A kernel, with the reason why it was chosen."""

    kernel: str
    why: str


def name_of(op: _native.Op) -> str:
    """Returns the name of an operation, such as `read`, `copy` or `triad`."""
    return op.name.lower()


class Regime(msgspec.Struct, frozen=True):
    """The conditions for which a kernel is chosen. `crowd` says that all threads of a node run, not
    just one. `beyond` says that the data are larger than the caches."""

    crowd: bool
    beyond: bool

    def case(self, op: _native.Op) -> str:
        threads = "all threads" if self.crowd else "1 thread"
        return f"{name_of(op)}, {threads}, {'beyond' if self.beyond else 'within'} the caches"


EVERYWHERE = tuple(Regime(*both) for both in product((False, True), repeat=2))


def regime_of(op: _native.Op, cpus: Sequence[int], size: int) -> Regime:
    """Returns the conditions of a job. Two threads already count as all threads, because two nearly
    reach the limit of the memory."""
    touched = size * ARRAYS[f"peak-{name_of(op)}"].counted
    return Regime(len(cpus) > 1, touched > _native.last_level_cache(cpus))


def linear(op: _native.Op) -> Chosen:
    """Returns the kernel with linear accesses, as in STREAM. It is used even if another kernel is
    faster."""
    return Chosen(_native.linear_kernel(op), "linear with ordinary stores, as STREAM's loop")


class Kernels:
    """The default kernels. If the user sets a kernel, `forced` is its name; operations without this
    kernel use their default."""

    def __init__(self, forced: str | None = None) -> None:
        self._forced = forced

    def prepare(self) -> None:
        """Does slow work before any time is measured. By default there is nothing to do."""

    def choose(self, op: _native.Op, cpus: Sequence[int], size: int) -> Chosen:
        if self._forced in _native.kernels(op):
            return Chosen(self._forced or "", "as asked for")
        return self._choose(_LIKE.get(op, op), regime_of(op, cpus, size))

    def _choose(self, op: _native.Op, where: Regime) -> Chosen:
        return Chosen(_native.default_kernel(op, where.beyond), "by default, not measured")


class RememberedKernels(Kernels):
    """The fastest kernels that earlier runs stored in `file`. Nothing is measured."""

    def __init__(self, file: Path, forced: str | None = None) -> None:
        super().__init__(forced)
        self._known = load(file)

    def _choose(self, op: _native.Op, where: Regime) -> Chosen:
        known = self._known.get(where.case(op))
        return super()._choose(op, where) if known is None else Chosen(known[0], "as remembered")


CourseOf = Callable[[Regime], Arena]


class MeasuredKernels(Kernels):
    """The fastest kernels, which are measured on this machine and stored in `file`. `course_of`
    returns the memory for measuring."""

    def __init__(self, course_of: CourseOf, file: Path, forced: str | None = None) -> None:
        super().__init__(forced)
        self._course_of = course_of
        self._file = file
        self._known: Remembered = {}
        self._is_ready = False
        self._measured: set[tuple[Regime, _native.Op]] = set()

    def prepare(self) -> None:
        """Loads the stored kernels. Searches for the best kernels if some are not stored."""
        if self._is_ready:
            return
        self._is_ready = True
        self._known = load(self._file)
        if any(where.case(op) not in self._known for where in EVERYWHERE for op in OPS):
            begun, share = time.monotonic(), 0.0
            for where in EVERYWHERE:
                share += _share(where)
                self._measure(where, until=begun + share * SEARCH_SECONDS)
            store(self._file, self._known)

    def _measure(self, where: Regime, until: float) -> None:
        """Searches for the fastest kernel of each operation, until the time `until`."""
        self._measured.update((where, op) for op in OPS)
        with suppress(OSError), closing(self._course_of(where)) as course:
            for done, op in enumerate(OPS):
                seconds = max(0.0, until - time.monotonic()) / (len(OPS) - done)
                self._search(course, op, where, seconds)

    def _choose(self, op: _native.Op, where: Regime) -> Chosen:
        self.prepare()
        if (where, op) not in self._measured:
            # Memory beyond the caches takes longer to get than all operations there to test.
            self._check(where, OPS if where.beyond else (op,))
        known = self._known.get(where.case(op))
        if known is None:
            return super()._choose(op, where)
        return Chosen(known[0], "chosen on this machine")

    def _check(self, where: Regime, ops: Sequence[_native.Op]) -> None:
        """Compares a stored kernel with its closest rivals. Searches again if a rival is faster."""
        self._measured.update((where, op) for op in ops)
        before = dict(self._known)
        with suppress(OSError), closing(self._course_of(where)) as course:
            for op in ops:
                best, second = before[where.case(op)]
                # A search on a busy machine may have missed what is good nearly everywhere.
                others = {second, *_safe(op, where)} - {best}
                if any(is_reversed(course, op, best, one, CHECK_SECONDS) for one in others):
                    seconds = _share(where) * SEARCH_SECONDS / len(OPS)
                    self._search(course, op, where, seconds)
        if self._known != before:
            store(self._file, self._known)

    def _search(self, course: Arena, op: _native.Op, where: Regime, seconds: float) -> None:
        """Keeps the two fastest kernels. A CPU without vector instructions may have only one."""
        best, *others = search(course, op, _native.kernels(op), _safe(op, where), seconds)
        self._known[where.case(op)] = best, others[0] if others else best


def _safe(op: _native.Op, where: Regime) -> tuple[str, str]:
    """Returns two kernels that are fast on nearly every CPU: the default, and the one with linear
    accesses."""
    return _native.default_kernel(op, where.beyond), _native.linear_kernel(op)


def _share(where: Regime) -> float:
    """Returns the share of the search's time for these conditions."""
    return (BEYOND_SHARE if where.beyond else 1 - BEYOND_SHARE) / 2


def load(file: Path) -> Remembered:
    """Returns the stored kernels that this CPU can run. Returns an empty result if the file cannot
    be read."""
    known = cache.load(file, Remembered)
    return {
        where.case(op): known[where.case(op)]
        for where, op in product(EVERYWHERE, OPS)
        if set(known.get(where.case(op), ("",))) <= set(_native.kernels(op))
    }


def store(file: Path, known: Remembered) -> None:
    """Writes the kernels to the file. If this fails, the next run searches again."""
    with suppress(OSError):
        cache.store(file, known)


def remembered_file(
    threads: int, root: Root = ROOT, folder: Path | None = None, *, what: str = "host"
) -> Path:
    """Returns the path of the file with stored kernels, or `what` else is found by measuring. Its
    name depends on the processor, the microcode, the hypervisor and the number of threads."""
    made = revision(root.text("proc/cpuinfo") or "")
    beneath = hypervisor(root)[0] or "no hypervisor"
    words = f"{what} {cpu_model(root) or ''} {made} {beneath} {threads} threads"
    return cache.tuned_file(words, folder)


def kernels_of(engines: EngineSettings, nodes: Sequence[Node]) -> Kernels:
    """Returns the kernels for a run. If kernels must be measured, the node with the most CPUs is
    used."""
    node = max(nodes, key=lambda node: len(node.cpus))
    if not engines.host_tuned or not node.cpus:
        return Kernels(engines.host_kernel)
    file = remembered_file(len(node.cpus))
    if not engines.searches:
        return RememberedKernels(file, engines.host_kernel)

    def course_of(where: Regime) -> NativeArena:
        cpus = node.cpus if where.crowd else node.cpus[:1]
        index = node.index if len(nodes) > 1 else None
        return NativeArena(index, cpus, node.memory_available, beyond=where.beyond)

    return MeasuredKernels(course_of, file, engines.host_kernel)


def check_kernel(name: str) -> None:
    """Raises InputError if this CPU has no kernel of this name."""
    known = list(dict.fromkeys(kernel for op in OPS for kernel in _native.kernels(op)))
    if name not in known:
        otherwise = f": this CPU runs {', '.join(known)}"
        raise InputError(f"unknown host kernel {name!r}{hint(name, known, otherwise)}")
