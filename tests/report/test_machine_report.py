"""What `devices` shows of a machine: its PCI tree, links, distances, and what is not known."""

import re
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.backends.sim import simulate
from linkgauge.backends.sim.description import load
from linkgauge.machine.hardware import hardware_yaml, known_values, read_hardware, state
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import InputError
from linkgauge.model.host_details import Cache
from linkgauge.model.inventory import (
    Accelerator,
    Adapter,
    FabricLink,
    HostDetails,
    Inventory,
    PciFunction,
    PciLink,
)
from linkgauge.model.machine import Device, Host, Machine, Node
from linkgauge.model.settings import EngineSettings, Simulation
from linkgauge.report.distances import classes, distances, matrix_lines
from linkgauge.report.fabric_links import fabric_lines
from linkgauge.report.formats import formats
from linkgauge.report.gaps import for_root, gap_lines
from linkgauge.report.host_details import ranges
from linkgauge.report.machine_report import detailed_machine_lines, machine_lines
from linkgauge.report.pci_tree_text import tree_lines
from linkgauge.report.subjects import spans, subjects
from machine_kit import OF_HOSTS, captured
from pci_kit import Bus
from report.test_output import compare, text_console

WIDTHS = (60, 80, 120, 200)
FULL = PciLink(32.0, 16, 32.0, 16, 32.0)
SHORT = "only 64 bytes of config space are readable: run as root"
NONE = Host("box", "Linux", "6.8.0", "x86_64", "Test CPU", 8, (Node(0, (0, 1)),), None, None, None,
            None)  # fmt: skip


def function(address, parent=None, port="endpoint", **more):
    ids = {"vendor": 0x10DE, "device": 0x2335, "class_code": 0x030200, "revision": 0xA1}
    if port != "endpoint":
        ids |= {"vendor": 0x1000, "device": 0xC030, "class_code": 0x060400, "revision": 0xB0}
    fields = {"numa_node": 0, "iommu_group": 7, "max_payload": 256, "max_read_request": 512}
    return PciFunction(
        address=address, parent=parent, port=port, **({"link": FULL} | ids | fields | more)
    )


def nvlinks(*remotes, down=0):
    return tuple(
        FabricLink(number, "nvlink", number >= down, "4.0", 25e9, remote)
        for number, remote in enumerate(remotes)
    )


def accelerator(index, pci, *links, **more):
    return Accelerator(memory=f"cuda:{index}", model="NVIDIA H200", pci=pci, links=links, **more)


def switched():
    """A switch with two GPUs and an adapter, a GPU alone whose link is unknown, a console."""
    return Inventory(
        host=HostDetails(
            sockets=1, cores=4, threads_per_core=2, isa="x86-64-v3", governor="performance",
            caches=(Cache(1, "data", 32 << 10, 2), Cache(3, "unified", 32 << 20, 8)),
            distances={0: (10, 21), 1: (21, 10)}, huge_pages={2 << 20: (64, 32)},
            transparent_huge_pages="madvise", command_line="ro iommu=pt", iommu="passthrough",
            allowed_cpus=(0, 1, 2, 3, 8), allowed_nodes=(0,), memory_limit=None, steal=0.0125,
            memory_rate=307.2e9,
            unknown=("locked memory limit: /proc/self/limits is not readable",),
        ),
        pci=(
            function("0000:00:01.1", port="root port"),
            function("0000:01:00.0", "0000:00:01.1", "upstream port", name="PEX890xx Switch"),
            function("0000:02:00.0", "0000:01:00.0", "downstream port"),
            function("0000:02:01.0", "0000:01:00.0", "downstream port"),
            function("0000:02:02.0", "0000:01:00.0", "downstream port"),
            function("0000:05:00.0", "0000:02:00.0"),
            function("0000:06:00.0", "0000:02:01.0", link=PciLink(2.5, 8, 32.0, 16)),
            function("0000:07:00.0", "0000:02:02.0", class_code=0x020700, name="ConnectX-7"),
            function("0000:80:01.0", port="root port", link=PciLink(), numa_node=1,
                     unknown=(f"link.speed, link.width: {SHORT}",)),
            function("0000:81:00.0", "0000:80:01.0", link=PciLink(), numa_node=None,
                     iommu_group=None, max_payload=None, max_read_request=None, revision=None,
                     unknown=(f"link.speed, link.width: {SHORT}", f"max_payload: {SHORT}")),
            function("0000:90:00.0", display=True, driver="ast", vendor=0x1A03, device=0x2000),
        ),
        accelerators=(
            accelerator(0, "0000:05:00.0", *nvlinks("cuda:1", "cuda:1"), driver="580.1"),
            accelerator(1, "0000:06:00.0", *nvlinks("cuda:0", "cuda:0", down=1), driver="580.1"),
        ),
        adapters=(Adapter(name="mlx5_0", pci="0000:07:00.0", state="active", rate=50e9,
                          link_layer="InfiniBand"),),
    )  # fmt: skip


