"""What memory of another node costs is shown in percent."""

import pytest

from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.report.remote import remote_lines


def cell(row, column, text, gigabytes, operation="stream-triad"):
    summary = None if gigabytes is None else summarize([gigabytes * 1e9] * 3)
    return CellResult(
        row, column, parse_transfers(text), Report.FIRST, "pass",
        summary=summary, operation=operation,
    )  # fmt: skip


def lines(*cells):
    result = Result(
        benchmark="memory_stream_triad", title="triad", backend="host", size=1, unit="B/s (STREAM)",
        better="higher", status="pass", cells=cells,
    )  # fmt: skip
    return [line.plain for line in remote_lines(result)]


LOCAL = cell("0 stream", "host:0", "host:0 -> host:0 by host:0.cpu", 80)
REMOTE = cell("0 stream", "host:1", "host:1 -> host:1 by host:0.cpu", 60)


def test_remote_memory_is_compared_with_a_nodes_own():
    back = cell("1 stream", "host:0", "host:0 -> host:0 by host:1.cpu", 40)
    own = cell("1 stream", "host:1", "host:1 -> host:1 by host:1.cpu", 50)
    assert lines(LOCAL, REMOTE, back, own) == [
        "remote 0 stream: host:1 -25.0%", "remote 1 stream: host:0 -20.0%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "local",
    [
        cell("0 stream", "1", "host:0 -> host:0 by cpu*1", 80),  # other threads
        cell("0 peak", "host:0", "host:0 -> host:0 by cpu", 80, "peak-triad"),  # another mode
        cell("0 stream", "host:0", "host:0 -> host:0 by cpu", None),  # failed
    ],
)
def test_it_is_compared_with_nothing_else(local):
    assert lines(local, REMOTE) == []


def test_copies_and_cells_of_all_nodes_have_no_remote_memory():
    both = cell("all stream", "4", "host:0 -> null by cpu & host:1 -> null by cpu", 100)
    copies = [cell(c.row, c.column, str(c), 10, "copy") for c in (LOCAL, REMOTE)]
    assert lines(both, *copies) == []
