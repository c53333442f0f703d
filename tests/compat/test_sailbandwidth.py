"""`linkgauge as sailbandwidth`: the page's commands run as printed, on the machine it is of."""

import json
import re
import shlex
from pathlib import Path

import pytest

from compat_kit import ONE_DEVICE, speak, where
from linkgauge.compat.nvbandwidth_cases import CASES
from linkgauge.compat.sailbandwidth import sailbandwidth_options
from nvbandwidth_reader import read_examples, read_tests

EXAMPLES = read_examples(
    (Path(__file__).parents[1] / "data" / "sailbandwidth-examples.txt").read_text()
)
TOLERANCE = 0.03
LINK_BOUND = {
    name
    for kind in ("read", "write")
    for name in (f"device_to_device_memcpy_{kind}_sm",
                 f"device_to_device_bidirectional_memcpy_{kind}_sm")
} | {
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "all_to_host_memcpy_ce",
    "device_local_copy", "device_to_device_latency_sm",
    "host_to_device_memcpy_sm", "device_to_host_memcpy_sm",
    "host_to_device_bidirectional_memcpy_sm", "device_to_host_bidirectional_memcpy_sm",
    "all_to_host_memcpy_sm", "all_to_host_bidirectional_memcpy_sm",
    "host_to_all_memcpy_sm", "host_to_all_bidirectional_memcpy_sm",
}  # fmt: skip
"""Tests whose every printed figure follows from the links: docs/as.md says why others' do not."""


@pytest.fixture
def sailbandwidth(capfd):
    def run(*arguments, on=None):
        return speak(capfd, "sailbandwidth", *map(str, arguments), on=on)

    return run


def shape(text):
    """Each line with its figures as `#`, without leading and multiple blanks."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [re.sub(r"\d+\.\d\d\b", "#", line) for line in lines if line]


class TestPage:
    def test_has_a_command_for_each_test(self):
        assert {shlex.split(command)[2] for command, _ in EXAMPLES} == {case.name for case in CASES}

    @pytest.mark.parametrize(
        ("command", "printed"), EXAMPLES, ids=[command.split()[2] for command, _ in EXAMPLES]
    )
    def test_runs_as_printed(self, sailbandwidth, command, printed):
        tool, *arguments = shlex.split(command)
        assert tool == "sailbandwidth"
        done = sailbandwidth(*arguments)
        assert (done.code, done.err) == (0, "SIMULATED ppu-8\n")
        begin, end = done.out.index("Running "), done.out.index("NOTE: The reported")
        assert shape(done.out[begin:end]) == shape(printed)
        (ours,), (theirs,) = read_tests(done.out), read_tests(printed)
        for table, on_page in zip(ours.tables, theirs.tables, strict=True):
            figures, expected = table.figures(), on_page.figures()
            assert figures.keys() == expected.keys()
            if ours.name in LINK_BOUND:
                assert figures == pytest.approx(expected, rel=TOLERANCE)

    def test_help_shows_its_own_options_too(self, sailbandwidth):
        out = sailbandwidth("-h").out
        assert out.startswith("sailbandwidth Version: v2.1.0\nsailbandwidth CLI:\n  -h [ --help ] ")
        for line in (
            "  -j [ --json ]                  Print output in json format instead of plain text.",
            "  --nBlocks arg (=-1)            nBlocks for sm bulk copy test",
            "  --displayUR                    Show utilization ratio matrixs in D2D Tests",
        ):
            assert line in out.splitlines()


class TestOwnOptions:
    def test_kernels_copy_in_bulk_unless_the_normal_copy_is_asked_for(self):
        assert sailbandwidth_options(()).settings.engines.kernel == "bulk"
        assert sailbandwidth_options(["--useNormalCopy"]).settings.engines.kernel == "plain"

    def test_blocks_and_threads_shape_them(self):
        engines = sailbandwidth_options("--nBlocks 16 --nThreads=128".split()).settings.engines
        assert (engines.blocks, engines.threads) == (16, 128)
        engines = sailbandwidth_options("--nBlocks -1 --nThreads=-1".split()).settings.engines
        assert (engines.blocks, engines.threads) == (None, None)

    def test_options_of_the_hardware_are_accepted_and_said_to_be_ignored(self, sailbandwidth):
        done = sailbandwidth("-b", 1, "-t", 0, "--isSingleDie", "--disableVm")
        assert done.code == 0
        for name in ("--isSingleDie", "--disableVm"):
            assert f"sailbandwidth: {name} has no meaning here: ignored" in done.err

    def test_local_copies_fill_the_diagonal_of_copies_between_devices(self, sailbandwidth):
        names = [
            "device_to_device_memcpy_read_ce", "device_to_device_bidirectional_memcpy_write_sm",
            "device_to_device_latency_sm", "host_to_device_memcpy_ce",
        ]  # fmt: skip
        done = sailbandwidth("-b", 1, "-i", 1, "--testLocalCopy", "-t", *names)
        one_way, both, latency, host = read_tests(done.out)
        for table in (*one_way.tables, *both.tables):
            assert len(table.figures()) == 64
        local = one_way.tables[0].figures()
        assert min(local[n, n] for n in "01234567") > 2 * max(
            figure for (row, column), figure in local.items() if row != column
        )
        assert len(latency.tables[0].figures()) == 56
        assert len(host.tables[0].figures()) == 8

    def test_one_device_has_local_copies_only(self, sailbandwidth):
        on = where(ONE_DEVICE)
        (test,) = read_tests(sailbandwidth("-b", 1, "--testLocalCopy", "-t", 4, on=on).out)
        assert list(test.tables[0].figures()) == [("0", "0")]

    def test_utilization_stands_below_tests_between_devices(self, sailbandwidth):
        arguments = ("--displayUR", "-t", "device_to_device_memcpy_write_sm", "0")
        d2d, host = read_tests(sailbandwidth(*arguments).out)
        figures, shares = d2d.tables
        assert shares.heading == "memcpy SM GPU(row) <- GPU(column) utilization ratio (%)"
        assert list(d2d.summed) == ["device_to_device_memcpy_write_sm"]
        for place, share in shares.figures().items():  # of one link, 50 GB/s
            assert share == pytest.approx(2 * figures.figures()[place], abs=0.5)
        assert ("0", "1") in shares.figures()
        assert len(host.tables) == 1
        done = sailbandwidth("-j", *arguments)
        d2d, host = json.loads(done.out)["sailbandwidth"]["testcases"]
        assert len(d2d["utilization_ratio_matrix"]) == 8
        assert "utilization_ratio_matrix" not in host

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ("--nBlocks 0", "'0' is not a number of blocks, or -1"),
            ("--nBlocks", "expected one argument"),
            ("--nBlocks -2", "'-2' is not a number of blocks, or -1"),
            ("--nThreads 100", "'100' is not a multiple of 64 up to 1024, or -1"),
            ("--nThreads 64 --nThreads 128", "more than once"),
            ("--useBulkCopy", "--useBulkCopy"),
        ],
    )
    def test_wrong_ones_are_refused(self, sailbandwidth, arguments, why):
        done = sailbandwidth(*arguments.split())
        assert done.code == 1
        assert f"ERROR: Invalid Arguments \nsailbandwidth {arguments} :" in done.out
        assert "sailbandwidth CLI:" in done.out
        assert why in done.err

    def test_nvbandwidth_does_not_know_them(self, capfd):
        assert speak(capfd, "nvbandwidth", "--useNormalCopy").code == 1
