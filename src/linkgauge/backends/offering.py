"""The base class of backends. A backend lists its operations in `carried`, and overrides the
primitives that these operations are made of; docs/vendor.md has an example."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from linkgauge.model.errors import BackendError, Unsupported, pip_install
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import (
    ARRAYS,
    HAND_OVERS,
    PRIMES,
    PRODUCTS,
    Operation,
    OperationName,
    named,
)
from linkgauge.registry import loaded

from .protocol import Buffer, Copy, Group, Pattern
from .rules import check_exchanges, check_work, lacking

if TYPE_CHECKING:
    from .iterations import Queue

_PLACES: Mapping[object, str] = {
    "copy": "transfers:copies",
    "bulk-copy": "transfers:copies",
    "timed-copy": "transfers:timed_copy",
    "copy-ping-pong": "transfers:copy_ping_pong",
    "flag-ping-pong": "transfers:flag_ping_pong",
    "ping-pong": "transfers:ping_pong",
    "chase": "transfers:chase",
    "bulk-chase": "transfers:chase",
    "enqueue": "transfers:enqueue",
    "touch": "by_threads:touch",
    "overlap": "overlap:overlap",
    **dict.fromkeys(ARRAYS, "transfers:arrays"),
    **dict.fromkeys(HAND_OVERS, "transfers:hand_over"),
    **dict.fromkeys(PRIMES, "by_threads:primes"),
    **dict.fromkeys(PRODUCTS, "products:products"),
}
"""The file and the function of each operation, without collectives."""


def imported(name: str, extra: str) -> Any:
    """Imports a package. Raises Unsupported, with the pip extra to install, if this fails."""
    try:
        return import_module(name)
    except (ImportError, OSError) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        said = (str(error).splitlines() or ["no reason"])[0]
        why = f"{name} is not installed" if missing else f"{name} does not load ({said})"
        raise Unsupported(f"{why}: {pip_install(f'linkgauge[{extra}]')}") from error


@contextmanager
def errors_of(package: str, call: str) -> Iterator[None]:
    """Turns exceptions of a package's bindings into BackendError."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] != package:
            raise
        raise BackendError(call, str(error)) from error


class Computing(Protocol):
    """A kernel that only computes. `rounds` is the amount of work in a loop."""

    rounds: float

    def mismatch(self) -> str | None:
        """Returns a message if the kernel has computed a wrong result, else None."""


class ProductBuffers(Protocol):
    """The matrices A, B and A · B of a product."""

    on_host: bool
    """Whether CPUs multiply. Their products are sampled like other benchmarks of the host."""

    def spoil(self) -> None:
        """Overwrites the product A · B, so that an old result cannot pass the check."""

    def mismatch(self) -> str | None:
        """Returns a message if the product is wrong. Sums of `BLOCK` columns of A · B (with random
        signs) must equal A times the same sums of B (Freivalds, 1977)."""


