"""What libvirt refuses of a domain's elements, beside the same elements as libvirt takes them."""

import pytest

from linkgauge.rooms.vm.domain_xml import parse_domain
from vm_kit import domain

CELLS = "<cpu><numa><cell id='0' cpus='0-3' memory='8' unit='GiB'{}/></numa></cpu>"
CELL = CELLS.format("")
BOUND = "<numatune><memory {}/><memnode cellid='0' mode='{}' nodeset='0'/></numatune>"
DIMM = ("<memory model='dimm'><target><size unit='GiB'>1</size><node>0</node>"
        "<address type='dimm' base='{}'/></target></memory>")  # fmt: skip
MOST = "<maxMemory slots='2' unit='GiB'>64</maxMemory>"
SCHED = "<cputune><vcpusched vcpus='0-1' scheduler='fifo' priority='1'/>{}</cputune>"
PAGES = "<memoryBacking><hugepages><page size='2' unit='M'/>{}</hugepages></memoryBacking>"


@pytest.mark.parametrize(
    ("taken", "refused", "subject"),
    [
        (MOST + CELL, MOST, "maxMemory"),
        (CELL + BOUND.format("mode='strict' nodeset='0'", "strict"),
         CELL + BOUND.format("mode='strict' placement='auto'", "strict"), "memnode"),
        (CELL + BOUND.format("mode='restrictive' nodeset='0'", "restrictive"),
         CELL + BOUND.format("mode='strict' nodeset='0'", "restrictive"), "memnode"),
        ("<numatune><memory nodeset='0'/></numatune>",
         "<numatune><memory placement='static'/></numatune>", "numatune"),
        (SCHED.format("<vcpusched vcpus='2' scheduler='rr' priority='1'/>"),
         SCHED.format("<vcpusched vcpus='1' scheduler='rr' priority='1'/>"), "vcpusched"),
        ("<iothreads>2</iothreads><cputune><iothreadsched iothreads='2' scheduler='rr'/></cputune>",
         "<iothreads>1</iothreads><cputune><iothreadsched iothreads='2' scheduler='rr'/></cputune>",
         "iothreadsched"),
        (CELLS.format(" memAccess='shared'"), CELLS.format(" memAccess='open'"), "cell"),
        (CELL + PAGES.format("<page size='1' unit='G' nodeset='0'/>"),
         CELL + PAGES.format("<page size='1' unit='G'/>"), "hugepages"),
        ("<cpu mode='host-passthrough'><cache mode='passthrough'/></cpu>",
         "<cpu mode='host-model'><cache mode='passthrough'/></cpu>", "cache"),
    ],
)  # fmt: skip
def test_one_is_taken_and_the_other_refused(taken, refused, subject):
    assert parse_domain(domain(taken)).refused == ()
    assert {name for name, _ in parse_domain(domain(refused)).refused} == {subject}


@pytest.mark.parametrize(("second", "overlaps"), [("0x140000000", False), ("0x120000000", True)])
def test_memory_devices_at_addresses_that_overlap(second, overlaps):
    devices = DIMM.format("0x100000000") + DIMM.format(second)
    (*found,) = parse_domain(domain(MOST + CELL, devices=devices)).refused
    assert bool(found) == overlaps
    assert all("0x120000000" in text for _, text in found)