def machine(inventory, **more):
    return Machine(host=NONE, inventory=inventory, **more)


def lines(made):
    return [line.plain.rstrip() for line in made]


@cache
def sim(name):
    backend = simulate(Simulation(*load(name), ()), EngineSettings())
    inventory = backend.look()
    return Machine(
        host=backend.host(), devices={"sim": backend.devices()}, inventory=inventory, simulated=name
    )


def printed(made, width):
    console = text_console(width=width)
    for line in made:
        console.print(line)
    return console.file.getvalue()


def varied():
    """OpenCL reaches a GPU, too, and the one that CUDA does not."""
    opencl = tuple(
        Device(f"opencl:{number}", "H200", 1 << 37, 1 << 35, pci=pci)
        for number, pci in enumerate(("0000:05:00.0", "0000:81:00.0"))
    )
    shown = machine(switched(), devices={"opencl": opencl}, unavailable={"torch": "not here"})
    return state(shown, {"soc": "X2800-v1", "kernel": "6.6.12", "host": "box"})


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["", "rbln-32", "ppu-8", "dgx-h200-8", "vm-degraded"])
def test_a_machine_on_the_terminal(name, width):
    shown = printed(machine_lines(sim(name) if name else varied()), width)
    compare(f"devices/{name or 'varied'}-{width}.txt", shown)


@pytest.mark.parametrize("width", WIDTHS)
def test_its_details_on_the_terminal(width):
    shown = printed(detailed_machine_lines(varied()), width)
    compare(f"devices/verbose-{width}.txt", shown)
    assert shown.startswith(printed(machine_lines(varied()), width).rpartition("\n\n")[0])


