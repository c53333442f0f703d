"""On the host: what of a domain does not fit the machine, its devices or its own pins."""

import pytest

from judge.test_vm_placement import host
from linkgauge.machine.tree import Captured
from vm_kit import (
    compare,
    contradictions,
    domain,
    expander,
    host_bus,
    hostdev,
    root_port,
    running,
    tree,
)

CARD = "0000:17:00.0"
# A host of two nodes: CPUs 0-7 and 16-23, 8-15 and 24-31; CPU n and n+16 are threads of a core.
PINS = {0: 1, 1: 17, 2: 2, 3: 18}
ON_NODE_0 = "<numatune><memory mode='strict' nodeset='0'/></numatune>"
ON_NODE_1 = ON_NODE_0.replace("'0'", "'1'")
CPU = "<cpu mode='host-passthrough'><topology sockets='1' cores='2' threads='2'/></cpu>"
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


def judged(xml, root=None, **more):
    return compare(xml, machine() if root is None else root, "host", **more)


def found(xml, root=None, **more):
    return contradictions(judged(xml, root, **more))


def the(check, xml, root=None, **more):
    (finding,) = (one for one in judged(xml, root, **more).findings if one.check == check)
    return finding


ALL = range(4)
CORES = CPU.replace("cores='2' threads='2'", "cores='4' threads='1'")
THREAD = f"{HUGE}<iothreads>1</iothreads>"
TWO = ("<cpu><topology sockets='2' cores='1' threads='2'/><numa>"
       "<cell id='0' cpus='0-1' memory='4' unit='GiB'/>"
       "<cell id='1' cpus='2-3' memory='4' unit='GiB'/></numa></cpu>")  # fmt: skip
MEMORY = ("<numatune><memory mode='strict' nodeset='0-1'/><memnode cellid='0' nodeset='0'/>"
          "<memnode cellid='1' nodeset='1'/></numatune>")  # fmt: skip
ON_BOTH = tune({0: 1, 1: 17, 2: 9, 3: 25})
PAGE = "<memoryBacking><hugepages><page size='16' unit='M'/></hugepages></memoryBacking>"


def below(cell):
    """A device below the expander of a cell."""
    return expander(1, 3, 128, cell) + root_port(2, 0, bus=1) + hostdev(CARD, (2, 0, 0))


def host_tree(**more):
    return tree(guest=False, cores=8, bus=host_bus((CARD, 0), **more))


