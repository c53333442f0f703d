"""Which figures depend on the host, and that recorded runs bear it out."""

import pytest
from msgspec.structs import replace

from linkgauge.judge.compare.likeness import figures_of
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Report
from recorded_kit import recorded_run

PINNED = {"locked": True}


@pytest.mark.parametrize(
    ("text", "more", "use"),
    [
        # What devices do between themselves depends on nothing of the host.
        ("cuda:0 -> cuda:1 by ce", {}, "none"),
        ("cuda:0 -> cuda:0 by ce", {}, "none"),
        ("cuda:1 -> cuda:0 by sm", {}, "none"),
        ("cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce", {}, "none"),
        # Copies to and from locked memory depend on the host's memory, and others on its CPUs, as
        # do host threads and what they time.
        ("host:0 -> cuda:1 by ce", PINNED, "memory"),
        ("cuda:0 -> cuda:1 by ce & cuda:0 -> host:0 by sm", PINNED, "memory"),
        ("host:0/pageable -> cuda:1 by ce", {"locked": False}, "cpus"),
        ("host:0 -> cuda:1 by ce", {}, "cpus"),
        ("host:0 -> host:0 by cpu", PINNED, "cpus"),
        *(("cuda:0 -> cuda:1 by ce", {"operation": work}, "cpus")
          for work in ("launch", "sync", "enqueue", "copy-ping-pong")),
    ],
)  # fmt: skip
def test_what_a_figure_depends_on(text, more, use):
    run = recorded_run("01")
    transfers = parse_transfers(text)
    cell = replace(run.results[0].cells[0], transfers=transfers, report=Report.FIRST,
                   **{"locked": None, "operation": "copy"} | more)  # fmt: skip
    (found,) = figures_of(replace(run, results=(replace(run.results[0], cells=(cell,)),))).cells
    assert found.host == use
