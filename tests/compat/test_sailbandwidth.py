"""`linkgauge as sailbandwidth`: the page's commands run as printed, on the machine it is of."""

import re
import shlex
from pathlib import Path

import pytest

from compat_kit import MadeUp, rated, spoken
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


def shape(text):
    """Each line with its figures as `#`, without leading and multiple blanks."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [re.sub(r"\d+\.\d\d\b", "#", line) for line in lines if line]


def test_the_page_has_a_command_for_each_test():
    listed = spoken("sailbandwidth", "-l").stdout
    names = set(re.findall(r"^\d+, (\w+):$", listed, re.MULTILINE))
    assert {shlex.split(command)[2] for command, _ in EXAMPLES} == names


@pytest.mark.parametrize(
    ("command", "printed"), EXAMPLES, ids=[command.split()[2] for command, _ in EXAMPLES]
)
def test_runs_as_printed_on_the_page(command, printed):
    done = spoken(*command.split(" ", 1))
    assert (done.returncode, done.stderr.strip()) == (0, "SIMULATED ppu-8")
    begin, end = done.stdout.index("Running "), done.stdout.index("NOTE: The reported")
    assert shape(done.stdout[begin:end]) == shape(printed)
    (ours,), (theirs,) = read_tests(done.stdout), read_tests(printed)
    for table, on_page in zip(ours.tables, theirs.tables, strict=True):
        figures, expected = table.figures(), on_page.figures()
        assert figures.keys() == expected.keys()
        if ours.name in LINK_BOUND:
            assert figures == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("words", "shaped"),
    [
        ("", ("bulk", None, None)),
        ("--useNormalCopy", ("plain", None, None)),
        ("--nBlocks 16 --nThreads=128", ("bulk", 16, 128)),
        ("--nBlocks -1 --nThreads=-1", ("bulk", None, None)),
    ],
)
def test_options_shape_the_kernels(monkeypatch, words, shaped):
    made_up = MadeUp(rated())
    made_up.install(monkeypatch)
    spoken("sailbandwidth", f"{words} -t 0")
    engines = made_up.settings[0].engines
    assert (engines.kernel, engines.blocks, engines.threads) == shaped
