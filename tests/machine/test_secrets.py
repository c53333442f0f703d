"""What no captured tree holds: passwords, and what readers do not need."""

import pytest

from linkgauge.machine.captures.capture import capture
from linkgauge.machine.tree import Captured
from machine_kit import DMI, dimm, host_of, seen, table

REMOVED = "(removed)"


def without_secrets(path, content):
    """What a captured tree holds of a file."""
    tree = Captured({path: content})
    return capture(tree, seen(tree)).files[path]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("ro iommu.passthrough=1 iommu=pt", "ro iommu.passthrough=1 iommu=pt"),
        ("rd.luks.key=/a:b ro", f"rd.luks.key={REMOVED} ro"),
        ("rootpassword=x", f"rootpassword={REMOVED}"),
        ('x.SECRET="a b" ro', f"x.SECRET={REMOVED} ro"),
        ("systemd.setenv=API_TOKEN=abc", f"systemd.setenv={REMOVED}"),
        ("systemd.set_credential=wg:abc", f"systemd.set_credential={REMOVED}"),
        ("url=http://me:pw@host/x", f"url=http://{REMOVED}@host/x"),
        ("inst.proxy=http://me:p@ss@proxy:3128", f"inst.proxy=http://{REMOVED}@proxy:3128"),
        ("netroot=iscsi:me:p/w:you:p@w@10.0.0.1::3260:1:iqn.2009-02.com.example:t",
         f"netroot=iscsi:{REMOVED}@10.0.0.1::3260:1:iqn.2009-02.com.example:t"),
        ("netroot=iscsi:@10.0.0.1::::t", "netroot=iscsi:@10.0.0.1::::t"),
        ("rootpw=x psk=x wpa_psk=x", f"rootpw={REMOVED} psk={REMOVED} wpa_psk={REMOVED}"),
        ("wifi.pwd=x auth=x", f"wifi.pwd={REMOVED} auth={REMOVED}"),
        ("usbcore.authorized_default=1 author=me --auth-required", None),
        ("arm-smmu.disable_bypass=0 pwm.polarity=1 url=http://host/a@b", None),
    ],
)  # fmt: skip
def test_a_command_line_keeps_no_secrets(text, kept):
    assert without_secrets("proc/cmdline", text.encode()).decode() == (
        text if kept is None else kept
    )


def test_files_keep_only_what_readers_need():
    kept = {
        "proc/1/environ": (b"PASSWORD=x\0container=podman\0", b"container=podman\0"),
        "proc/self/mounts": (
            b"overlay / overlay rw\n//nas/me /mnt cifs rw\nnone /cgroup cgroup2 rw\n",
            b"overlay / overlay rw\nnone /cgroup cgroup2 rw\n"),
        "proc/mounts": (
            b"//nas/root / cifs rw,username=me,password=x,uid=0 0 0\n",
            b"//nas/root / cifs rw,username=(removed),password=(removed),uid=0 0 0\n"),
        "proc/self/status": (b"Name:\tpython\nCpus_allowed_list:\t0-1\n",
                             b"Cpus_allowed_list:\t0-1\n"),
        "linkgauge/tools/nvidia-smi_-q.txt": (
            b"  Product Name : H200\n   Name    : python train.py --token x\n",
            b"  Product Name : H200\n   Name    : (removed)\n"),
    }  # fmt: skip
    for path, (content, wanted) in kept.items():
        assert without_secrets(path, content) == wanted


def test_of_smbios_only_dimms_are_kept():
    whole = table(dimm("DIMM_A1"), b"\x0b\x05\0\0\x01io.systemd.credential:x=y\0\0")
    kept = without_secrets(DMI, whole)
    assert b"credential" not in kept
    assert b"Vendor" not in kept
    assert host_of(Captured({DMI: kept})).memory_rate == host_of(Captured({DMI: whole})).memory_rate
