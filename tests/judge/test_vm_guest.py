"""Inside a guest: what contradicts its domain, beyond what tests/judge/test_vm_contradictions.py
draws, and what a guest tells by itself."""

import pytest

from linkgauge.judge.findings import Evidence
from linkgauge.judge.vm import judge_alone
from linkgauge.machine.capture import read_machine
from linkgauge.machine.tree import Captured
from vm_kit import (
    GIB,
    compare,
    contradictions,
    domain,
    expander,
    guest_bus,
    hostdev,
    root_port,
    tree,
)

CARD = "pci0000:00/0000:00:02.0/0000:01:00.0"
ONE_CARD = root_port(1, 2) + hostdev("0000:17:00.0", (1, 0, 0))
TWO_CELLS = (
    "<cpu><numa><cell id='0' cpus='0-1' memory='4' unit='GiB'/>"
    "<cell id='1' cpus='2-3' memory='4' unit='GiB'/></numa></cpu>"
)


def found(xml, root, **more):
    return contradictions(compare(xml, root, "guest", **more))


def the(check, xml, root):
    (finding,) = (f for f in compare(xml, root, "guest").findings if f.check == check)
    return finding


class TestCpus:
    def test_those_that_are_added_later_are_not_missed(self):
        xml = domain("<cpu><topology sockets='8' cores='1' threads='1'/></cpu>", vcpus=8,
                     more=" current='2'")  # fmt: skip
        assert found(xml, tree(sockets=2, cores=1)) == set()
        assert found(xml, tree(sockets=3, cores=1)) == {("vcpus", "vCPUs")}

    def test_those_enabled_one_by_one_are_counted_in_their_order(self):
        vcpus = "".join(f"<vcpu id='{n}' enabled='{'yes' if n in (0, 2) else 'no'}'/>"
                        for n in range(4))  # fmt: skip
        cpu = "<topology sockets='1' cores='2' threads='2'/>"
        xml = domain(f"<vcpus>{vcpus}</vcpus><cpu>{cpu}</cpu>")
        assert found(xml, tree(cores=2)) == set()
        assert found(xml, tree(cores=1, threads=2)) == {("threads", "topology")}

    def test_threads_that_amd_hides_need_topoext(self):
        cpu = "<cpu><topology sockets='1' cores='2' threads='2'/>{}</cpu>"
        amd = tree(cores=4, vendor="AuthenticAMD")
        assert "topoext" in the("threads", domain(cpu.format("")), amd).remedy[0]
        has = domain(cpu.format("<feature policy='require' name='topoext'/>"))
        assert "topoext" not in the("threads", has, amd).remedy[0]

    def test_a_kernel_that_shows_no_sockets_is_not_blamed(self):
        files = {f"sys/devices/system/cpu/cpu{n}/topology/physical_package_id": b"-1\n"
                 for n in range(4)}  # fmt: skip
        xml = domain("<cpu><topology sockets='1' cores='4' threads='1'/></cpu>")
        assert the("topology", xml, tree(files=files)).severity == "unknown"

    def test_without_any_file_nothing_is_claimed(self):
        judged = compare(domain(devices=ONE_CARD), Captured({}), "guest")
        assert {f.severity for f in judged.findings} <= {"unknown", "note"}


