"""One suite over every real backend: what protocol.py promises, each keeps.

A backend that this machine lacks is skipped with the backend's own reason.
"""

import random
from contextlib import ExitStack, closing, contextmanager
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.subjects import Subject, out_of_order, release
from kinds_kit import outcome
from linkgauge.backends.protocol import CheckedGroup, Copy, Pattern, follows, run
from linkgauge.model.errors import AllocationError, Unsupported
from linkgauge.model.notation import parse_transfer, parse_transfers
from linkgauge.model.operations.operation import OPERATIONS, PRODUCTS, named
from linkgauge.model.transfer import Transfer

SIZES = [1, 7, 8, 511, 512, 513, 4096, 65_537, (1 << 20) + 3]


def paths(subject: Subject) -> list[Transfer]:
    return [t for t in map(parse_transfer, subject.paths) if subject.backend.refusal(t) is None]


def lend(subject: Subject, transfer: Transfer, size: int, seed: int = 1) -> Copy:
    """Buffers as the engine fills them: the pattern in the source, its complement elsewhere."""
    source, destination = (
        None
        if memory.is_null or memory.is_cpu
        else subject.backend.allocate(memory, size, transfer.engine)
        for memory in (transfer.source, transfer.destination)
    )
    copy = Copy(transfer, source, destination, size, seed)
    if source is not None:
        subject.backend.fill(source, size, Pattern.WORDS, seed, inverted=False)
    if destination is not None:
        subject.backend.fill(destination, size, expected(copy), seed, inverted=True)
    return copy


@contextmanager
def grouped(subject: Subject, *copies: Copy, operation="copy"):
    """A group of the copies, which is closed twice."""
    group = subject.backend.prepare(list(copies), operation)
    with closing(group):
        yield group
        group.close()


@contextmanager
def prepared(subject: Subject, *copies: Copy, operation="copy"):
    """The same; their buffers are released after it."""
    with ExitStack() as made:
        made.callback(release, *copies)
        yield made.enter_context(grouped(subject, *copies, operation=operation))


@pytest.fixture(scope="module")
def lent(subject):
    """Lends as `lend`, the same buffers to all that ask for a transfer and a size."""
    with ExitStack() as made:

        @cache
        def of(transfer: Transfer, size: int) -> Copy:
            copy = lend(subject, transfer, size)
            made.callback(release, copy)
            return copy

        yield of


def arrive(subject: Subject, copies) -> bool:
    """Whether all that is copied somewhere is there."""
    return all(wrong(subject, copy) == [None] for copy in copies if copy.destination)


PATTERNS = [pattern for pattern in Pattern if not pattern.is_of_numbers]


def expected(copy: Copy) -> Pattern:
    return Pattern.CONSTANT if copy.source is None else Pattern.WORDS


def wrong(subject: Subject, copy: Copy) -> list[int | None]:
    """First mismatch in each buffer that should hold something by now."""
    if copy.transfer.both_ways:
        ends, pattern = (copy.source, copy.destination), Pattern.SPLIT
    else:
        ends, pattern = (copy.destination,), expected(copy)
    return [subject.backend.first_mismatch(b, copy.size, pattern, copy.seed) for b in ends if b]


def test_every_path_that_is_not_refused_moves_every_byte(subject):
    assert paths(subject)
    for transfer in paths(subject):
        for size in SIZES:
            copy = lend(subject, transfer, size)
            with prepared(subject, copy) as group:
                timing = run(group, 3)
                assert not any(at is not None for at in wrong(subject, copy)), (transfer, size)
                assert len(timing.seconds) == 1
                assert 0 <= timing.seconds[0] <= timing.span * 1.000001
                if copy.destination is None:
                    assert timing.checksums[0] == subject.backend.checksum(copy.source, size)


def test_nothing_moves_before_the_gate_opens(subject):
    for transfer in paths(subject):
        if transfer.destination.is_null or transfer.both_ways:
            continue
        copy = lend(subject, transfer, 4096)
        with prepared(subject, copy) as group:
            group.arm(2)
            assert wrong(subject, copy) == [0], transfer
            group.open()
            group.wait()
            assert wrong(subject, copy) == [None], transfer


