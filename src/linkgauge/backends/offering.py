"""The primitives that a backend offers. Operations use these primitives, and are written once for
all backends.

A backend lists in `carried` the operations that it carries out, and overrides the primitives of
these operations. `protocol.Backend` describes devices, memory and refusals of a backend. Adding a
vendor's library takes one file; docs/vendor.md has an example."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import Operation, OperationName, named

from .iterations import Queue, iterated
from .protocol import Buffer, Copy, Group, Pattern
from .threaded import ThreadedGroup, Worked, called

if TYPE_CHECKING:
    from .operations.overlap import Computing
    from .operations.products import ProductBuffers


class Offering:
    """Base of backends. A primitive that is not overridden raises an error with the name of the
    missing primitive. The `copies` given to a primitive already have buffers.
    `protocol.Backend.prepare` describes the groups that primitives return."""

    name: str
    carried: Collection[OperationName] = ()
    """The operations that the backend carries out, apart from collectives."""
    collects: bool = False
    """Whether the backend carries out collectives."""
    has_own_arrays = True
    """Whether kernels work on arrays in the memory of their own devices."""

    def carries(self, does: Operation) -> bool:
        """Whether the backend carries out the operation for at least some copies."""
        return self.collects if does.collective is not None else does.name in self.carried

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        from .operations import prepare  # which knows what is below

        return prepare(self, copies, named(operation))

    def begin(self, copies: Sequence[Copy], does: Operation) -> None:
        """Discards the remarks on the last prepared group."""

    def moving(self, copies: Sequence[Copy], does: Operation) -> Group:
        """Returns a group of copies, or of operations on arrays, that start together behind a gate.
        By default, a queue and a thread carry out each copy, timed by the host's clock."""
        works: list[Worked] = []
        with ExitStack() as opened:
            for copy in copies:
                made = opened.enter_context(ExitStack())
                queue = self.queue(copy.transfer.engine.owner, made)
                works.append(called(queue, copy, made))
            group = ThreadedGroup(works)
            opened.pop_all()
        return group

    def beside(self, group: Group, loads: Sequence[Copy]) -> Group:
        """Returns the group combined with `loads`: copies that load the same links while the group
        runs. Raises Unsupported if the backend cannot load links."""
        if loads:
            raise Unsupported("latencies are measured one at a time")
        return group

    def queue(self, owner: Memory, made: ExitStack) -> Queue:
        """Returns a queue of a device."""
        raise NotImplementedError

    def returning(self, copy: Copy) -> Group:
        """Returns a group of round trips. Each iteration makes the copy and a copy back."""
        source, destination = copy.source, copy.destination
        with ExitStack() as made:
            queue = self.queue(copy.transfer.engine.owner, made)
            there = *queue.copy(destination, source, copy.size), *queue.sync()
            back = *queue.copy(source, destination, copy.size), *queue.sync()
            return iterated(queue, (*there, *back), 2, made.pop_all())

    def chasing(self, copies: Sequence[Copy], does: Operation) -> Group:
        """Returns a group of a pointer chase through the source of the first copy. The other copies
        load the memory."""
        raise NotImplementedError

    def computing(
        self, copies: Sequence[Copy], made: ExitStack
    ) -> tuple[Computing | None, Group, Group, Group]:
        """Returns a kernel of the first copy's device, and three groups: the kernel alone, the
        other copies alone, and both together. The kernel's duration can be fitted to the copies.
        `made` closes everything."""
        raise NotImplementedError

    def multiplying(
        self, copies: Sequence[Copy], does: Operation
    ) -> tuple[Group, ProductBuffers | None]:
        """Returns a group of products of matrices, and the product that is checked."""
        raise NotImplementedError

    def enqueuing(self, copy: Copy) -> Group:
        """Returns a group that times how long the host takes to enqueue a copy, while a gate holds
        the device back."""
        raise NotImplementedError

    def bouncing(self, copy: Copy) -> Group:
        """Returns a group of flags that bounce between the ends of a copy."""
        raise NotImplementedError

    def exchanging(self, copy: Copy) -> Group:
        """Returns a group of a cache line that bounces between the ends of a copy."""
        raise NotImplementedError

    def threads(self, copies: Sequence[Copy]) -> list[tuple[int, ...]]:
        """Returns the CPUs of each copy's threads."""
        raise NotImplementedError

    def collecting(self, copies: Sequence[Copy], work: Collective) -> Group:
        """Returns a group of a collective. Each copy is a rank's part."""
        raise NotImplementedError


class Filled(Buffer, Protocol):
    """A buffer that writes and compares its own contents."""

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None: ...
    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None: ...
    def checksum(self, size: int) -> int: ...


_Kind = TypeVar("_Kind", bound=Filled)
_Group = TypeVar("_Group", bound=Group)


def own(buffer: Buffer | None, kind: type[_Kind], name: str) -> _Kind:
    """Returns the buffer as a buffer of backend `name`. Raises BackendError for a buffer of another
    backend."""
    if not isinstance(buffer, kind):
        raise BackendError("prepare", f"{buffer!r} is not a buffer of the {name} backend")
    return buffer


class Filling(Offering, Generic[_Kind]):
    """Base of backends whose buffers fill themselves."""

    def own(self, buffer: Buffer | None) -> _Kind:
        """Returns the buffer as a buffer of this backend. Raises BackendError for a buffer of
        another backend."""
        raise NotImplementedError

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self.own(buffer).fill(size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return self.own(buffer).first_mismatch(size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return self.own(buffer).checksum(size)


class Holding(Filling[_Kind]):
    """Base of backends that, when closed, close open groups and free remaining buffers."""

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
        """Closes groups, then frees buffers. The order matters, because work behind a closed gate
        still uses the buffers."""
        for group in list(self._groups):
            group.close()
        for buffer in list(self._buffers):
            buffer.free()
