"""Names come from the PCI ID database."""

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.pci_names import find_names, read_names
from linkgauge.machine.tree import Captured

TEXT = """#
# List of PCI ID's

1000  Broadcom / LSI
\tc010  PEX890xx PCIe Gen 5 Switch
\t\t1000 a064  A board
\t1250  Not of this vendor
1eff  Rebellions Inc.
\t1250  RBLN-CA25
\t\t1eff 0001  A board
C 03  Display controller
\t00  VGA compatible controller
"""


def test_vendors_and_devices_have_names():
    assert find_names(TEXT, [(0x1000, 0xC010), (0x1EFF, 0x1250)]) == {
        (0x1000, 0xC010): "Broadcom / LSI PEX890xx PCIe Gen 5 Switch",
        (0x1EFF, 0x1250): "Rebellions Inc. RBLN-CA25",
    }


def test_an_unknown_device_has_its_number_and_an_unknown_vendor_nothing():
    wanted = [(0x1EFF, 0xC010), (0x10DE, 0x2335), (0xC, 0x0), (0x1000, 0xA064)]
    assert find_names(TEXT, wanted) == {
        (0x1EFF, 0xC010): "Rebellions Inc. Device c010",
        (0x1000, 0xA064): "Broadcom / LSI Device a064",
    }


def test_the_first_database_there_is_counts():
    place = "usr/share/misc/pci.ids"
    assert read_names(Captured({place: TEXT.encode()}), [(0x1EFF, 0x1250)]) == {
        (0x1EFF, 0x1250): "Rebellions Inc. RBLN-CA25"
    }
    assert read_names(Captured({}), [(0x1EFF, 0x1250)]) is None


@given(st.text(st.sampled_from("0123\t C#x\n"), max_size=200))
def test_garbled_databases_never_raise(text):
    names = find_names(text, [(0x0000, 0x0001), (0x0123, 0x0123)])
    assert set(names) <= {(0x0000, 0x0001), (0x0123, 0x0123)}