@pytest.mark.parametrize("render", [machine_lines, detailed_machine_lines])
@pytest.mark.parametrize("name", OF_HOSTS)
def test_lines_fit_and_end_where_their_words_end(name, render):
    shown = [*render(sim(name))]
    wide = printed(shown, 1000)
    for width in WIDTHS:
        lines = printed(shown, width).splitlines()
        assert max(map(len, lines)) <= width
        assert [line for line in lines if line != line.rstrip()] == []
        whole = {word for line in lines for word in line.split() if "sim:" not in word}
        if "by groups" not in "".join(lines):  # else the matrix itself depends on the width
            assert whole <= set(wide.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_size_stays_beside_its_unit(width):
    for line in printed(detailed_machine_lines(sim("ppu-8")), width).splitlines():
        assert not re.match(r" *[KMGT]iB", line)


def test_as_json_it_is_the_whole_machine(capsys):
    formats()["json"].write("machine", machine(switched()))
    assert msgspec.json.decode(capsys.readouterr().out, type=Machine) == machine(switched())


@pytest.mark.parametrize("name", OF_HOSTS)
def test_simulated_machines_say_so_and_show_every_device(name, capsys):
    shown = sim(name)
    formats()["terminal"].write("machine", shown)
    text = capsys.readouterr().out
    assert text.startswith(f"SIMULATED {name}\n")
    for device in shown.devices["sim"]:
        (line,) = (line for line in text.splitlines() if f"─ {device.pci}  " in line)
        assert f"  {device.memory} " in line
        assert device.model in line
    formats()["terminal"].write("machine in detail", shown)
    text = capsys.readouterr().out
    for number, device in enumerate(shown.devices["sim"]):
        assert f"{device.pci} NODE {number}, {device.memory}, {device.model}(rev-" in text
    assert f"# SIMULATED: {name}\n" in hardware_yaml(shown)


def test_rbln_32_is_shown_as_its_own_tool_does():
    shown = sim("rbln-32")
    found = lines(tree_lines(shown.inventory, subjects(shown)))
    bridge, *first = found[:4]
    assert bridge.partition(" PCI bridge: ")[0] == "0000:00:01.1/03:00.0"
    assert first == [
        "    0000:05:00.0 NODE 0, sim:0, RBLN-CA25(rev-03), pciDevID: 0x1250, NUMA: 0, IOMMU: 3",
        " " * 8 + "PCIe full bandwidth 64.0 GB/s (MAX: 64.0), PCIe Gen 5 (MAX: 5), "
        "16 lane (MAX: 16)",
        " " * 8 + "MaxPayload 512 bytes, MaxReadReq 512 bytes",
    ]
    assert len(found) == 8 + 32 * 3
    matrix = distances(shown, subjects(shown))
    assert matrix.rows[0][:6] == ("0", "4", "4", "4", "8", "8")


def test_72_devices_are_told_by_groups():
    shown = sim("gb200-nvl72")
    found = lines(matrix_lines(classes(shown, subjects(shown)), 80))
    assert found == ["Topology class: NV18 between any two of sim:0-71"]
    assert max(map(len, lines(fabric_lines(shown.inventory.accelerators)))) < 120


def test_groups_are_named_from_close_to_far():
    bus = Bus()
    for slot in range(40):
        root = f"pci0000:00/0000:00:{slot // 20 + 1:02x}.0"
        bus.bridge(root)
        port = f"{root}/0000:{slot // 20 + 1:02x}:00.0"
        bus.bridge(port)
        bus.add(f"{port}/0000:{slot + 16:02x}:00.0")
    inventory = read_inventory(Captured(bus.files, bus.links))
    shown = machine(inventory)
    assert lines(matrix_lines(classes(shown, subjects(shown)), 1000))[1].startswith(
        "   PIX  380 pairs: 0000:10:00.0, 0000:11:00.0"
    )


def test_links_decide_the_class_by_how_many_are_active():
    one, other = "0000:05:00.0", "0000:06:00.0"
    cases = {
        "NV3": (nvlinks(*["cuda:1"] * 3), nvlinks(*["cuda:0"] * 3)),
        "NV2": (nvlinks(*["nvswitch"] * 3), nvlinks(*["nvswitch"] * 3, down=1)),
        "NV2?": (nvlinks(None, None), nvlinks(None, None)),
        "PIX": (nvlinks("host:0"), nvlinks("host:0")),
    }
    # A memory that is not ours is no switch: what is expected of copies knows no such way, either.
    no_switches = [("PIX", (nvlinks(name), nvlinks(name))) for name in ("cpu", "gpu 0000:09:00.0")]
    for text, (ours, theirs) in (*cases.items(), *no_switches):
        inventory = msgspec.structs.replace(
            switched(), accelerators=(accelerator(0, one, *ours), accelerator(1, other, *theirs))
        )
        shown = machine(inventory)
        rows = classes(shown, subjects(shown)).rows
        assert (rows[0][0], rows[0][1], rows[1][0]) == ("X", text, text)


def test_a_gpu_that_no_backend_reaches_is_no_switch():
    """The links of both lead to others, which CUDA_VISIBLE_DEVICES or a container hides."""
    one, other, hidden = (f"0000:0{bus}:00.0" for bus in (5, 6, 9))
    pci = (*switched().pci, function(hidden))
    cases = {"gpu": "PIX", f"gpu {hidden}": "PIX", f"device {hidden}": "PIX",
             "device 0000:0a:00.0": "NV2?"}  # fmt: skip
    for name, text in cases.items():
        accelerators = tuple(
            accelerator(index, at, *nvlinks(name, name)) for index, at in enumerate((one, other))
        )
        shown = machine(msgspec.structs.replace(switched(), pci=pci, accelerators=accelerators))
        assert classes(shown, subjects(shown)).rows[0][1] == text, name
    # Where none is hidden, it is the other one.
    both = tuple(each for each in switched().pci if each.port != "endpoint" or each.address in
                 (one, other))  # fmt: skip
    accelerators = accelerator(0, one, *nvlinks("gpu")), accelerator(1, other, *nvlinks("gpu"))
    shown = machine(msgspec.structs.replace(switched(), pci=both, accelerators=accelerators))
    assert classes(shown, subjects(shown)).rows[0][1] == "NV1?"


def test_a_place_that_is_unknown_is_a_question_mark():
    inventory = Inventory(
        accelerators=(accelerator(0, None), accelerator(1, "0000:05:00.0")),
    )
    for matrix, same in ((distances, "0"), (classes, "X")):
        shown = machine(inventory)
        rows = matrix(shown, subjects(shown)).rows
        assert rows == ((same, "?"), ("?", same))


def test_where_devices_are_is_unknown_in_a_virtual_machine(capsys):
    """What lies above them is the hypervisor's; links between them are not."""
    host = msgspec.structs.replace(switched().host, hypervisor="KVM")
    inside = msgspec.structs.replace(switched(), host=host)
    found = subjects(machine(inside))
    assert distances(machine(inside), found).rows[0] == ("0", "?", "?")
    assert classes(machine(inside), found).rows[0] == ("X", "NV1", "?")
    formats()["terminal"].write("machine", machine(inside))
    assert "PCI devices, as the hypervisor shows them\n" in capsys.readouterr().out


def test_each_reason_is_said_once():
    payload = f"max_payload of 0000:81:00.0: {SHORT}"
    found = lines(gap_lines(switched()))
    assert found == [
        "Not read",
        "  locked memory limit: /proc/self/limits is not readable",
        f"  link.speed, link.width of 0000:80:01.0, 0000:81:00.0; {payload}",
    ]


def test_a_capture_ends_with_what_root_could_read():
    (line,) = for_root(switched())
    assert line.startswith("link.speed, link.width of 0000:80:01.0, 0000:81:00.0; max_payload")
    assert (for_root(Inventory()), for_root(None)) == ([], [])


def test_nothing_but_a_cpu_in_a_container(capsys):
    root = captured({"proc/cpuinfo": "model name\t: Test CPU\nflags\t\t: lm\n"})
    shown = machine(read_inventory(root), unavailable={"cuda": "no NVIDIA driver"})
    formats()["terminal"].write("machine", shown)
    assert "what could not be read (" in capsys.readouterr().out
    formats()["terminal"].write("machine in detail", shown)
    text = capsys.readouterr().out
    assert "PCI functions: /sys/bus/pci/devices lists none" in text
    assert "a container that hides it: run on the host" in text
    assert "PCI devices" not in text
    assert "Topology class" not in text
    assert "cuda: none: no NVIDIA driver" in text


def test_hardware_yml_has_what_is_known_and_asks_for_the_rest(tmp_path):
    compare("hardware.yml", hardware_yaml(machine(switched())))
    path = tmp_path / "hardware.yml"
    path.write_text(hardware_yaml(machine(switched())))
    assert state(machine(switched()), read_hardware(path)) == machine(switched())


def test_what_is_stated_is_kept_as_it_is_written(tmp_path):
    path = tmp_path / "hardware.yml"
    path.write_text("soc: X2800-v1\nnvlink_fusion_fw: 2025.10\nrack: 007\nfirmware:\nos: ~\n")
    stated = state(machine(switched()), read_hardware(path))
    assert stated.inventory.stated == {
        "soc": "X2800-v1", "nvlink_fusion_fw": "2025.10", "rack": "007"
    }  # fmt: skip
    path.write_text(hardware_yaml(stated))
    assert state(machine(switched()), read_hardware(path)) == stated


@pytest.mark.parametrize(
    "content", [b"", b"- a", b"a: [1]", b"a: {b: c}", b"[a]: b", b"a: b: c", b"\xff\xfe\x00", b"\0"]
)
def test_what_is_no_hardware_yml_is_refused_in_one_line(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_hardware(tmp_path / "x")
    assert "\n" not in str(caught.value)


def test_a_hardware_yml_that_is_missing_or_huge_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_hardware(tmp_path / "gone")
    (tmp_path / "x").write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(InputError, match="bytes"):
        read_hardware(tmp_path / "x")


WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(
    lambda word: word not in ("~", "null", "Null", "NULL")
)


@given(st.dictionaries(WORDS, WORDS, max_size=4))
def test_any_statement_reads_back(tmp_path_factory, values):
    known = known_values(machine(switched()))
    stated = {key: value for key, value in values.items() if known.get(key) != value}
    path = tmp_path_factory.mktemp("hardware") / "hardware.yml"
    path.write_text(hardware_yaml(state(machine(switched()), values)), encoding="utf-8")
    assert state(machine(switched()), read_hardware(path)).inventory.stated == stated


def test_names_that_count_on_are_one():
    names = ["sim:0", "sim:1", "sim:2", "sim:4", "cuda:5", "0000:01:00.0", "0000:02:00.0"]
    assert spans(names) == "sim:0-2, sim:4, cuda:5, 0000:01:00.0, 0000:02:00.0"
    assert ranges((0, 1, 2, 8)) == "0-2,8"
    assert (spans([]), ranges(())) == ("", "")
