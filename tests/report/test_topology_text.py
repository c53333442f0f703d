"""How devices hang together: the tree of PCI, and matrices as wide as the terminal allows."""

from linkgauge.report.distances import distances, matrix_lines
from linkgauge.report.fabric_links import fabric_lines
from linkgauge.report.subjects import subjects
from linkgauge.report.topology_text import topology_lines
from report.test_machine_report import (
    accelerator,
    lines,
    machine,
    nvlinks,
    printed,
    sim,
    switched,
)


def test_ports_that_lead_to_one_thing_are_left_out_of_the_tree():
    tree = printed(topology_lines(switched(), subjects(machine(switched()))), 80)
    assert tree.splitlines() == [
        "host:0",
        "├─ 0000:01:00.0  PEX890xx Switch  PCIe Gen 5 x16",
        "│  ├─ 0000:05:00.0  cuda:0        NVIDIA H200  PCIe Gen 5 x16",
        "│  ├─ 0000:06:00.0  cuda:1        NVIDIA H200  PCIe Gen 1 x8 of Gen 5 x16",
        "│  └─ 0000:07:00.0  mlx5_0        ConnectX-7  PCIe Gen 5 x16",
        "└─ 0000:90:00.0  display, ast  Device 1a03:2000  PCIe Gen 5 x16",
        "no NUMA node known",
        "└─ 0000:81:00.0  no driver     Device 10de:2335",
    ]


def test_a_matrix_wider_than_the_terminal_is_shown_by_groups():
    shown = sim("rbln-32")
    matrix = distances(shown, subjects(shown))
    wide, narrow = lines(matrix_lines(matrix, 135)), lines(matrix_lines(matrix, 80))
    assert wide[:2] == ["PCIe distance (hops)", " " * 6 + "".join(f"{n:4}" for n in range(32))]
    assert narrow[0] == "PCIe distance (hops), 32 devices by groups"
    assert [line.split()[0] for line in narrow[1:]] == ["4", "8"]


def test_links_that_lead_to_many_are_told_by_spans():
    links = nvlinks("cuda:2", "cuda:1", "cuda:1", "cuda:2", "nvswitch")
    (_, line) = lines(fabric_lines((accelerator(0, None, *links),)))
    assert line.endswith(", to cuda:1-2 (2 each), nvswitch")