def test_concurrent_transfers_each_arrive(subject):
    for text in subject.groups:
        transfers = parse_transfers(text)
        if any(subject.backend.refusal(transfer) for transfer in transfers):
            continue
        copies = [lend(subject, t, 100_003 * t.scale, n) for n, t in enumerate(transfers, 1)]
        with prepared(subject, *copies) as group:
            timing = run(group, 2)
            assert len(timing.seconds) == len(copies)
            assert timing.span >= max(timing.seconds) * 0.999999
            assert arrive(subject, copies)


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "copy"])
def test_another_operation_is_carried_out_or_unsupported(subject, lent, operation):
    """A latency is a time of one of the group's steps; nothing else than time is promised of it."""
    does, done = named(operation), False
    tried = [f"null -> null by {subject.multiplier}", *subject.chases, *subject.exchanges]
    if does.array is not None:
        place, engine = subject.arrays
        ends = [place if has else "null" for has in (does.array.read, does.array.written)]
        tried.append(f"{' -> '.join(ends)} by {engine}")
    for transfer in (*paths(subject), *map(parse_transfer, tried)):
        if subject.backend.refusal(transfer) is not None:
            continue
        size = 1 << 20
        copy = replace(lent(transfer, size * does.source_arrays), size=size)
        try:
            with grouped(subject, copy, operation=operation) as group:
                assert transfer.source.is_cpu == does.between_cpus
                timing = run(group, 3)
                assert group.policy.steps >= 1
                assert 0 < timing.seconds[0] <= timing.span * 1.000001
                assert operation != "bulk-copy" or wrong(subject, copy) == [None], transfer
                done = True
        except Unsupported as reason:
            assert "\n" not in str(reason)
            assert not (does.between_cpus and transfer.source.is_cpu)
    # What lies beside a kernel is a test of its own; not all devices have all types of numbers.
    assert done or not subject.backend.carries(does) or operation in ("overlap", *PRODUCTS)


def test_pointers_are_followed_again_and_again(subject):
    """Or the path is refused; a latency is the time of one of a loop's many accesses."""
    assert subject.chases
    for transfer in map(parse_transfer, subject.chases):
        if subject.backend.refusal(transfer) is not None:
            continue
        with prepared(subject, lend(subject, transfer, 1 << 20), operation="chase") as group:
            assert group.policy.steps > 1000
            out_of_order(group.wait, group.open)
            for loops, batches in ((1, 1), (3, 1), (2, 5)):
                timing = run(group, loops, batches)
                latency = timing.seconds[0] / (loops * batches * group.policy.steps)
                assert 1e-10 < latency < 1e-4, transfer
                for times in timing.progress:
                    assert len(times) in (2, batches + 1)
                    assert list(times) == sorted(times)
                assert not follows(group, CheckedGroup) or group.mismatch() is None


def test_a_line_bounces_between_any_two_cpus_batch_by_batch(subject):
    for transfer in map(parse_transfer, subject.exchanges):
        assert subject.backend.refusal(transfer) is None
        copy = Copy(transfer, None, None, 64, 1)
        with prepared(subject, copy, operation="ping-pong") as group:
            assert group.policy.steps == 2
            out_of_order(group.wait, group.open)
            for loops, batches in ((10, 1), (100, 32)):
                group.arm(loops, batches)
                out_of_order(lambda: group.arm(1))
                group.open()
                (times,) = group.wait().progress
                assert len(times) == batches + 1
                assert list(times) == sorted(times)
        with pytest.raises(Unsupported, match="core_to_core_latency"):
            subject.backend.prepare([copy])


def test_a_copy_goes_there_and_back_batch_by_batch(subject):
    """What was in the source is in both memories, and each round trip has a time of its own."""
    if not subject.backend.carries(named("copy-ping-pong")):
        return
    done = 0
    for transfer in paths(subject):
        copy = lend(subject, transfer, 4099)
        try:
            with prepared(subject, copy, operation="copy-ping-pong") as group:
                for loops, batches in ((1, 1), (3, 5)):
                    group.arm(loops, batches)
                    out_of_order(lambda: group.arm(1))
                    group.open()
                    (times,) = group.wait().progress
                    assert len(times) == batches + 1
                    assert times[0] == 0
                    assert list(times) == sorted(times)
                    assert wrong(subject, copy) == [None], transfer
            done += 1
        except Unsupported as reason:
            assert "\n" not in str(reason)
    assert done


def test_progress_tells_when_each_batch_ended(subject):
    for text in (str(paths(subject)[0]), *subject.groups):
        transfers = parse_transfers(text)
        if any(subject.backend.refusal(transfer) for transfer in transfers):
            continue
        copies = [lend(subject, t, 100_003 * t.scale, n) for n, t in enumerate(transfers, 1)]
        with prepared(subject, *copies) as group:
            for loops, batches in ((2, 4), (3, 1)):
                timing = run(group, loops, batches)
                assert len(timing.progress) == len(copies)
                for times, seconds in zip(timing.progress, timing.seconds, strict=True):
                    assert len(times) in (2, batches + 1)
                    # Since the gate's opening, within what clocks differ.
                    assert -1e-3 < times[0] < timing.span + 1
                    assert list(times) == sorted(times)
                    assert times[-1] - times[0] <= seconds * 1.05 + 1e-4
            assert arrive(subject, copies)


