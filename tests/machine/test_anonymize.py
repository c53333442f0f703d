"""An anonymised tree lacks names, and reads back the same but for them."""

import time

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.machine.captures.archive import pack
from linkgauge.machine.captures.capture import capture, read_manifest
from linkgauge.machine.host import read_host
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import Captured
from machine_kit import DMI, captured, dimm, seen, simulated, table, through_a_file
from pci_kit import AER, Bus, config

SERIAL = bytes.fromhex("ccbbaaffff2db048")
UUID = "4c4c4544-0042-3010-8054-b4c04f4d3233"
HOSTNAME = "proc/sys/kernel/hostname"
ID = "f00dfacef00d" + "5e" * 26
TOOL = "linkgauge/tools/smi.txt"


def anonymize(tree):
    return capture(tree, seen(tree), anonymous=True)


def but_for_names(inventory):
    return msgspec.structs.replace(
        inventory,
        host=msgspec.structs.replace(inventory.host, command_line=None),
        accelerators=tuple(
            msgspec.structs.replace(one, uuid=None) for one in inventory.accelerators
        ),
    )


@pytest.mark.parametrize("name", ["dgx-h200-8", "rbln-32"])
def test_anonymised_it_lacks_names_alone(name, tmp_path):
    tree = simulated(name)
    machine = seen(tree)
    kept = through_a_file(capture(tree, machine, anonymous=True), tmp_path)
    assert but_for_names(read_inventory(kept)) == but_for_names(machine.inventory)
    assert read_host(kept) == msgspec.structs.replace(machine.host, hostname="host-1")
    names = {one.uuid for one in machine.inventory.accelerators}
    pseudonyms = [one.uuid for one in read_inventory(kept).accelerators]
    assert len(set(pseudonyms)) == len(names)
    assert not names.intersection(pseudonyms)
    everything = pack(kept) and b"".join(kept.files.values()).decode(errors="replace")
    assert not [uuid for uuid in names if uuid in everything]


def names_everywhere():
    """A machine whose names stand in files, links, registers and text."""
    bus = Bus()
    space = config(extended=(AER, (0x0003, SERIAL)))
    bus.add("pci0000:00/0000:00:01.0", space)
    smbios = bytearray(dimm("DIMM_A1"))
    smbios[0x18] = 3
    smbios[-1:] = b"H0B3A7C1\0\0"
    group = f"/kubepods/pod{UUID.replace('-', '_')}"
    files = {
        **bus.files,
        DMI: table(bytes(smbios)),
        "proc/sys/kernel/hostname": b"gpu07.lab.example.org\n",
        "proc/sys/kernel/osrelease": b"6.8.0.11\n",
        "proc/cmdline": f"root=UUID={UUID} nfsroot=10.1.2.3:/x ip=:10.1.2.3:gpu07 "
        "mac=0c:42:a1:00:00:07 BOOTIF=01-0c-42-a1-00-00-07 BOOT_IMAGE=/vmlinuz-4.18.0-30-generic"
        .encode(),
        "proc/cpuinfo": b"Hardware\t: BCM2835\nSerial\t\t: 10000000abcdef01\n",
        "proc/self/cgroup": f"0::{group}\n".encode(),
        f"sys/fs/cgroup{group}/memory.max": b"1073741824\n",
        "linkgauge/tools/uname_-a.txt": b"Linux gpu07 6.8.0\n",
        "linkgauge/tools/lspci_-vvv.txt":
            b"\tCapabilities: [100] Device Serial Number 48-b0-2d-ff-ff-aa-bb-cc\n"
            b"\t\t[SN] Serial number: MT2116X09299\n\t\t[PN] Part number: MCX653105A\n"
            b"\t\t[V3] Vendor specific: 0c42a1beef\n0000:1b:00.0 3D controller: Serial 12:34:56\n",
        "linkgauge/tools/nvidia-smi_-q.txt":
            f"    Driver Version : 570.13.20.1\n GPU UUID : GPU-{UUID}\n"
            "    Chassis Serial Number : 1650522011\n    Serial Number : N/A\n".encode(),
        "linkgauge/tools/ibstat.txt":
            b"\tNode GUID: 0x0c42a10300000007\n\tport fe80::e42:a1ff:fe00:7 0c42:a103:0000:0007\n",
    }  # fmt: skip
    return Captured(files, bus.links)


def test_names_become_pseudonyms_everywhere():
    tree = anonymize(names_everywhere())
    everything = b"\n".join([*tree.files.values(), *(path.encode() for path in tree.files)])
    for name in (b"gpu07", b"example", b"10.1.2.3", b"0c:42:a1", b"0c-42-a1", b"00-07", b"0c42",
                 b"c04f4d", b"MT2116X", b"10000000abcdef01", b"1650522011", b"H0B3A7C1",
                 b"aa-bb-cc", b"fe80", b"4c4c4544", SERIAL):  # fmt: skip
        assert name not in everything, name
    for kept in (b"570.13.20.1", b"MCX653105A", b"0000:1b:00.0", b"12:34:56", b"N/A", b"DIMM_A1",
                 b"6.8.0.11", b"BCM2835", b"vmlinuz-4.18.0-30-generic"):  # fmt: skip
        assert kept in everything, kept
    assert tree.text("proc/sys/kernel/hostname") == "host-1"
    assert tree.text("linkgauge/tools/uname_-a.txt") == "Linux host-1 6.8.0"


