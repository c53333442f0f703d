"""Chooses the kernel (the code) with which host threads move bytes: the user's kernel, the fastest
that was measured for these CPUs and caches, or a default. Later runs test a stored choice again."""

from __future__ import annotations

import random
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
from .host_search import Arena, NativeArena, is_reversed, search

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
CHECK_SECONDS = 0.045
"""Seconds in which a stored choice is tested against one other kernel."""

Remembered = dict[str, tuple[str, str]]
"""The best and the second best kernel for each case."""


class Chosen(msgspec.Struct, frozen=True):
    kernel: str
    why: str


def name_of(op: _native.Op) -> str:
    return op.name.lower()


class Regime(msgspec.Struct, frozen=True):
    """How a kernel is used: by all threads of a node or by one, on data that exceed the caches
    (`beyond`) or fit into them."""

    all_threads: bool
    beyond: bool

    def case(self, op: _native.Op) -> str:
        threads = "all threads" if self.all_threads else "1 thread"
        return f"{name_of(op)}, {threads}, {'beyond' if self.beyond else 'within'} the caches"


EVERYWHERE = tuple(Regime(*both) for both in product((False, True), repeat=2))


def regime_of(op: _native.Op, cpus: Sequence[int], size: int) -> Regime:
    """Returns how a kernel is used. Two threads count as all: they nearly reach the top rate."""
    touched = size * ARRAYS[f"peak-{name_of(op)}"].counted
    return Regime(len(cpus) > 1, touched > _native.last_level_cache(cpus))


def linear(op: _native.Op) -> Chosen:
    """Returns the kernel with linear accesses, as in STREAM, even if another is faster."""
    return Chosen(_native.linear_kernel(op), "linear with ordinary stores, as STREAM's loop")


CourseOf = Callable[[Regime], Arena]


class Kernels:
    """Chooses kernels: the user's (`forced`) where it exists, else the fastest in `file` (None: no
    file). `course_of` allocates memory to search for the fastest (None: no search)."""

    def __init__(
        self,
        forced: str | None = None,
        file: Path | None = None,
        course_of: CourseOf | None = None,
    ) -> None:
        self._forced, self._file, self._course_of = forced, file, course_of
        self._known: Remembered = {}
        self._is_ready = False
        self._measured: set[tuple[Regime, _native.Op]] = set()

    def prepare(self) -> None:
        if self._is_ready or self._file is None:
            return
        self._is_ready = True
        self._known = load(self._file)
        unknown = any(where.case(op) not in self._known for where in EVERYWHERE for op in OPS)
        if unknown and self._course_of is not None:
            begun, share = time.monotonic(), 0.0
            for where in EVERYWHERE:
                share += _share(where)
                self._search_all(self._course_of, where, begun + share * SEARCH_SECONDS)
            store(self._file, self._known)

    def choose(self, op: _native.Op, cpus: Sequence[int], size: int) -> Chosen:
        if self._forced in _native.kernels(op):
            return Chosen(self._forced or "", "as asked for")
        where, op = regime_of(op, cpus, size), _LIKE.get(op, op)
        self.prepare()
        if self._course_of is not None and (where, op) not in self._measured:
            # Memory beyond the caches takes longer to get than all operations there to test.
            self._check(self._course_of, where, OPS if where.beyond else (op,))
        known = self._known.get(where.case(op))
        if known is None:
            return Chosen(_native.default_kernel(op, where.beyond), "by default, not measured")
        return Chosen(
            known[0], "as remembered" if self._course_of is None else "chosen on this machine"
        )

    def _search_all(self, course_of: CourseOf, where: Regime, until: float) -> None:
        self._measured.update((where, op) for op in OPS)
        with suppress(OSError), closing(course_of(where)) as course:
            for done, op in enumerate(OPS):
                seconds = max(0.0, until - time.monotonic()) / (len(OPS) - done)
                self._search(course, op, where, seconds)

    def _check(self, course_of: CourseOf, where: Regime, ops: Sequence[_native.Op]) -> None:
        self._measured.update((where, op) for op in ops)
        before = dict(self._known)
        with suppress(OSError), closing(course_of(where)) as course:
            for op in ops:
                best, second = before[where.case(op)]
                # A search on a busy machine may have missed any: one more is drawn in each run.
                others = {second, *_safe(op, where)} - {best}
                rest = [one for one in _native.kernels(op) if one not in (best, *others)]
                if rest:
                    others |= {random.choice(rest)}  # noqa: S311 (no secret)
                if any(is_reversed(course, op, best, one, CHECK_SECONDS) for one in others):
                    seconds = _share(where) * SEARCH_SECONDS / len(OPS)
                    self._search(course, op, where, seconds)
        if self._file is not None and self._known != before:
            store(self._file, self._known)

    def _search(self, course: Arena, op: _native.Op, where: Regime, seconds: float) -> None:
        best, *others = search(course, op, _native.kernels(op), _safe(op, where), seconds)
        self._known[where.case(op)] = best, others[0] if others else best


def _safe(op: _native.Op, where: Regime) -> tuple[str, str]:
    """Returns two kernels that are fast on nearly every CPU: the default and the linear one."""
    return _native.default_kernel(op, where.beyond), _native.linear_kernel(op)


def _share(where: Regime) -> float:
    return (BEYOND_SHARE if where.beyond else 1 - BEYOND_SHARE) / 2


def load(file: Path) -> Remembered:
    """Returns the stored kernels that this CPU can run; none if the file is unreadable."""
    known = cache.load(file, Remembered)
    return {
        where.case(op): known[where.case(op)]
        for where, op in product(EVERYWHERE, OPS)
        if set(known.get(where.case(op), ("",))) <= set(_native.kernels(op))
    }


def store(file: Path, known: Remembered) -> None:
    with suppress(OSError):
        cache.store(file, known)


def remembered_file(
    threads: int, root: Root = ROOT, folder: Path | None = None, *, what: str = "host"
) -> Path:
    """Returns the file of settings for this CPU model, microcode, hypervisor and threads."""
    made = revision(root.text("proc/cpuinfo") or "")
    beneath = hypervisor(root)[0] or "no hypervisor"
    words = f"{what} {cpu_model(root) or ''} {made} {beneath} {threads} threads"
    return cache.tuned_file(words, folder)


def kernels_of(engines: EngineSettings, nodes: Sequence[Node]) -> Kernels:
    node = max(nodes, key=lambda node: len(node.cpus))
    if not engines.host_tuned or not node.cpus:
        return Kernels(engines.host_kernel)
    file = remembered_file(len(node.cpus))

    def course_of(where: Regime) -> NativeArena:
        cpus = node.cpus if where.all_threads else node.cpus[:1]
        index = node.index if len(nodes) > 1 else None
        return NativeArena(index, cpus, node.memory_available, beyond=where.beyond)

    return Kernels(engines.host_kernel, file, course_of if engines.tunes else None)


def check_kernel(name: str) -> None:
    """Raises InputError if this CPU has no kernel with this name."""
    known = list(dict.fromkeys(kernel for op in OPS for kernel in _native.kernels(op)))
    if name not in known:
        otherwise = f": this CPU runs {', '.join(known)}"
        raise InputError(f"unknown host kernel {name!r}{hint(name, known, otherwise)}")
