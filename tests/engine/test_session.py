"""What is asked of a session, and what it makes of it."""

import pytest

from linkgauge.engine.session import check_shape
from linkgauge.model.errors import InputError
from linkgauge.model.result import EngineSettings, PlannedCell, PlannedSheet
from linkgauge.model.transfer import Report

SHAPE = EngineSettings(kernel="bulk", streams=2)


def plan(*transfers, reason=None):
    cells = (PlannedCell("0", "0", transfers, Report.FIRST, reason),)
    return (
        PlannedSheet(benchmark="x", title="x", backend="x", size=1, unit="B/s",
                     better="higher", cells=cells),
    )  # fmt: skip


class TestOptionsForTheShapeOfCopies:
    def test_are_refused_where_every_backend_ignores_them(self):
        with pytest.raises(InputError, match="--kernel, --streams: only backend cuda"):
            check_shape(SHAPE, plan("opencl:0 -> opencl:1 by ce", "host:0 -> host:0 by cpu"))

    def test_are_noted_where_some_do(self):
        note = check_shape(SHAPE, plan("cuda:0 -> cuda:0 by ce", "host:0 -> host:0 by cpu"))
        assert note == "note: host ignores --kernel, --streams"

    @pytest.mark.parametrize("reason", [None, "skipped"])
    def test_pass_without_a_word_where_none_does(self, reason):
        for engines, asked in (
            (SHAPE, plan("cuda:0 -> cuda:0 by ce")),
            (SHAPE, plan("opencl:0 -> opencl:1 by ce", reason="there is none")),
            (EngineSettings(), plan("opencl:0 -> opencl:1 by ce", reason=reason)),
        ):
            assert check_shape(engines, asked) is None
