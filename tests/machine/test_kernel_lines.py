"""Records of /dev/kmsg are read whatever they hold; lines about what is measured are recognized."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import device, machine
from linkgauge.machine.kernel_log import Follower
from linkgauge.model.hardware.inventory import Inventory, PciFunction
from linkgauge.model.kernel_log import LogLine

PRINTED = st.text(st.characters(categories=("L", "N", "P", "S")), max_size=80)


def kept(data, of=None):
    """What is kept of these bytes, as a record that the kernel wrote 1.5 s after the start."""
    records = [data]

    def read():
        if not records:
            raise BlockingIOError
        return records.pop()

    times = iter((0.0, 1.5))
    return Follower(read, of or machine(), clock=lambda: next(times)).new().lines


def escaped(text):
    """As the kernel writes a message (devkmsg's msg_add_ext_text)."""
    return b"".join(
        bytes([byte]) if 32 <= byte < 127 and byte != ord("\\") else b"\\x%02x" % byte
        for byte in text.encode()
    )


def written(text, level=3, facility=0, **properties):
    pairs = b"".join(b" %s=%s\n" % (k.encode(), escaped(v)) for k, v in properties.items())
    return b"%d,1,1500000,-;%s\n%s" % (facility << 3 | level, escaped(text), pairs)


def line_of(text, of=None, **properties):
    return next(iter(kept(written(text, **properties), of)), None)


@pytest.mark.parametrize(
    "data", [b"\n", b"3,1,-;NVRM: x", b"a,1,2,-;NVRM: x", b"3,1,2,-NVRM: x", b"3,1,2\nNVRM: ;"]
)
def test_what_lacks_a_records_prefix_is_none(data):
    assert kept(b"3,1,2,-;NVRM: x")
    assert kept(data) == ()


@given(st.binary(max_size=300))
def test_nothing_is_raised_whatever_the_bytes(data):
    for each in (data, b"3,1,2,-;" + data, b"3,1,2,-;NVRM: " + data):
        msgspec.json.encode(kept(each))


@given(st.integers(0, 7), st.integers(0, 23), PRINTED)
def test_a_record_reads_as_it_was_written(level, facility, text):
    (line,) = kept(written(f"NVRM: {text}.", level, facility, SUBSYSTEM="pci", DEVICE=f"+pci:{AT}"))
    assert (line.text, line.level, line.pci) == (f"NVRM: {text}.", level, AT)


AT = "0000:01:00.0"


@pytest.mark.parametrize(
    ("text", "kind", "pci", "code", "gravity"),
    [
        ("NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus.", "xid",
         "0000:1b:00.0", 79, None),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", "xid", "0000:03:00.0", 14, None),
        ("NVRM: Xid (PCI:0001:1B:00): 145, RLW_REMAP Nonfatal XC0", "xid", "0001:1b:00.0", 145,
         "uncorrected"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 20034, Fatal, Link 48 LTSSM Fault", "sxid",
         "0000:c5:00.0", 20034, "fatal"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12028, Non-fatal, Link 32", "sxid",
         "0000:c5:00.0", 12028, "uncorrected"),
        (f"pcieport 0000:00:1c.0: AER: Correctable error message received from {AT}", "aer", AT,
         None, "corrected"),
        (f"pcieport 0000:00:1c.0: AER: Multiple Corrected error received: {AT}", "aer", AT, None,
         "corrected"),
        (f"pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: {AT}", "aer", AT, None,
         "fatal"),
        (f"nvidia {AT}: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer",
         "aer", AT, None, "uncorrected"),
        (f"nvidia {AT}:   device [10de:2330] error status/mask=00000001/0000e000", "aer", AT, None,
         None),
        (f"nvidia {AT}:    [ 0] RxErr                  (First)", "aer", AT, None, None),
        ("pcieport 0000:00:1c.0: DPC: containment event, status:0x1f01 source:0x0000", "aer",
         "0000:00:1c.0", None, None),
        ("pcieport 0000:00:1c.0: pciehp: Slot(1): Link Down", "hotplug", "0000:00:1c.0", None,
         None),
        ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0", "hardware", None, None, "corrected"),
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0", "hardware", None, None, "uncorrected"),
        ("mce: [Hardware Error]: Machine check events logged", "hardware", None, None, None),
        ("{1}[Hardware Error]: event severity: recoverable", "hardware", None, None, "uncorrected"),
        (f"{{1}}[Hardware Error]:   device_id: {AT}", "hardware", AT, None, None),
        ("DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0xfff", "iommu",
         "0000:3b:00.0", None, None),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x0 address=0x0]", "iommu",
         "0000:41:00.0", None, None),
        ("arm-smmu-v3 arm-smmu-v3.0.auto: event 0x10 received:", "iommu", None, None, None),
        ("Out of memory: Killed process 77 (python) total-vm:1kB", "out-of-memory", None, None,
         None),
        ("Memory cgroup out of memory: Killed process 77 (python)", "out-of-memory", None, None,
         None),
        ("NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x24:0x65:1417)", "driver", "0000:1b:00.0",
         None, None),
        ("nvidia-uvm: Loaded the UVM driver, major device number 508.", "driver", None, None, None),
        ("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout", "driver", None, None, None),
    ],
)  # fmt: skip
def test_lines_about_devices_and_memory_are_recognized(text, kind, pci, code, gravity):
    line = line_of(text)
    assert line == LogLine(1.5, text, kind, pci, 3, code, gravity)


@pytest.mark.parametrize(
    "text",
    [
        "EXT4-fs (vda): mounted filesystem", "usb 1-1: new high-speed USB device", "",
        "audit: type=1400 apparmor=DENIED name=/etc/nvidia", "IPv6: eth0: link becomes ready",
        "mce: CPU12: Package temperature above threshold, cpu clock throttled",
        "nvme 0000:05:00.0: I/O 7 QID 3 timeout", "systemd[1]: Started something for my amdgpus",
    ],
)  # fmt: skip
def test_others_are_left_out(text):
    assert line_of(text) is None


def test_what_a_machines_own_devices_and_drivers_say_is_kept():
    pci = (
        PciFunction(address=AT, class_code=0x120000, driver="acme"),
        PciFunction(address="0000:00:1c.0", class_code=0x060400, driver="shpchp"),
        PciFunction(address="0000:09:00.0", class_code=0x030000, driver="ast", display=True),
    )
    here = msgspec.structs.replace(
        machine([device(0, pci="0000:02:00.0")]), inventory=Inventory(pci=pci)
    )
    assert line_of(f"vfio-pci {AT}: reset recovery", here).kind == "driver"
    assert line_of("acme: firmware halted", here).kind == "driver"
    assert line_of("x 0000:02:00.0: known by its backend", here).pci == "0000:02:00.0"
    assert line_of("a message without a name", here, DEVICE=f"+pci:{AT}").pci == AT
    for other in ("acmes: x", "ast 0000:09:00.0: x", "shpchp: x"):
        assert line_of(other, here) is None


@given(st.text(max_size=3000))
def test_what_is_kept_can_be_shown_on_a_terminal(text):
    shown = line_of(f"NVRM: {text}").text
    assert shown.isprintable()
    assert len(shown) <= 1000
