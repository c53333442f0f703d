"""What `devices` says last of each accelerator: its link in words, and the command for its node."""

import pytest
from msgspec.structs import replace

from doctor_kit import FULL, gpu, inventory, machine, root
from linkgauge.judge.findings import Evidence
from linkgauge.report.sections.pci import nearest_blocks


def said(*functions):
    blocks = list(nearest_blocks(Evidence(machine(inventory(pci=functions)))))
    return [[entry.text for entry in row] for block in blocks for row in block.rows]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "PCIe Gen 5 x16, as it should be"),
        ({"width": 8}, "PCIe Gen 5 x8, should be Gen 5 x16 (linkgauge doctor)"),
        ({"speed": 2.5}, "PCIe Gen 1 x16 now, can be Gen 5 x16"),
        ({"speed": None}, "PCIe Gen ? x16 now, can be Gen 5 x16"),
        ({"speed": None, "width": None}, "unknown"),
    ],
)
def test_a_link_is_as_it_should_be_only_if_both_ends_say_so(changed, words):
    ((_, link, _),) = said(gpu(link=replace(FULL, **changed)), root())
    assert link == words