def test_an_anonymised_capture_says_which_linkgauge_made_it(monkeypatch):
    commit = "5eed" * 10
    monkeypatch.setattr("linkgauge.machine.captures.capture.commit", lambda _: commit)
    assert read_manifest(anonymize(names_everywhere())).commit == commit


def test_the_same_value_has_the_same_pseudonym():
    tree = anonymize(names_everywhere())
    uuid = tree.text("proc/self/cgroup").partition("/pod")[2].replace("_", "-")
    assert f"GPU-{uuid}" in tree.text("linkgauge/tools/nvidia-smi_-q.txt")
    assert read_inventory(tree).host.memory_limit == 1 << 30
    registers = tree.files["sys/devices/pci0000:00/0000:00:01.0/config"]
    serial = registers[0x130:0x138][::-1].hex("-")
    assert f"Number {serial}\n" in tree.text("linkgauge/tools/lspci_-vvv.txt")


def pseudonym(number):
    return f"00000000-0000-4000-8000-{number:012x}"


def told(path, text, hostname="web01"):
    """A file's text in an anonymised tree."""
    return anonymize(captured({HOSTNAME: f"{hostname}\n", path: text})).text(path)


@pytest.mark.parametrize(
    ("path", "text", "kept"),
    [
        ("proc/self/mounts", "/dev/mapper/web01--vg-root / ext4 rw 0 0",
         "/dev/mapper/host-1--vg-root / ext4 rw 0 0"),
        ("proc/mounts", "nfs7.corp.example.com:/srv/web01 / nfs4 rw,addr=10.9.8.7 0 0",
         "host-2:/srv/host-1 / nfs4 rw,addr=198.18.0.1 0 0"),
        ("proc/mounts", "mon1:6789,mon2:6789:/ / ceph rw 0 0",
         "host-2:6789,host-3:6789:/ / ceph rw 0 0"),
        ("proc/mounts", "10.0.0.1@tcp:/home / lustre rw 0 0",
         "198.18.0.1@tcp:/home / lustre rw 0 0"),
        ("proc/mounts", "//nas.lan/root / cifs rw 0 0", "//host-2/root / cifs rw 0 0"),
        ("proc/self/cgroup", "0::/system.slice/web01_slurmstepd.scope/web01.service",
         "0::/system.slice/host-1_slurmstepd.scope/host-1.service"),
        ("proc/1/cgroup", "0::/lxc.payload.web01/system-a\\x2dweb01.scope",
         "0::/lxc.payload.host-1/system-group-1\\x2dhost-1.scope"),
        ("proc/self/cpuset", "/slurm_web01/job_3", "/slurm_host-1/job_group-1"),
        ("proc/self/cgroup", f"1:cpu:/kubepods/pod{ID[:32]}/docker-{ID}.scope",
         f"1:cpu:/kubepods/pod000000000000400080000{'1':0>11}/docker-{'1':0>64}.scope"),
        ("proc/self/cgroup",
         "0::/slurm/uid_1007/job_471147/step_0\n1:cpu:/user.slice/user-1000.slice",
         "0::/slurm/uid_group-1/job_group-2/step_group-3\n1:cpu:/user.slice/user-group-4.slice"),
        ("proc/self/cgroup", "0::/system.slice/zebra-train@alice.service",
         "0::/system.slice/group-1-group-2@group-3.service"),
        ("linkgauge/tools/uname_-a.txt", "Linux web01 6.8.0 alice@buildzebra x86_64",
         "Linux host-1 6.8.0 (removed) x86_64"),
        (TOOL, "reported by alice.b@zebra.example: 6.8.0", "reported by (removed): 6.8.0"),
        ("proc/version", "Linux version 6.8.0 (me@web01) (gcc 13) #1 SMP",
         "Linux version 6.8.0 (removed) (gcc 13) #1 SMP"),
        ("sys/class/dmi/id/product_name", "Web01 box", "host-1 box"),
        ("sys/class/dmi/id/product_name", "web01.metal", "host-1.metal"),
        (TOOL, "web01.corp.example.com. WEB01! web012 aweb01", "host-1. host-1! web012 aweb01"),
    ],
)  # fmt: skip
def test_a_host_is_found_where_people_name_things(path, text, kept):
    assert told(path, text) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("rd.lvm.lv=rhel_web01/root root=/dev/mapper/rhel_web01-root WEB01=1 x.web01=1",
         "(removed) root=(removed) (removed) (removed)"),
        ("ip=10.1.2.3:::255.0.0.0:web01.corp.example.com:eth0 rd.driver.blacklist=nouveau",
         "ip=(removed) rd.driver.blacklist=nouveau"),
        ("ifname=eth9:52:54:00:aa:bb:cc mac=5254.00AA.bbcc BOOTIF=01-52-54-00-aa-bb-cc",
         "ifname=(removed) (removed) BOOTIF=(removed)"),
        (f"systemd.machine_id={UUID.replace('-', '')} root=UUID={UUID}",
         "systemd.machine_id=(removed) root=(removed)"),
        ("root=PARTUUID=3e297b2c-01 resume=UUID=1234-ABCD rd.md.uuid=aaaa:bbbb:cccc:dddd ro",
         "root=(removed) resume=(removed) (removed) ro"),
        ("rd.iscsi.initiator=iqn.1994-05.com.redhat:web01-7f3a quiet", "(removed) quiet"),
        ("inst.proxy=http://(removed)@proxy.lan:3128/x repo=http://10.0.0.1/y",
         "(removed) (removed)"),
        ("owner=alice@zebra.example user=alice contact=+49-69-1234 iommu=pt",
         "(removed) (removed) (removed) iommu=pt"),
        ("pci=0000:1b:00.0 crashkernel=1G console=ttyS0,115200n8 serial tsc=reliable", None),
        ("nvidia.NVreg_RegistryDwords=RMIntrLockingMode=1 isolcpus=1-3,8 hugepagesz=1G", None),
        ("BOOT_IMAGE=/boot/vmlinuz-6.8.0-45-generic ro intel_iommu=on default_hugepagesz=1G", None),
    ],
)  # fmt: skip
def test_of_a_command_line_names_go_and_options_stay(text, kept):
    assert told("proc/cmdline", text) == (text if kept is None else kept)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Failed on host web01: serial 1654922001234", "Failed on host host-1: serial sn-1"),
        ('  "board_sn": "BSN00991", "model": "X 1"', '  "board_sn": "sn-1", "model": "X 1"'),
        ("| Device Serial | X9SER777 | H200 |", "| Device Serial | sn-1 | H200 |"),
        ("Board Serial #  : BSER881", "Board Serial #  : sn-1"),
        ("| SN: RBSN12345 | PCI 0000:01:00.0 |", "| SN: sn-1 | PCI 0000:01:00.0 |"),
        ("GPU[0] : Unique ID: 0x5c88007d16c3e0f4", "GPU[0] : Unique ID: sn-1"),
        ("SOC UUID: 00000000-0000-004d-0000-0000deadbeef",
         "SOC UUID: 00000000-0000-4000-8000-000000000001"),
        ("CA 'rocex525400fffe123456' ibx1234567890123 enx525400aabbcc",
         "CA 'rocex0000000000000001' ibx0000000000000002 enx020000000001"),
        ("| Serial | Model |", None),
        ("Serial controller: 16550A, serial_core, Serial Attached SCSI, usbserial: v1.2", None),
        ("Serial Number: N/A\nUUID: 00000000-0000-0000-0000-000000000000", None),
        ("snd: 12, LnkSta: 32GT/s, asn 1, Part Number: 900-2G133, Kernel modules: nouveau", None),
        ("Firmware Version: 28.39.1002.4444 cpus 0-3 1024.2048.4096", None),
    ],
)  # fmt: skip
def test_of_what_tools_say_serial_numbers_go_and_the_rest_stays(text, kept):
    assert told(TOOL, text) == (text if kept is None else kept)