def test_one_byte_changed_behind_its_back_is_found_at_its_offset(subject):
    generator = random.Random(7)
    for name in subject.memories:
        transfer = parse_transfer(subject.through(name))
        memory = next(m for m in transfer.memories if str(m) == name)
        engine = transfer.engine
        for pattern in PATTERNS:
            size = generator.choice(SIZES[3:])
            buffer = subject.backend.allocate(memory, size, engine)
            subject.backend.fill(buffer, size, pattern, 5, inverted=False)
            assert subject.backend.first_mismatch(buffer, size, pattern, 5) is None
            for offset in (size - 1, generator.randrange(size), 0):
                subject.corrupt(buffer, offset)
                assert subject.backend.first_mismatch(buffer, size, pattern, 5) == offset
            buffer.free()


def test_a_cell_with_a_corrupted_byte_fails_with_that_offset(subject, monkeypatch):
    """From the cell to its status, by the engine: the byte changes between copy and check."""
    compare = subject.backend.first_mismatch

    def corrupted(buffer, size, pattern, seed):
        subject.corrupt(buffer, 54_321)
        return compare(buffer, size, pattern, seed)

    monkeypatch.setattr(subject.backend, "first_mismatch", corrupted)
    for transfer in paths(subject):
        if transfer.destination.is_null:
            continue
        cell = outcome(subject.backend, str(transfer), 100_000)
        assert (cell.status, cell.verified) == ("fail", False)
        assert "wrong at byte 54321 of 100000" in cell.reason


def test_the_pattern_is_the_one_that_is_documented(subject):
    from fakes import content

    transfer = parse_transfer(subject.through(subject.memories[0]))
    memory = next(m for m in transfer.memories if str(m) == subject.memories[0])
    buffer = subject.backend.allocate(memory, 2051, transfer.engine)
    for pattern in PATTERNS:
        for inverted in (False, True):
            subject.backend.fill(buffer, 2051, pattern, 9, inverted)
            assert subject.content(buffer) == content(2051, pattern, 9, inverted)
    buffer.free()


def test_what_is_not_there_is_refused_with_a_reason(subject):
    for text in subject.refused:
        reason = subject.backend.refusal(parse_transfer(text))
        assert reason, text
        assert "\n" not in reason


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_refusing_never_raises(subject, data):
    place = st.sampled_from(["host:0", "host:5", "host:0/huge", "host:0/pageable", "null",
                             "host:0/mapped", *subject.memories, "cuda:3", "host:0@1"])  # fmt: skip
    text = f"{data.draw(place)} {data.draw(st.sampled_from(['->', '<->']))} {data.draw(place)}"
    owner = data.draw(st.sampled_from(["", "host:0.", "host:9.", f"{subject.memories[-1]}."]))
    kind = data.draw(st.sampled_from(["ce", "sm", "cpu", "cpu*2", "cpu*999"]))
    try:
        transfer = parse_transfer(f"{text} by {owner}{kind}")
    except Exception:  # noqa: BLE001 - notation that is refused already is another test's matter
        return
    reason = subject.backend.refusal(transfer)
    assert reason is None or reason.strip()
    assert reason or all(subject.backend.remarks(transfer))


def test_more_than_there_is_cannot_be_allocated(subject):
    transfer = parse_transfer(subject.paths[0])
    for memory in transfer.memories:
        with pytest.raises((AllocationError, Unsupported)) as caught:
            subject.backend.allocate(memory, 1 << 50, transfer.engine)
        assert "\n" not in str(caught.value)


def test_closing_is_safe_at_any_moment_and_twice(subject):
    transfer = paths(subject)[0]
    copy = lend(subject, transfer, 4096)
    for steps in range(4):
        group = subject.backend.prepare([copy])
        for step in (lambda g: g.arm(2), lambda g: g.open(), lambda g: g.wait())[:steps]:
            step(group)
        group.close()
        group.close()
    release(copy)


def test_a_group_used_out_of_order_is_an_error_not_a_hang(subject):
    for transfer in paths(subject):
        with prepared(subject, lend(subject, transfer, 4096)) as group:
            out_of_order(group.wait, group.open)
            run(group, 1)
            out_of_order(group.wait)
