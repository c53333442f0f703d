"""Work that is no copy, over every real backend: arrays, products of matrices and primes."""

import pytest

from conformance.subjects import out_of_order, release
from linkgauge.backends.protocol import RESULTS, CheckedGroup, Copy, Pattern, follows, run
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer, parse_transfers
from linkgauge.model.operations.collective import COLLECTIVE_NAMES, Collective, has_root, reduces
from linkgauge.model.operations.operation import (
    ARRAYS,
    HAND_OVERS,
    PRODUCTS,
    named,
    operations_of,
    size_of,
)


@pytest.mark.parametrize("kind", ["read", "write", "copy", "scale", "add", "triad"])
def test_arrays_hold_what_the_operation_makes_of_them_or_it_is_unsupported(subject, kind):
    backend, (place, engine), operation = subject.backend, subject.arrays, f"peak-{kind}"
    work = ARRAYS[operation]
    ends = (place if work.read else "null", place if work.written else "null")
    transfer = parse_transfer(" -> ".join(ends) + f" by {engine}")
    if backend.refusal(transfer) is not None:
        return
    given = Pattern.NUMBERS if work.computes else Pattern.WORDS
    made = RESULTS.get(kind, Pattern.CONSTANT if kind == "write" else Pattern.WORDS)
    for size in (16, 4096, (1 << 20) + 48):
        source = destination = None
        if work.read:
            whole = size * named(operation).source_arrays
            source = backend.allocate(transfer.source, whole, transfer.engine)
            backend.fill(source, whole, given, 3, inverted=False)
        if work.written:
            destination = backend.allocate(transfer.destination, size, transfer.engine)
            backend.fill(destination, size, made, 3, inverted=True)
            assert backend.first_mismatch(destination, size, made, 3) == 0
        copy = Copy(transfer, source, destination, size, 3)
        group = backend.prepare([copy], operation)
        timing = run(group, 2)
        group.close()
        assert timing.seconds[0] > 0
        if destination is None:
            assert timing.checksums[0] == backend.checksum(source, size)
        else:
            assert backend.first_mismatch(destination, size, made, 3) is None
            for offset in (size - 1, 0):
                subject.corrupt(destination, offset)
                assert backend.first_mismatch(destination, size, made, 3) == offset
        release(copy)


@pytest.mark.parametrize("operation", PRODUCTS)
def test_products_are_right_or_unsupported_and_take_no_memory(subject, operation):
    backend = subject.backend
    transfer = parse_transfer(f"null -> null by {subject.multiplier}")
    if backend.refusal(transfer) is not None:
        return
    copy = Copy(transfer, None, None, size_of(300), 1)
    with pytest.raises(Unsupported, match="moves nothing"):
        backend.prepare([copy])
    try:
        group = backend.prepare([copy], operation)
    except Unsupported as reason:
        assert "\n" not in str(reason)
        return
    out_of_order(group.wait, group.open)
    assert run(group, 2).seconds[0] > 0
    assert group.policy.steps == operations_of(300)
    assert not follows(group, CheckedGroup) or group.mismatch() is None
    assert any(backend.remarks(transfer)) or backend.name == "sim"
    group.close()
    group.close()


def test_primes_are_searched_by_host_threads_or_refused_and_take_no_memory(subject):
    backend = subject.backend
    transfers = parse_transfers("null -> null by host:0.cpu*1 & null -> null by host:0.cpu*1")
    if any(backend.refusal(transfer) for transfer in transfers):
        return
    copies = [Copy(transfer, None, None, 0, 1) for transfer in transfers]
    with pytest.raises(Unsupported, match="moves nothing"):
        backend.prepare(copies)
    if backend.name != "host":
        with pytest.raises(Unsupported, match="does not compute prime numbers"):
            backend.prepare(copies, "primes")
        return
    group = backend.prepare(copies, "primes")
    out_of_order(group.wait)
    timing = run(group, 2)
    assert len(timing.seconds) == 2
    assert all(seconds > 0 for seconds in timing.seconds)
    assert timing.counters is not None
    assert sum(thread.steps for thread in timing.counters.threads) == 4
    group.close()


@pytest.mark.parametrize("operation", HAND_OVERS)
def test_work_is_handed_over_again_and_again_or_it_is_unsupported(subject, operation):
    transfer = parse_transfer(f"null -> null by {subject.multiplier}")
    if subject.backend.refusal(transfer) is not None:
        return
    try:
        group = subject.backend.prepare([Copy(transfer, None, None, 1, 1)], operation)
    except Unsupported as reason:
        assert "\n" not in str(reason)
        return
    assert group.policy.steps == 1
    for batches in (1, 5):
        (times,) = run(group, 1, batches).progress
        assert len(times) == batches + 1
        assert list(times) == sorted(set(times))
    group.close()
    group.close()


def test_copies_run_without_and_with_a_kernel_or_it_is_unsupported(subject):
    backend, device = subject.backend, subject.multiplier.rpartition(".")[0]
    if subject.multiplier.endswith("cpu*1"):
        pytest.skip("the host has no kernels")
    text = f"null -> null by {device}.sm & host:0 -> {device} by ce & {device} -> host:0 by ce"
    transfers = parse_transfers(text)
    if any(backend.refusal(transfer) for transfer in transfers):
        return
    size = (1 << 20) + 48
    kernel, *others = transfers
    copies = [Copy(kernel, None, None, size, 1)]
    for transfer in others:
        ends = [backend.allocate(end, size, transfer.engine) for end in transfer.memories]
        copies.append(Copy(transfer, *ends, size, 3))
    try:
        group = backend.prepare(copies, "overlap")
    except Unsupported as reason:
        assert "does not compute during copies" in str(reason)
        assert not backend.carries(named("overlap"))
        release(*copies)
        return
    for copy in copies[1:]:
        backend.fill(copy.source, size, Pattern.WORDS, 3, inverted=False)
        backend.fill(copy.destination, size, Pattern.WORDS, 3, inverted=True)
    out_of_order(group.wait, group.open)
    for _ in range(2):
        timing = run(group, 2)
        assert len(timing.seconds) == len(timing.checksums) == len(timing.progress) == 3
        assert min(*timing.seconds, timing.span) > 0
    assert group.mismatch() is None
    for copy in copies[1:]:
        assert backend.first_mismatch(copy.destination, size, Pattern.WORDS, 3) is None
    group.close()
    group.close()
    release(*copies)


@pytest.mark.parametrize("name", COLLECTIVE_NAMES)
def test_every_rank_has_what_a_collective_leaves_there_or_it_is_unsupported(subject, name):
    backend, size = subject.backend, 1 << 20
    how = {"reduction": "sum"} if reduces(name) else {}
    work = Collective(name, root=0 if has_root(name) else None, **how)
    if not backend.carries(named(work)):
        with pytest.raises(Unsupported, match="carries out no collectives"):
            backend.prepare([Copy(parse_transfer(subject.paths[0]), None, None, size, 1)], work)
        return
    ranks = [parse_transfer(f"{place} -> {place} by ccl") for place in subject.ranks]
    if any(backend.refusal(transfer) for transfer in ranks):
        return
    copies = []
    for transfer, ends in zip(ranks, work.buffer_bytes(size, len(ranks)), strict=True):
        lent = [backend.allocate(transfer.source, n, transfer.engine) if n else None for n in ends]
        copies.append(Copy(transfer, *lent, size, 1))
    group = backend.prepare(copies, work)
    assert len(run(group).seconds) == len(group.iterations(3)) == len(ranks)
    assert group.check().count == 0
    group.close()
    release(*copies)
