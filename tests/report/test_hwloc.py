"""What `linkgauge export --hwloc` writes is what hwloc itself reads."""

import os
import re
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

import linkgauge
from hwloc_kit import bits, of_xml
from linkgauge.judge.outcome import outcome_of
from linkgauge.model.errors import InputError
from linkgauge.report.hwloc import memattrs_xml
from linkgauge.report.rows import OneRun
from report.samples import RUN

READ, WRITE = "host_to_host_memcpy_read_cpu", "host_to_host_memcpy_write_cpu"
LATENCY = "memory_latency_nodes"


@pytest.fixture(scope="module")
def measured():
    return linkgauge.run(
        READ, WRITE, LATENCY, machine="dgx-h200-8", size="256M", samples=3, out=None
    )


def xml(run):
    return memattrs_xml(OneRun(run, outcome_of(run)))


def figures(run, benchmark):
    return {(int(one.row), int(one.column)): one.figure for one in run.cells
            if one.benchmark == benchmark}  # fmt: skip


def test_the_nodes_and_their_cpus_are_the_machines(measured):
    stated = of_xml(xml(measured.run))
    nodes = measured.run.machine.host.nodes
    assert stated.node_cpus == {node.index: {*node.cpus} for node in nodes}
    assert stated.cpus == {cpu for node in nodes for cpu in node.cpus}
    assert {n: size for n, (size, *_) in stated.nodes.items()} == {
        node.index: node.memory_total for node in nodes
    }
    assert stated.infos["Simulated"] == "dgx-h200-8"


def test_hwloc_reads_the_figures(measured, tmp_path):
    lstopo = shutil.which("lstopo") or shutil.which("lstopo-no-graphics")
    if lstopo is None:
        if "hwloc" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail("lstopo is not installed")
        pytest.skip("lstopo is not installed (Debian: hwloc)")
    path = tmp_path / "memory.xml"
    path.write_text(xml(measured.run))
    done = subprocess.run([lstopo, "-i", path, "--memattrs"], capture_output=True, text=True,
                          check=True, timeout=60)  # fmt: skip
    assert done.stderr == ""
    cpus = {node.cpus: node.index for node in measured.run.machine.host.nodes}
    read = {}
    for part in done.stdout.split("Memory attribute ")[1:]:
        name = re.search(r"name `(\w+)'", part)[1]
        found = re.findall(r"NUMANode L#(\d+) = (\d+) from cpuset (\S+)", part)
        read[name] = {
            (cpus[tuple(sorted(bits(mask)))], int(target)): int(value)
            for target, value, mask in found
        }
    of = {name: figures(measured, name) for name in (READ, WRITE, LATENCY)}
    assert len(of[READ]) == len(of[LATENCY]) == 4
    for name, benchmark in (("ReadBandwidth", READ), ("WriteBandwidth", WRITE)):
        wanted = {place: value / 2**20 for place, value in of[benchmark].items()}
        assert read[name] == pytest.approx(wanted, abs=0.51)
    both = {place: (of[READ][place] + of[WRITE][place]) / 2**21 for place in of[READ]}
    assert read["Bandwidth"] == pytest.approx(both, abs=0.51)
    latency = {place: value * 1e9 for place, value in of[LATENCY].items()}
    assert read["Latency"] == read["ReadLatency"] == pytest.approx(latency, abs=0.51)
    assert read["Latency"][0, 1] > read["Latency"][0, 0]


def test_a_node_of_memory_alone_is_a_target_and_no_initiator(measured):
    run = measured.run
    first, second = run.machine.host.nodes
    host = replace(run.machine.host, nodes=(first, replace(second, cpus=(), cores=())))
    root = ET.fromstring(xml(replace(run, machine=replace(run.machine, host=host))))
    values = [*root.iter("memattr_value")]
    assert len(values) == 2 * len([*root.iter("memattr")]) == 10
    assert {one.get("initiator_cpuset") for one in values} == {
        root.find("object/object").get("cpuset")
    }


def test_a_run_without_such_figures_is_refused():
    with pytest.raises(InputError, match=f"linkgauge run {READ} {WRITE} {LATENCY}"):
        xml(RUN)