class Offering:
    """The base class of backends. Primitives without a default raise NotImplementedError. All
    copies that a method is given already have buffers. `protocol.Backend.prepare` describes the
    groups that primitives return."""

    name: str
    carried: Collection[OperationName] = ()
    """The operations that the backend can carry out, without collectives."""
    collects: bool = False
    """Whether the backend can carry out collectives."""
    has_own_arrays = True
    """Whether the arrays of an operation must be in the memory of the device that uses them."""

    def carries(self, does: Operation) -> bool:
        return self.collects if does.collective is not None else does.name in self.carried

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        """Returns the group of an operation. Raises Unsupported if the backend lacks the operation
        or refuses the copies, or if the copies do not fit the operation."""
        does = named(operation)
        if not self.carries(does):
            raise lacking(self.name, does.name)
        if does.collective is None:
            check_exchanges(copies, does)
            check_work(copies, does)
        self.begin(copies, does)
        if does.collective is not None:
            return self.collecting(copies, does.collective)
        carry_out = loaded(f"linkgauge.backends.operations.{_PLACES[does.name]}")
        group: Group = carry_out(self, copies, does)
        return group

    def begin(self, copies: Sequence[Copy], does: Operation) -> None:
        """Prepares for a new group, and discards the remarks on the previous one."""

    def moving(self, copies: Sequence[Copy], does: Operation) -> Group:
        """Returns a group of copies, by default with a thread and a queue for each one."""
        from .iterations import ThreadedGroup, called  # loaded where the host times copies

        works = []
        with ExitStack() as opened:
            for copy in copies:
                made = opened.enter_context(ExitStack())
                queue = self.queue(copy.transfer.engine.owner, made)
                works.append(called(queue, copy, made))
            group = ThreadedGroup(works)
            opened.pop_all()
        return group

    def concurrent(self, group: Group, loads: Sequence[Copy]) -> Group:
        """Adds `loads`, copies on the same links, to a group. By default, raises Unsupported."""
        if loads:
            raise Unsupported(f"backend {self.name} cannot keep a link busy during a measurement")
        return group

    def queue(self, owner: Memory, made: ExitStack) -> Queue:
        raise NotImplementedError

    def returning(self, copy: Copy) -> Group:
        """Returns a group in which a loop is a copy there and another back."""
        from .iterations import iterated  # loaded where the host times copies

        source, destination = copy.source, copy.destination
        with ExitStack() as made:
            queue = self.queue(copy.transfer.engine.owner, made)
            there = *queue.copy(destination, source, copy.size), *queue.sync()
            back = *queue.copy(source, destination, copy.size), *queue.sync()
            return iterated(queue, (*there, *back), 2, made.pop_all())

    def chasing(self, copies: Sequence[Copy], does: Operation) -> Group:
        """Returns a pointer chase by one thread (the first copy) under load (the other copies)."""
        raise NotImplementedError

    def computing(
        self, copies: Sequence[Copy], made: ExitStack
    ) -> tuple[Computing | None, Group, Group, Group]:
        """Returns a kernel and three groups: the kernel, the copies after the first, and both. If
        the kernel's length is fitted already, returns None instead of the kernel."""
        raise NotImplementedError

    def multiplying(
        self, copies: Sequence[Copy], does: Operation
    ) -> tuple[Group, ProductBuffers | None]:
        raise NotImplementedError

    def enqueuing(self, copy: Copy) -> Group:
        """Returns a group that times how long the host takes to enqueue a copy."""
        raise NotImplementedError

    def bouncing(self, copy: Copy) -> Group:
        """Returns a group in which flags bounce between the two ends of a copy."""
        raise NotImplementedError

    def exchanging(self, copy: Copy) -> Group:
        """Returns a group in which a cache line bounces between the two ends of a copy."""
        raise NotImplementedError

    def threads(self, copies: Sequence[Copy]) -> list[tuple[int, ...]]:
        raise NotImplementedError

    def collecting(self, copies: Sequence[Copy], work: Collective) -> Group:
        """Returns the group of a collective. `copies` has a transfer for each rank."""
        raise NotImplementedError


class Filled(Buffer, Protocol):
    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None: ...
    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None: ...
    def checksum(self, size: int) -> int: ...


_Kind = TypeVar("_Kind", bound=Filled)
_Own = TypeVar("_Own")
_Group = TypeVar("_Group", bound=Group)


def own(buffer: Buffer | None, kind: type[_Own], name: str) -> _Own:
    """Returns the buffer. Raises BackendError unless it belongs to the backend `name`."""
    if not isinstance(buffer, kind):
        raise BackendError("prepare", f"{buffer!r} is not a buffer of the {name} backend")
    return buffer


class Filling(Offering, Generic[_Kind]):
    """The base class of backends whose buffers fill and compare themselves."""

    def own(self, buffer: Buffer | None) -> _Kind:
        raise NotImplementedError

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self.own(buffer).fill(size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return self.own(buffer).first_mismatch(size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return self.own(buffer).checksum(size)


class Holding(Filling[_Kind]):
    """The base class of backends that free their buffers and groups when they are closed."""

    def __init__(self) -> None:
        self._buffers: weakref.WeakSet[_Kind] = weakref.WeakSet()
        self._groups: weakref.WeakSet[Group] = weakref.WeakSet()

    def held(self, buffer: _Kind) -> _Kind:
        self._buffers.add(buffer)
        return buffer

    def kept(self, group: _Group) -> _Group:
        self._groups.add(group)
        return group

    def close(self) -> None:
        """Closes groups before buffers, as waiting work of a group still uses buffers."""
        for group in list(self._groups):
            group.close()
        for buffer in list(self._buffers):
            buffer.free()
