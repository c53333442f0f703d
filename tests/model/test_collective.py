"""Collectives count as nccl-tests does, their numbers are exact, and results come from where their
origins say."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collective_kit import carried_out, reduced, sent, stored
from linkgauge.model.operations.collective import (
    COLLECTIVE_NAMES,
    NUMBERS,
    REDUCTIONS,
    Collective,
    bus_factor,
    colors_of,
    groups_of,
    has_root,
    reduces,
)
from linkgauge.model.operations.contents import content_of, origin_of

names = st.sampled_from(COLLECTIVE_NAMES)
types = st.sampled_from(sorted(NUMBERS))
sizes = st.integers(0, 1 << 34)
seeds = st.integers(0, 2**64 - 1)


def nccl_counts(name, size, one, ranks):
    """Count of the call, of what is sent and of what is received, and where rank 1 sends and
    receives in place: nccl-tests, src/NAME.cu, GetCollByteCount."""
    count = size // one
    base = (count // ranks) & ~(16 // one - 1)
    match name:
        case "all_gather" | "gather" | "hypercube":
            return base, base, base * ranks, base, 0
        case "reduce_scatter" | "scatter":
            return base, base * ranks, base, 0, base
        case "alltoall":
            return base, base * ranks, base * ranks, 0, 0
        case _:
            return count, count, count, 0, 0


@st.composite
def works(draw, most_ranks=6, reductions=REDUCTIONS):
    """A collective of so many ranks."""
    name, ranks = draw(names), draw(st.integers(1, most_ranks))
    if name == "hypercube":
        ranks = 1 << ranks.bit_length() - 1
    reduction = draw(st.sampled_from(reductions)) if reduces(name) else None
    root = draw(st.integers(0, ranks - 1)) if has_root(name) else None
    return Collective(name, draw(types), reduction, root), ranks


class TestCounts:
    @given(names, sizes, types, st.integers(1, 64))
    def test_are_those_of_nccl_tests(self, name, size, number, ranks):
        counts = Collective(name, number).counts(size, ranks)
        assert (
            counts.count, counts.send, counts.receive, counts.send_step, counts.receive_step
        ) == nccl_counts(name, size, NUMBERS[number].bytes, ranks)  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "counted", "factor"),
        [
            ("all_reduce", 1 << 20, 1.5), ("all_gather", 1 << 20, 0.75),
            ("reduce_scatter", 1 << 20, 0.75), ("broadcast", 1 << 20, 1.0),
            ("reduce", 1 << 20, 1.0), ("alltoall", 1 << 20, 0.75), ("gather", 1 << 20, 0.75),
            ("scatter", 1 << 20, 0.75), ("sendrecv", 1 << 20, 1.0),
            ("hypercube", 3 << 18, 1.0),
        ],
    )  # fmt: skip
    def test_of_four_ranks_make_these_bandwidths(self, name, counted, factor):
        """nccl-tests, doc/PERFORMANCE.md, and GetBw of src/NAME.cu."""
        work = Collective(name)
        assert work.bytes_counted(1 << 20, 4) == counted
        assert bus_factor(name, 4) == factor
        assert work.bytes_on_bus(1 << 20, 4) == counted * factor


class TestContent:
    @given(works(40), seeds, st.integers(0, 1 << 40))
    def test_and_its_result_are_exact_in_the_type(self, made, seed, index):
        work, ranks = made
        numbers = [sent(work, ranks, seed, rank, index) for rank in range(ranks)]
        for number in numbers:
            stored(work.type, number)
        if work.reduces and work.reduction != "avg":
            stored(work.type, reduced(work, numbers))

    @pytest.mark.parametrize(("name", "ranks"), list(product(sorted(NUMBERS), (1, 2, 8, 72))))
    def test_of_a_sum_reaches_the_largest_number_and_no_more(self, name, ranks):
        of = content_of(Collective("all_reduce", name, "sum"), ranks)
        assert of.share * of.largest <= NUMBERS[name].whole
        assert of.share * (of.largest + 1) > NUMBERS[name].whole or of.share == ranks


def wrong(work, counts, ranks, seed, rank, found):
    """Indices of elements that are not what the origin says."""
    origin = origin_of(work, counts, rank, ranks)
    if origin is None:
        return []

    def wanted(index):
        if work.reduces:
            at = origin.base + index
            return reduced(work, [sent(work, ranks, seed, one, at) for one in range(ranks)])
        one, at = origin.first + index // origin.chunk, origin.base + index % origin.chunk
        return sent(work, ranks, seed, one, at)

    return [index for index, number in enumerate(found) if number != wanted(index)]


class TestOrigins:
    @given(works(), st.integers(0, 600), seeds)
    def test_are_where_every_collective_takes_its_elements_from(self, made, size, seed):
        work, ranks = made
        counts = work.counts(size, ranks)
        for rank, found in enumerate(carried_out(work, counts, ranks, seed)):
            assert (found is None) == (origin_of(work, counts, rank, ranks) is None)
            assert wrong(work, counts, ranks, seed, rank, found or []) == []

    @given(works(), st.integers(128, 600), seeds, st.data())
    def test_find_any_altered_element(self, made, size, seed, data):
        work, ranks = made
        counts = work.counts(size, ranks)
        results = dict(enumerate(carried_out(work, counts, ranks, seed)))
        rank = data.draw(st.sampled_from([one for one, found in results.items() if found]))
        found = list(results[rank])
        at = data.draw(st.integers(0, len(found) - 1))
        found[at] += 1
        assert wrong(work, counts, ranks, seed, rank, found) == [at]


class TestSplit:
    @pytest.mark.parametrize(
        ("split", "colors"),
        [
            (None, (0, 0, 0, 0, 0, 0)), ("MOD 2", (0, 1, 0, 1, 0, 1)), ("% 3", (0, 1, 2, 0, 1, 2)),
            ("DIV 4", (0, 0, 0, 0, 1, 1)), ("/2", (0, 0, 1, 1, 2, 2)), ("AND 0x1", (0, 1) * 3),
            ("& 0b10", (0, 0, 2, 2, 0, 0)), ("or 1", (1, 1, 3, 3, 5, 5)), (" | 0 ", range(6)),
        ],
    )  # fmt: skip
    def test_is_that_of_nccl_tests(self, split, colors):
        assert colors_of(split, 6) == tuple(colors)

    @pytest.mark.parametrize(
        "split", ["", "MOD", "2", "MOD 0", "DIV 0", "/ 0x0", "XOR 1", "MOD -1", "MOD 2 2", "MOD ²"]
    )
    def test_that_is_none_is_refused(self, split):
        with pytest.raises(ValueError, match=r"give AND|divides by 0"):
            colors_of(split, 4)

    @given(
        st.sampled_from(["AND", "OR", "MOD", "DIV", "&", "|", "%", "/"]), st.integers(1, 1 << 20),
        st.integers(1, 40),
    )  # fmt: skip
    def test_puts_each_rank_into_one_group(self, by, number, ranks):
        groups = groups_of(f"{by} {number}", ranks)
        assert sorted(rank for group in groups for rank in group) == list(range(ranks))
        assert groups[0][0] == 0
        assert all(list(group) == sorted(group) for group in groups)