class TestMemory:
    @pytest.mark.parametrize("size", [7.3, 7.9, 8])
    def test_what_a_kernel_keeps_is_no_loss(self, size):
        assert found(domain(), tree(memory=int(size * GIB))) == set()

    def test_what_is_set_aside_for_a_crash_is_no_loss(self):
        crash = {"sys/kernel/kexec_crash_size": str(2 * GIB).encode()}
        assert found(domain(), tree(memory=5 * GIB + GIB // 2, files=crash)) == set()

    def test_a_balloon_takes_what_the_domain_lets_it(self):
        xml = domain("<currentMemory unit='GiB'>4</currentMemory>")
        assert found(xml, tree(memory=4 * GIB)) == set()
        assert found(xml, tree(memory=2 * GIB)) == {("memory", "memory")}

    def test_memory_devices_may_be_used_or_not(self):
        dimm = "<memory><target><size unit='GiB'>4</size><node>1</node></target></memory>"
        xml = domain(TWO_CELLS, devices=dimm, memory=12)
        for size in (4, 8):
            nodes = {0: ((0, 1), 4 * GIB), 1: ((2, 3), size * GIB)}
            assert found(xml, tree(nodes=nodes)) == set()
        nodes = {0: ((0, 1), 4 * GIB), 1: ((2, 3), 9 * GIB)}
        assert found(xml, tree(nodes=nodes)) == {("cell-memory", "cell 1")}


class TestCells:
    def test_vcpus_of_no_cell_are_the_firsts(self):
        xml = domain(TWO_CELLS.replace("0-1", "0"))
        root = tree(nodes={0: ((0, 1), 4 * GIB), 1: ((2, 3), 4 * GIB)})
        assert found(xml, root) == {("cell-list", "cells")}

    def test_a_cell_of_memory_alone_is_the_last_node(self):
        cells = (
            "<cell id='0' memory='4' unit='GiB'/><cell id='1' cpus='0-3' memory='8' unit='GiB'/>"
        )
        xml = domain(f"<cpu><numa>{cells}</numa></cpu>", memory=12)
        assert found(xml, tree(nodes={0: ((0, 1, 2, 3), 8 * GIB), 1: ((), 4 * GIB)})) == set()

    def test_cells_for_a_devices_own_memory_need_not_show(self):
        empty = "".join(f"<cell id='{n}' memory='0'/>" for n in (1, 2))
        xml = domain(f"<cpu><numa><cell id='0' cpus='0-3' memory='8' unit='GiB'/>{empty}"
                     "</numa></cpu>")  # fmt: skip
        assert found(xml, tree()) == set()
        assert found(xml, tree(nodes={0: ((0, 1, 2, 3), 8 * GIB), 1: ((), 0)})) == set()


class TestDevices:
    def test_one_behind_its_port_is_found_whatever_the_bus_is_called(self):
        for bus in ("01", "0a"):
            route = f"pci0000:00/0000:00:02.0/0000:{bus}:00.0"
            assert found(domain(devices=ONE_CARD), tree(bus=guest_bus(route))) == set()

    def test_a_function_of_the_hypervisor_in_its_place_is_not_it(self):
        bus = guest_bus()
        bus.bridge("pci0000:00/0000:00:02.0", vendor="0x1b36", numa_node="-1")
        bus.add(CARD, vendor="0x1af4", numa_node="-1")
        assert found(domain(devices=ONE_CARD), tree(bus=bus)) == {("device", "0000:17:00.0")}

    def test_devices_without_a_place_are_counted(self):
        xml = domain(devices=hostdev("0000:17:00.0") + hostdev("0000:18:00.0"))
        routes = [f"pci0000:00/0000:00:0{n}.0" for n in (6, 7)]
        assert found(xml, tree(bus=guest_bus(*routes))) == set()
        assert found(xml, tree(bus=guest_bus(routes[0]))) == {("device", "devices")}

    def test_of_which_a_capture_has_no_files_are_unknown(self):
        known = tree(bus=guest_bus())
        link = {"sys/bus/pci/devices/0000:01:00.0": "../../../devices/nowhere"}
        root = Captured(known.files, known.links | link)
        assert the("device", domain(devices=ONE_CARD), root).severity == "unknown"

    def test_an_expander_whose_number_libvirt_chose_is_any_other_root(self):
        port = expander(1, 3, 0, 1).replace("busNr='0'", "") + root_port(2, 0, bus=1)
        xml = domain(TWO_CELLS, devices=port + hostdev("0000:17:00.0", (2, 0, 0)))
        route = "pci0000:fe/0000:fe:00.0/0000:ff:00.0"
        nodes = {0: ((0, 1), 4 * GIB), 1: ((2, 3), 4 * GIB)}
        assert found(xml, tree(nodes=nodes, bus=guest_bus(route, nodes=(1,)))) == set()
        subject = "0000:ff:00.0 (host: 0000:17:00.0)"
        assert found(xml, tree(nodes=nodes, bus=guest_bus(route, nodes=(0,)))) == {
            ("device-node", subject)
        }

    def test_a_link_that_trained_too_low_is_named_as_the_doctor_does(self):
        bus = guest_bus(CARD)
        folder = f"sys/devices/{CARD}"
        bus.files[f"{folder}/current_link_speed"] = b"2.5 GT/s PCIe\n"
        finding = the("link-speed", domain(devices=ONE_CARD), tree(bus=bus))
        assert "2.5 GT/s" in finding.found
        assert any("CAP_EXP+30.w=5:f" in line for line in finding.remedy)


def test_what_only_the_host_knows_is_unknown():
    xml = domain("<cputune><vcpupin vcpu='0' cpuset='4'/></cputune><memoryBacking><hugepages/>"
                 "</memoryBacking>")  # fmt: skip
    beyond = the("beyond-guest", xml, tree())
    assert beyond.severity == "unknown"
    assert "<vcpupin>, <hugepages>" in beyond.found


def test_steal_is_a_symptom_of_pins_that_share_cpus():
    busy = {"proc/stat": b"cpu  0 0 0 900 0 0 0 100 0 0\n"}
    assert ("steal", "host") in found(domain(), tree(files=busy))


class TestAlone:
    """Without its domain."""

    def findings(self, root):
        return {f.check: f for f in judge_alone(Evidence(read_machine(root)))}

    def test_a_guest_that_is_well(self):
        bus = guest_bus(CARD, nodes=(0,))
        found = self.findings(tree(cores=8, bus=bus, pools={0: {2 << 20: (9, 9)}}))
        assert not {f.severity for f in found.values()} & {"fail", "warn"}

    def test_each_vcpu_a_socket(self):
        found = self.findings(tree(sockets=8, cores=1))
        assert found["sockets"].severity == "warn"
        assert "cores='8'" in found["sockets"].remedy[0]
        assert "sockets" not in self.findings(tree(sockets=2, cores=1))

    def test_devices_of_no_node_beside_several_nodes(self):
        nodes = {0: ((0, 1), 4 * GIB), 1: ((2, 3), 4 * GIB)}
        assert self.findings(tree(nodes=nodes, bus=guest_bus(CARD)))["near-node"].subject == (
            "0000:01:00.0"
        )

    def test_several_devices_beside_one_node(self):
        other = "pci0000:00/0000:00:04.0/0000:02:00.0"
        assert self.findings(tree(bus=guest_bus(CARD, other)))["cells"].severity == "note"

    def test_huge_pages_steal_and_links(self):
        bus = guest_bus(CARD)
        bus.files[f"sys/devices/{CARD}/current_link_width"] = b"4\n"
        busy = {"proc/stat": b"cpu  0 0 0 900 0 0 0 100 0 0\n"}
        root = tree(bus=bus, thp="never", pools={0: {2 << 20: (0, 0)}}, files=busy)
        assert {"link-width", "steal", "transparent-huge-pages", "huge-pages"} <= set(
            self.findings(root)
        )