@pytest.mark.parametrize("hostname", ["web01", "1", "max", "sys", "node0", "qemu", "x86", "pci"])
def test_whatever_word_a_host_is_called_by_it_reads_the_same(hostname):
    tree = simulated("vm-degraded")
    named = Captured({**tree.files, HOSTNAME: f"{hostname}\n".encode()}, tree.links)
    hidden = anonymize(named)
    assert but_for_names(read_inventory(hidden)) == but_for_names(read_inventory(tree))
    assert read_host(hidden).hostname == "host-1"


def test_json_that_no_reader_reads_is_taken_as_text():
    for text in ("{web01", '{"a": 1' + "0" * 9999 + ', "web01": 1}', "[" * 100_000 + "web01"):
        assert "web01" not in told("linkgauge/accelerators.json", text)


def test_sentences_in_json_name_no_host():
    tree = captured({HOSTNAME: "web01\n"})
    machine = replace(seen(tree), unavailable={"web01": "web01.lan is down"})
    kept = read_manifest(capture(tree, machine, anonymous=True))
    assert kept.unavailable == {"name-1": "(removed)"}


def test_anonymised_again_it_is_the_same():
    once = anonymize(names_everywhere())
    again = anonymize(once)
    assert (again.files, again.links) == (once.files, once.links)


@pytest.mark.parametrize(
    "piece", ["a", " ", "0", "0:", "00-", "serial", "[sn]", "uuid ", "1.", "web01."]
)
def test_long_texts_take_no_time(piece):
    begun = time.process_time()
    told(TOOL, piece * (60_000 // len(piece)))
    assert time.process_time() - begun < 2
