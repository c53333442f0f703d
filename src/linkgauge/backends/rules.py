"""Reasons for refusal that backends share: plain facts in, sentences out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from linkgauge.model.transfer import FULL_LOAD, PAGE_KINDS, POLICY_KINDS, Memory, Transfer


def no_node(memory: Memory, nodes: Collection[int]) -> Iterator[str]:
    """That the machine lacks the node of host memory or of an engine's owner."""
    if memory.index not in nodes:
        known = ", ".join(f"host:{index}" for index in nodes)
        yield f"there is no node {memory.place}: this machine has {known}"


def of_threads(
    transfer: Transfer, cpus: Mapping[int, Sequence[int]], kinds: Collection[str]
) -> Iterator[str]:
    """What host threads cannot do, given each node's CPUs and the `kinds` of memory they use."""
    owner = transfer.engine.owner
    for memory in transfer.memories:
        if not memory.is_host:
            yield f"host threads do not reach {memory}: use an engine of {memory.place}"
        yield from no_node(memory, cpus)
        if memory.kind not in kinds:
            if memory.kind in (*PAGE_KINDS, *POLICY_KINDS):
                yield f"there is no {memory.kind} memory here"
            yield f"{memory.kind} memory belongs to an accelerator: use one of its engines"
    yield from no_node(owner, cpus)
    count = len(cpus[owner.index or 0])
    if not count:
        yield f"no CPU of {owner} may be used by this process (cpuset)"
    if transfer.both_ways:
        yield "'<->' is one kernel of a device: join two transfers with '&' instead"
    if (transfer.engine.count or 0) > count:
        yield f"{owner} has {count} CPUs to use"


def of_load(transfer: Transfer) -> Iterator[str]:
    """That a backend cannot hold a transfer to a share of its rate."""
    if transfer.load != FULL_LOAD:
        yield f"only host threads hold a transfer to {transfer.load}% of its rate"


def of_copy_engine(transfer: Transfer) -> Iterator[str]:
    """What `ce` cannot do."""
    if transfer.engine.kind == "ce" and len(transfer.memories) < 2:
        yield "ce copies between two memories: a pure read or write takes a kernel (sm)"
    if transfer.engine.kind == "ce" and transfer.both_ways:
        yield "ce copies one way at a time: both ways at once takes a kernel (sm)"