@pytest.mark.parametrize(
    ("xml", "root", "wrong"),
    [
        # Pins
        (well(tune({0: 1})), None, {("unpinned", "vCPUs 1-3")}),
        (well("").replace(b"'static'", b"'auto'"), None, {("unpinned", "vCPUs 0-3")}),
        (well(tune(dict.fromkeys(ALL, "0-15"))), None,
         {("pins-across", "vCPUs 0-3"), ("memory-remote", "memory")}),
        (well(tune({0: 1, 1: 17, 2: 1, 3: 18})), None,
         {("pins-shared", "vCPUs 0,2"), ("pin-threads", "vCPUs")}),
        (well(tune({0: 1, 1: 2, 2: 17, 3: 18})), None, {("pin-threads", "vCPUs")}),
        (well(cpu=CORES), None, {("pin-threads", "vCPUs")}),
        (well(tune({0: 1, 1: 2, 2: 3, 3: 4}), cpu=CORES), None, set()),
        (well(tune(emulator="0,1")), None, {("emulator", "emulator")}),
        (well(tune(emulator=None)), None, {("emulator", "emulator")}),
        (well(tune({**PINS, 9: 3}, more="<iothreadpin iothread='7' cpuset='0'/>")), None,
         {("pin-of-none", "vcpupin"), ("pin-of-none", "iothreadpin")}),
        # Memory
        (well(memory=ON_NODE_0.replace("'0'", "'0,7'")), None, {("memory-node", "memory")}),
        (well(memory=""), None, {("memory-unbound", "memory")}),
        (well(memory=ON_NODE_1), None, {("memory-remote", "memory"), ("device-far", CARD)}),
        (domain(tune() + ON_NODE_0 + CPU, memory=80, devices=hostdev(CARD)), None,
         {("memory-size", "memory")}),
        (well(pages=PAGE), None, {("huge-pages", "huge pages")}),
        (well(pages=""), machine(thp="never"), {("huge-pages-none", "huge pages")}),
        # Devices
        (well(devices=hostdev("0000:99:00.0")), None, {("device", "0000:99:00.0")}),
        (well(), machine(cards=((CARD, 1),)), {("device-far", CARD)}),
        # Cells
        (well(ON_BOTH, MEMORY, TWO, devices=below(0)), None, set()),
        (well(ON_BOTH, MEMORY, TWO, devices=below(1)), None, {("device-node", CARD)}),
        (well(ON_BOTH, MEMORY, TWO), None, {("device-node", CARD)}),
        (well(memory=ON_NODE_0.replace("</num", "<memnode cellid='4' nodeset='0'/></num"),
              devices=below(3)), None, {("cell-of-none", "memnode"), ("cell-of-none", "expander")}),
        (well(cpu=CPU.replace("cores='2'", "cores='3'")), None, {("topology-product", "topology")}),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_host(xml, root, wrong):
    assert found(xml, root) == wrong


@pytest.mark.parametrize(
    ("xml", "root", "wrong"),
    [
        (well(tune({**PINS, 3: "18,40-41"}, more="<iothreadpin iothread='1' cpuset='99'/>"),
              pages=THREAD), None, {("pinned-cpus", "vCPUs 3"), ("pinned-cpus", "IO thread 1")}),
        (well(tune(dict.fromkeys(ALL, "0-31"))), None, {("unpinned", "vCPUs 0-3")}),
        (well(tune(dict.fromkeys(ALL, "1-3"))), None, {("pins-shared", "vCPUs 0-3")}),
        (domain(devices=hostdev(CARD)), host_tree(group=False), {("device-iommu", CARD)}),
        (domain(devices=hostdev(CARD, managed="no")), host_tree(driver="nvidia"),
         {("device-driver", CARD)}),
        (well(ON_BOTH, memory=ON_NODE_0.replace("'0'", "'0-1'")), None,
         {("cells-hidden", "cells")}),
    ],
)  # fmt: skip
def test_what_is_found_beside_other_things(xml, root, wrong):
    assert found(xml, root) >= wrong


def test_an_io_thread_on_a_node_without_vcpus_and_memory():
    far = tune(more="<iothreadpin iothread='1' cpuset='9'/>")
    assert the("emulator-far", well(far, pages=THREAD)).about == "IO thread 1"
    assert "emulator-far" not in {one.check for one in judged(well(pages=THREAD)).findings}


def test_pages_of_which_the_host_has_no_pool_are_counted_for_its_command_line():
    (line,) = the("huge-pages", well(pages=PAGE)).remedy
    assert "hugepagesz=16M hugepages=512 " in line


@pytest.mark.parametrize(
    ("check", "severity", "xml", "root"),
    [
        ("pins-wide", "note", well(tune(dict.fromkeys(ALL, "1-7"))), None),
        ("emulator", "note", well(pages=THREAD), None),
        ("memory-policy", "note", well(memory=ON_NODE_0.replace("strict", "preferred")), None),
        ("huge-pages", "fail", well(), host(cards=((CARD, 0),))),
        ("huge-pages-none", "note", well(pages=""), None),
        ("device-far", "unknown", well(), machine(cards=((CARD, -1),))),
        ("device", "unknown", well(), Captured({})),
        ("memory-sum", "note", domain(TWO, memory=99), None),
        ("mediated", "unknown", well(devices="<hostdev type='mdev'><source><address "
                                             "uuid='1'/></source></hostdev>"), None),
    ],
)  # fmt: skip
def test_how_grave_it_is(check, severity, xml, root):
    assert the(check, xml, root).severity == severity


def test_what_fits_or_is_managed_is_not_found():
    assert judged(well()) == ([], [])
    alone = host(nodes=1, cards=((CARD, 0),))
    assert ("memory-unbound", "memory") not in found(well(memory="", pages=""), alone)
    managed = domain(devices=hostdev(CARD))
    assert ("device-driver", CARD) not in found(managed, host_tree(driver="nvidia"))
    assert judged(domain(vcpus=64)).xml == []


def test_a_device_of_which_a_capture_has_no_files_is_not_judged():
    known = machine()
    link = {"sys/bus/pci/devices/0000:5e:00.0": "../../../devices/pci0000:5d/0000:5e:00.0"}
    root = Captured(known.files, known.links | link)
    assert found(well(devices=hostdev("0000:5e:00.0")), root) == set()


def test_pins_to_cpus_of_another_domain_that_runs():
    other = running("db", vcpus={0: 2, 1: 5, 2: "0-15"})
    one = judged(well(), files=other)
    assert contradictions(one) == {("pins-taken", "vCPUs")}
    (tune,) = (text for text in one.xml if text.startswith("<cputune"))
    assert not {"cpuset='2'", "cpuset='5'", 'cpuset="2"', 'cpuset="5"'} & set(tune.split())


RUNS = {"vcpus": {0: 1, 1: 17, 2: 2, 3: 18}, "emulator": "0,16", "nodes": 0}


@pytest.mark.parametrize(
    ("more", "driver", "wrong"),
    [
        ({}, None, set()),
        ({"vcpus": {**RUNS["vcpus"], 3: 5}, "emulator": 7}, None,
         {("live-pins", "vCPU 3"), ("live-pins", "emulator")}),
        ({"nodes": "0-1"}, None, {("live-memory", "memory")}),
        ({}, "x/nvidia", {("device-driver", CARD)}),
    ],
)  # fmt: skip
def test_as_the_host_runs_it(more, driver, wrong):
    root = machine()
    if driver:
        root.links["sys/devices/pci0000:80/0000:80:01.0/0000:17:00.0/driver"] = driver
    assert found(well(), root, files=running("gpu-vm", **RUNS | more)) == wrong


@pytest.mark.parametrize(
    ("name", "runs", "is_it"),
    [("gpu-vm", "gpu-vm", True), ("gpu_vm", "gpuvm", True), ("gpu", "gpu-vm", False),
     ("v" * 80, "v" * 50, True), ("vvv", "v" * 50, False)],
)  # fmt: skip
def test_a_running_domain_is_found_by_what_systemd_keeps_of_its_name(name, runs, is_it):
    elsewhere = running(runs, **RUNS | {"nodes": 1})
    assert (("live-memory", "memory") in found(well(name=name), files=elsewhere)) == is_it


def test_huge_pages_are_counted_by_node_and_cell():
    few = the("huge-pages", well(), host(cards=((CARD, 0),)))
    assert "needs 4096 pages of 2 MiB on node 0; the host has 0" in few.found
    assert "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/" in few.remedy[0]
    pages = PAGE.replace("size='16' unit='M'", "size='1' unit='G' nodeset='1'")
    cells = TWO[TWO.index("<numa>") : TWO.index("</cpu>")]
    xml = domain(tune() + ON_NODE_0 + CPU.replace("</cpu>", f"{cells}</cpu>") + pages)
    assert "needs 4 pages of 1 GiB on node 0" in the("huge-pages", xml).found
    root = machine()
    folder = "sys/devices/system/node/node0/hugepages/hugepages-2048kB"
    root.files[f"{folder}/free_hugepages"] = b"100\n"  # others have the rest
    assert the("huge-pages", well(), root).severity == "warn"
    assert found(well(), root, files=running("gpu-vm", **RUNS)) == set()


def test_vcpus_in_two_cells_or_beyond_the_last():
    findings = judged(domain(TWO.replace("2-3", "1-4"))).findings
    assert len([one for one in findings if one.check == "cell-list"]) == 2
