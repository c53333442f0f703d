"""On the host: what of a domain does not fit the machine, its devices or its own pins."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from judge.test_vm_placement import host
from linkgauge.judge.vm.comparison import alive_of
from linkgauge.judge.vm.role import decide
from linkgauge.judge.vm.suited import PLACEMENT
from linkgauge.machine.capture import read_machine
from linkgauge.machine.domain_xml import parse_domain
from linkgauge.machine.tree import Captured
from linkgauge.machine.virtual import read_virtual
from linkgauge.model.virtual import RunningDomain
from vm_kit import (
    FULL,
    MIB,
    compare,
    contradictions,
    domain,
    expander,
    host_bus,
    hostdev,
    root_port,
    tree,
)

CARD = "0000:17:00.0"
# A host of two nodes: CPUs 0-7 and 16-23, 8-15 and 24-31; CPU n and n+16 are threads of a core.
PINS = {0: 1, 1: 17, 2: 2, 3: 18}
ON_NODE_0 = "<numatune><memory mode='strict' nodeset='0'/></numatune>"
ON_NODE_1 = ON_NODE_0.replace("'0'", "'1'")
CPU = "<cpu mode='host-passthrough'><topology sockets='1' cores='2' threads='2'/></cpu>"
POOL = {2 * MIB: (16384, 16384)}
HUGE = "<memoryBacking><hugepages/></memoryBacking>"


def tune(pins=PINS, emulator="0,16", more=""):
    text = "".join(f"<vcpupin vcpu='{vcpu}' cpuset='{cpu}'/>" for vcpu, cpu in pins.items())
    text += f"<emulatorpin cpuset='{emulator}'/>" if emulator else ""
    return f"<cputune>{text}{more}</cputune>"


def well(pins=None, memory=ON_NODE_0, cpu=CPU, pages=HUGE, devices=None, **more):
    """A domain of which nothing is wrong, but for what is given."""
    devices = hostdev(CARD) if devices is None else devices
    return domain(
        (tune() if pins is None else pins) + memory + cpu + pages, devices=devices, **more
    )


def machine(cards=((CARD, 0),), **more):
    root = host(cards=cards, **more)
    folder = "sys/devices/system/node/node{}/hugepages/hugepages-2048kB/{}"
    for node in (0, 1):
        for name in ("nr_hugepages", "free_hugepages"):
            root.files[folder.format(node, name)] = b"16384\n"
    for name in ("nr_hugepages", "free_hugepages"):
        root.files[f"sys/kernel/mm/hugepages/hugepages-2048kB/{name}"] = b"32768\n"
    return root


def found(xml, root=None, **more):
    return contradictions(compare(xml, machine() if root is None else root, "host", **more))


def the(check, xml, root=None, **more):
    judged = compare(xml, machine() if root is None else root, "host", **more)
    (finding,) = (f for f in judged.findings if f.check == check)
    return finding


def test_nothing_is_found_where_all_is_well():
    judged = compare(well(), machine(), "host")
    assert (judged.findings, judged.suited) == ((), None)


class TestPins:
    def test_to_cpus_that_are_not_there(self):
        xml = well(tune({**PINS, 3: "18,40-41"}, more="<iothreadpin iothread='1' cpuset='99'/>"),
                   pages=f"{HUGE}<iothreads>1</iothreads>")  # fmt: skip
        wrong = found(xml)
        assert {("pinned-cpus", "vCPUs 3"), ("pinned-cpus", "IO thread 1")} <= wrong
        assert ("emulator", "IO thread 1") not in wrong

    def test_of_some_vcpus_only(self):
        assert found(well(tune({0: 1}))) == {("unpinned", "vCPUs 1-3")}

    def test_that_numad_chooses(self):
        xml = well("").replace(b"placement='static'", b"placement='auto'")
        assert "numad" in the("unpinned", xml).found

    def test_to_all_cpus_are_none(self):
        wrong = found(well(tune(dict.fromkeys(range(4), "0-31"))))
        assert ("unpinned", "vCPUs 0-3") in wrong

    def test_across_nodes_and_within_one(self):
        assert found(well(tune(dict.fromkeys(range(4), "0-15")))) == {("pins-across", "vCPUs 0-3")}
        wide = the("pins-wide", well(tune(dict.fromkeys(range(4), "1-7"))))
        assert (wide.severity, wide.subject) == ("note", "vCPUs 0-3")

    def test_of_several_vcpus_to_one_cpu(self):
        assert ("pins-shared", "vCPUs 0,2") in found(well(tune({0: 1, 1: 17, 2: 1, 3: 18})))
        assert ("pins-shared", "vCPUs 0-3") in found(well(tune(dict.fromkeys(range(4), "1-3"))))

    def test_to_cpus_of_another_domain_that_runs(self):
        other = RunningDomain(name="db", vcpus={0: (2,), 1: (5,), 2: tuple(range(16))})
        judged = compare(well(), machine(), "host", others=(other,))
        assert contradictions(judged) == {("pins-taken", "vCPUs")}
        assert not {2, 5} & {cpu for pin in judged.suited.pins.values() for cpu in pin}

    def test_that_tear_a_core_apart_or_join_two(self):
        torn = the("pin-threads", well(tune({0: 1, 1: 2, 2: 17, 3: 18})))
        assert (
            "2 cores of the guest spread over several of the host: vCPUs 0-1 on 1-2" in torn.found
        )
        cpu = CPU.replace("cores='2' threads='2'", "cores='4' threads='1'")
        joined = the("pin-threads", well(cpu=cpu))
        assert "threads of 2 cores as cores of their own: vCPUs 0-1 on 1,17" in joined.found
        assert found(well(tune({0: 1, 1: 2, 2: 3, 3: 4}), cpu=cpu)) == set()

    def test_of_the_emulator_and_io_threads_beside_vcpus(self):
        assert found(well(tune(emulator="0,1"))) == {("emulator", "emulator")}
        assert found(well(tune(emulator=None))) == {("emulator", "emulator")}
        free = the("emulator", well(pages=f"{HUGE}<iothreads>1</iothreads>"))
        assert (free.severity, free.subject) == ("note", "IO thread 1")

    def test_of_what_the_domain_does_not_have(self):
        xml = well(tune({**PINS, 9: 3}, more="<iothreadpin iothread='7' cpuset='0'/>"))
        assert found(xml) == {("pin-of-none", "vcpupin"), ("pin-of-none", "iothreadpin")}


class TestAlive:
    """As the host runs it."""

    RUNS = RunningDomain(
        name="gpu-vm", vcpus={0: (1,), 1: (17,), 2: (2,), 3: (18,)}, emulator=(0, 16), nodes=(0,)
    )

    def test_as_it_is_defined(self):
        assert found(well(), alive=self.RUNS) == set()

    def test_pinned_otherwise(self):
        runs = replace(self.RUNS, vcpus={**self.RUNS.vcpus, 3: (5,)}, emulator=(7,))
        assert found(well(), alive=runs) == {("live-pins", "vCPU 3"), ("live-pins", "emulator")}

    def test_with_memory_of_another_node(self):
        assert found(well(), alive=replace(self.RUNS, nodes=(0, 1))) == {("live-memory", "memory")}

    def test_with_a_device_that_the_guest_does_not_have(self):
        root = machine()
        root.links["sys/devices/pci0000:80/0000:80:01.0/0000:17:00.0/driver"] = "x/nvidia"
        assert found(well(), root, alive=self.RUNS) == {("device-driver", CARD)}

    @pytest.mark.parametrize(
        ("name", "runs", "is_it"),
        [("gpu-vm", "gpu-vm", True), ("gpu_vm", "gpuvm", True), ("gpu", "gpu-vm", False),
         ("v" * 80, "v" * 50, True), ("vvv", "v" * 50, False)],
    )  # fmt: skip
    def test_is_found_by_what_systemd_keeps_of_its_name(self, name, runs, is_it):
        known = parse_domain(domain(name=name))
        assert (alive_of(known, [RunningDomain(name=runs)]) is not None) == is_it


class TestMemory:
    def test_of_nodes_that_are_not_there(self):
        assert found(well(memory=ON_NODE_0.replace("'0'", "'0,7'"))) == {("memory-node", "memory")}

    def test_of_no_node(self):
        assert found(well(memory="")) == {("memory-unbound", "memory")}
        alone = host(nodes=1, cards=((CARD, 0),))
        assert ("memory-unbound", "memory") not in found(well(memory="", pages=""), alone)

    def test_that_may_spill(self):
        spills = the("memory-policy", well(memory=ON_NODE_0.replace("strict", "preferred")))
        assert spills.severity == "note"

    def test_of_another_node_than_its_vcpus(self):
        assert found(well(memory=ON_NODE_1)) == {
            ("memory-remote", "memory"), ("device-far", CARD)
        }  # fmt: skip

    def test_that_is_more_than_the_node_has(self):
        large = domain(tune() + ON_NODE_0 + CPU, memory=80, devices=hostdev(CARD))
        assert found(large) == {("memory-size", "memory")}


class TestHugePages:
    def test_of_a_size_that_the_host_does_not_have(self):
        page = "<memoryBacking><hugepages><page size='16' unit='M'/></hugepages></memoryBacking>"
        assert found(well(pages=page)) == {("huge-pages", "huge pages")}

    def test_that_are_too_few_on_the_node(self):
        few = the("huge-pages", well(), host(cards=((CARD, 0),)))
        assert few.severity == "fail"
        assert "needs 4096 pages of 2 MiB on node 0; the host has 0" in few.found
        assert "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/" in few.remedy[0]

    def test_that_others_have(self):
        root = machine()
        folder = "sys/devices/system/node/node0/hugepages/hugepages-2048kB"
        root.files[f"{folder}/free_hugepages"] = b"100\n"
        assert the("huge-pages", well(), root).severity == "warn"
        assert found(well(), root, alive=TestAlive.RUNS) == set()

    def test_by_cell(self):
        cells = ("<numa><cell id='0' cpus='0-1' memory='4' unit='GiB'/>"
                 "<cell id='1' cpus='2-3' memory='4' unit='GiB'/></numa>")  # fmt: skip
        pages = ("<memoryBacking><hugepages><page size='1' unit='G' nodeset='1'/>"
                 "</hugepages></memoryBacking>")  # fmt: skip
        xml = domain(tune() + ON_NODE_0 + CPU.replace("</cpu>", f"{cells}</cpu>") + pages)
        assert "needs 4 pages of 1 GiB on node 0" in the("huge-pages", xml).found

    def test_none_are_a_note_where_transparent_ones_stand_in(self):
        assert the("huge-pages-none", well(pages="")).severity == "note"
        assert found(well(pages=""), machine(thp="never")) == {("huge-pages-none", "huge pages")}


class TestDevices:
    def test_that_are_not_there(self):
        assert found(well(devices=hostdev("0000:99:00.0"))) == {("device", "0000:99:00.0")}

    def test_without_an_iommu(self):
        root = tree(guest=False, cores=8, bus=host_bus((CARD, 0), group=False))
        assert ("device-iommu", CARD) in found(domain(devices=hostdev(CARD)), root)

    def test_of_which_a_capture_has_no_files_are_not_judged(self):
        known = machine()
        link = {"sys/bus/pci/devices/0000:5e:00.0": "../../../devices/pci0000:5d/0000:5e:00.0"}
        root = Captured(known.files, known.links | link)
        assert found(well(devices=hostdev("0000:5e:00.0")), root) == set()

    def test_that_nobody_hands_to_vfio(self):
        root = tree(guest=False, cores=8, bus=host_bus((CARD, 0), driver="nvidia"))
        assert ("device-driver", CARD) not in found(domain(devices=hostdev(CARD)), root)
        own = domain(devices=hostdev(CARD, managed="no"))
        assert ("device-driver", CARD) in found(own, root)

    def test_at_another_node(self):
        far = the("device-far", well(), machine(cards=((CARD, 1),)))
        assert far.found == "it is on node 1; the vCPUs run on node 0, the memory is on node 0"

    def test_at_no_node_that_the_host_knows(self):
        assert the("device-far", well(), machine(cards=((CARD, -1),))).severity == "unknown"

    def test_whose_link_trained_too_low(self):
        slow = FULL | {"current_link_speed": "2.5 GT/s PCIe"}
        bus = host_bus((CARD, 0), ("0000:ca:00.0", 0), link=slow)
        root = tree(guest=False, cores=8, bus=bus)
        finding = the("link-speed", domain(devices=hostdev(CARD)), root)
        assert finding.subject == CARD
        assert any("0000:80:01.0 CAP_EXP+10.w=20:20" in line for line in finding.remedy)


class TestCells:
    TWO = ("<cpu><topology sockets='2' cores='1' threads='2'/><numa>"
           "<cell id='0' cpus='0-1' memory='4' unit='GiB'/>"
           "<cell id='1' cpus='2-3' memory='4' unit='GiB'/></numa></cpu>")  # fmt: skip
    MEMORY = ("<numatune><memory mode='strict' nodeset='0-1'/><memnode cellid='0' nodeset='0'/>"
              "<memnode cellid='1' nodeset='1'/></numatune>")  # fmt: skip
    PINS = tune({0: 1, 1: 17, 2: 9, 3: 25})

    def below(self, cell):
        return expander(1, 3, 128, cell) + root_port(2, 0, bus=1) + hostdev(CARD, (2, 0, 0))

    def test_a_guest_that_does_not_see_that_it_is_on_two_nodes(self):
        both = ON_NODE_0.replace("'0'", "'0-1'")
        assert ("cells-hidden", "cells") in found(well(self.PINS, memory=both))

    def test_a_device_below_the_expander_of_its_cell(self):
        xml = well(self.PINS, self.MEMORY, self.TWO, devices=self.below(0))
        assert found(xml) == set()

    def test_a_device_below_another_or_none(self):
        for devices in (self.below(1), hostdev(CARD)):
            xml = well(self.PINS, self.MEMORY, self.TWO, devices=devices)
            assert found(xml) == {("device-node", CARD)}

    def test_cells_that_are_not_there(self):
        xml = well(memory=ON_NODE_0.replace("</num", "<memnode cellid='4' nodeset='0'/></num"),
                   devices=self.below(3))  # fmt: skip
        assert found(xml) == {("cell-of-none", "memnode"), ("cell-of-none", "expander")}

    def test_vcpus_in_two_cells_or_beyond_the_last(self):
        cells = self.TWO.replace("2-3", "1-4")
        findings = compare(domain(cells), machine(), "host").findings
        texts = [f.found for f in findings if f.check == "cell-list"]
        assert texts == ["vCPUs that the domain does not have: 4", "vCPUs in several cells: 1"]

    def test_a_topology_of_another_number(self):
        cpu = CPU.replace("cores='2'", "cores='3'")
        assert found(well(cpu=cpu)) == {("topology-product", "topology")}

    def test_memory_beside_the_cells(self):
        xml = domain(self.TWO, memory=99)
        assert the("memory-sum", xml).severity == "note"


class TestRole:
    """Which of the two a machine is."""

    UUID = "11111111-2222-4333-8444-555555555555"

    def role(self, root, **more):
        known = parse_domain(domain())
        return decide(read_machine(root), read_virtual(root), known, **more).role

    def test_follows_the_hypervisor(self):
        assert self.role(tree()) == "guest"
        assert self.role(tree(guest=False)) == "host"

    def test_is_host_where_the_domain_runs_though_it_is_a_guest_itself(self):
        assert self.role(tree(), alive=RunningDomain(name="gpu-vm")) == "host"

    def test_is_guest_where_the_firmware_has_the_domains_uuid(self):
        assert self.role(tree(guest=False), uuid=self.UUID) == "guest"
        assert self.role(tree(guest=False), uuid=self.UUID.replace("1", "2")) == "host"
        old = "11111111-2222-3343-8444-555555555555"  # as old firmware orders bytes
        assert self.role(tree(guest=False), uuid=old) == "guest"

    def test_is_unknown_where_nothing_tells(self):
        root = tree(files={"proc/cpuinfo": b"processor: 0\n", "sys/class/dmi/id/sys_vendor": b""})
        assert self.role(root) is None


def test_a_domain_that_fits_nowhere_has_no_placement():
    judged = compare(domain(vcpus=64), machine(), "host")
    assert (judged.suited, judged.too_much) == (None, True)


def test_mediated_devices_are_said_not_to_be_compared():
    vgpu = f"<hostdev type='mdev'><source><address uuid='{TestRole.UUID}'/></source></hostdev>"
    assert the("mediated", well(devices=vgpu)).severity == "unknown"


def test_every_finding_has_a_row_in_the_documentation():
    here = Path(__file__).parents[2]
    sources = [path.read_text() for path in (here / "src/linkgauge/judge/vm").glob("*.py")]
    names = {
        name
        for text in sources
        for pattern in (r'Finding\(\s*"([a-z-]+)"', r'_sized\(case, "([a-z-]+)"')
        for name in re.findall(pattern, text)
    }
    rows = re.findall(r"^\| (`[a-z-`, ]+) \|", (here / "docs/vm.md").read_text(), re.MULTILINE)
    assert names == {name for row in rows for name in re.findall("[a-z-]+", row)}
    assert len(names) > 35
    known = set(PLACEMENT)
    assert known <= names
