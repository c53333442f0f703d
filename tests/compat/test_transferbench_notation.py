"""TransferBench's notation is read as its page describes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.compat.base import UsageError
from linkgauge.compat.transferbench_notation import (
    AskedTransfer,
    End,
    parse_size,
    parse_test,
    written,
)

G0, G1, C1 = End("G", 0), End("G", 1), End("C", 1)

memories = st.none() | st.builds(End, st.sampled_from("CBDHPGF"), st.integers(0, 99))
executors = st.builds(End, st.sampled_from("CGD"), st.integers(0, 99))
transfers = st.builds(
    AskedTransfer,
    memories,
    executors,
    memories,
    st.integers(1, 999),
    st.integers(0, 1 << 28).map(lambda number: 4 * number),
).filter(lambda t: len(t.ends) > (t.executor.letter == "D"))


class TestPage:
    """The examples of the page and of example.cfg."""

    @pytest.mark.parametrize(
        ("line", "test"),
        [
            ("1 4 (G0->G0->G1)", [(G0, G0, G1, 4)]),
            ("1 4 (C1->G2->G0)", [(C1, End("G", 2), G0, 4)]),
            ("2 4 G0->G0->G1 G1->G1->G0", [(G0, G0, G1, 4), (G1, G1, G0, 4)]),
            ("2 4 (G0 G0 G1) (G1 G1 G0)", [(G0, G0, G1, 4), (G1, G1, G0, 4)]),
            (
                "-2 (G0 G0 G1 4 1M) (G1 G1 G0 2 2M)",
                [(G0, G0, G1, 4, 1 << 20), (G1, G1, G0, 2, 2 << 20)],
            ),
            ("-1 (G0->D0->G1 1 0)", [(G0, End("D", 0), G1, 1, 0)]),
            ("1 32 (N0->G0->G0)", [(None, G0, G0, 32)]),
            ("1 4 (C0->C0->N0)", [(End("C", 0), End("C", 0), None, 4)]),
            ("1 4 n g0 f1", [(None, G0, End("F", 1), 4)]),
        ],
    )
    def test_examples(self, line, test):
        assert parse_test(line) == tuple(AskedTransfer(*each) for each in test)

    @pytest.mark.parametrize("line", ["", "   ", "# a comment", "## repeated", "any words"])
    def test_what_begins_without_a_number_is_no_test(self, line):
        assert parse_test(line) == ()

    @pytest.mark.parametrize(
        ("size", "number"), [("0", 0), ("64M", 64 << 20), ("4k", 4096), ("1G", 1 << 30)]
    )
    def test_sizes(self, size, number):
        assert parse_size(size) == number


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0 4 (G0->G0->G1)", "0 transfers: give 1 to"),
        ("1x 4 (G0->G0->G1)", "'1x' is not a number of transfers"),
        ("1", "the number of SubExecutors is missing"),
        ("1 x (G0->G0->G1)", "'x' is not a number of SubExecutors"),
        ("1 4 (G0->G0)", "the destination of transfer 0 is missing"),
        ("2 4 (G0->G0->G1)", "the source of transfer 1 is missing"),
        ("1 4 (G0->G0->G1) G0", "'G0' follows the last of 1 transfers"),
        ("-1 (G0->G0->G1 4)", "bytes of transfer 0 is missing"),
        ("-1 (G0->G0->G1 4 3)", "3 bytes: give a multiple of 4"),
        ("-1 (G0->G0->G1 4 1T)", "'1T' is not a number of bytes"),
        ("1 4 (X0->G0->G1)", "'X0' is not a memory"),
        ("1 4 (G->G0->G1)", "'G' is not a memory"),
        ("1 4 (G0->F0->G1)", "'F0' is not an executor"),
        ("1 4 (N0->G0->N0)", "a source or a destination"),
        ("1 1 (N0->D0->G0)", "D0 copies from one memory to another"),
        ("1 0 (C0->C0->C0)", "only a GPU kernel's number is left to linkgauge"),
        ("1 4 (G0->G0->G0G1)", "G0G1: a transfer has one source and one destination here"),
        ("1 1 (G0->I0->G1)", "I0: NIC executors are not measured"),
        ("1 1 (G0->N0.1->G1)", "N0.1: NIC executors are not measured"),
        ("1 1 (G0->D0.1->G1)", "D0.1: parts of an executor cannot be chosen"),
        ("1 4 (U0->G0->G0)", "U0: uncached GPU memory is not measured"),
        ("1 4 (R0G0->G0->G1)", "R0G0: ranks are not measured"),
        ("1 4 (K0->G0->G1)", "K0: uncached host memory"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(line, says):
    with pytest.raises(UsageError) as refused:
        parse_test(line)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.lists(transfers, min_size=1, max_size=5).map(tuple))
def test_what_is_written_is_read_back(test):
    assert parse_test(written(test)) == test
    assert parse_test(written(test).replace("->", " ").replace("(", "").replace(")", "")) == test


@given(
    st.text("CGDNIRUKMx0129-> ().#\t", max_size=24)
    | st.lists(
        st.sampled_from(["1", "-1", "2", "4", "G0", "C0", "N0", "D1", "->", "(", ")", "1M", "U0"]),
        max_size=12,
    ).map(" ".join)
)
def test_any_line_is_read_or_refused(line):
    try:
        test = parse_test(line)
    except UsageError as error:
        assert str(error)
    else:
        assert all(transfer.ends for transfer in test)
