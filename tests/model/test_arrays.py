"""What STREAM's operations touch, and what of it figures count."""

from typing import get_args

import pytest

from linkgauge.model.arrays import ARRAYS, ArrayOperation, counted_arrays, mode_of, source_arrays
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Cell, Report


@pytest.mark.parametrize(
    ("kind", "source", "counted"),
    [("copy", 1, 2), ("scale", 1, 2), ("add", 2, 3), ("triad", 2, 3), ("read", 1, 1)],
)
def test_every_array_that_is_read_or_written_counts_as_in_stream(kind, source, counted):
    for mode in ("stream", "peak"):
        operation = f"{mode}-{kind}"
        assert mode_of(operation) == mode
        assert (source_arrays(operation), counted_arrays(operation)) == (source, counted)


def test_other_operations_count_payload_once_and_have_no_mode():
    assert (source_arrays("copy"), counted_arrays("copy"), mode_of("copy")) == (1, 1, None)
    assert set(ARRAYS) == set(get_args(ArrayOperation))


def test_the_size_of_a_cell_is_that_of_one_array():
    transfers = parse_transfers("host:0 -> host:1 by cpu")
    cell = Cell("0", "1", transfers, Report.FIRST, operation="peak-triad")
    assert cell.bytes_reported(100) == 300
    assert [(str(memory), size) for memory, size in cell.buffers(100)] == [
        ("host:0", 200), ("host:1", 100),
    ]  # fmt: skip
    payload = Cell("0", "1", transfers, Report.FIRST)
    assert payload.bytes_reported(100) == 100
    assert [size for _, size in payload.buffers(100)] == [100, 100]


def test_nodes_at_once_count_all_their_arrays():
    transfers = parse_transfers("host:0 -> null by cpu & host:1 -> null by cpu")
    cell = Cell("all", "4", transfers, Report.TOTAL, operation="stream-read")
    assert cell.bytes_reported(100) == 200
    assert [size for _, size in cell.buffers(100)] == [100, 100]
