"""The rate of host memory is that of the channels which the firmware or EDAC tells of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machine_kit import DMI, captured, dimm, host_of, processors, reason, subjects, table


def rate(*dimms, sockets=1):
    files = processors(sockets=sockets, cores=1, threads=1) | {DMI: table(*dimms)}
    details = host_of(captured(files))
    assert (details.memory_rate is None) is ("DIMM rate" in subjects(details))
    return details.memory_rate


def test_the_rate_is_channels_times_width_times_transfers():
    named = [dimm("DIMM 0", bank=f"P{p} CHANNEL {c}") for p in (0, 1) for c in "ABCDEFGHIJKL"]
    assert rate(*named, sockets=2) == 24 * 8 * 4800e6
    assert rate(*[dimm(f"Controller0-Channel{c}-DIMM0") for c in "AB"]) == 2 * 8 * 4800e6


def test_a_letter_is_a_channel_where_there_are_more_of_them_than_sockets():
    slots = [dimm(f"P{p}-DIMM{c}{n}") for p in (1, 2) for c in "ABCDEFGH" for n in (1, 2)]
    assert rate(*slots, sockets=2) == 16 * 8 * 4800e6
    assert rate(dimm("DIMM_A2"), dimm("DIMM_B2")) == 2 * 8 * 4800e6


def test_a_letter_for_each_socket_tells_channels_only_by_kits():
    first = [dimm(f"{letter}{n}", kit=1 + (letter == "B")) for letter in "AB" for n in range(1, 9)]
    assert rate(*first, sockets=2) == 16 * 8 * 4800e6
    both = [*first, *(dimm(f"{letter}9", kit=3) for letter in "AB")]
    assert rate(*both, sockets=2) is None
    assert rate(*[dimm(f"{letter}1") for letter in "AABB"], sockets=2) is None


def test_names_that_tell_no_channels_are_not_guessed():
    assert rate(dimm("PROC 1 DIMM 1"), dimm("PROC 1 DIMM 2")) is None
    assert rate(dimm("DIMM1", kit=1), dimm("DIMM2", kit=1)) is None
    assert rate(dimm("PROC 1 DIMM 1")) == 8 * 4800e6


def test_edac_counts_channels_that_the_firmware_does_not_name():
    place = "sys/devices/system/edac/mc/mc{}/dimm{}/{}"
    files = {DMI: table(dimm("PROC 1 DIMM 1"), dimm("PROC 1 DIMM 2"), dimm("PROC 1 DIMM 3"))}
    for controller, number, channel, size in (
        (0, 0, 0, 64),
        (0, 1, 0, 64),
        (1, 0, 0, 64),
        (1, 1, 1, 0),
    ):
        files[place.format(controller, number, "dimm_location")] = f"channel {channel} slot 0 \n"
        files[place.format(controller, number, "size")] = f"{size}\n"
    assert host_of(captured(files)).memory_rate == 2 * 8 * 4800e6


def test_soldered_memory_shares_no_channel():
    chips = [dimm(f"U{n}", form=0x0B, kind=0x23, width=32, speed=8533) for n in range(16)]
    assert rate(*chips) == 16 * 4 * 8533e6


@pytest.mark.parametrize(
    "device",
    [
        dimm(size=0),
        dimm(kind=0x09),  # Flash.
        dimm(kind=0x07),  # The RAM of a virtual machine.
        dimm(technology=7),  # Persistent memory.
    ],
)
def test_what_is_no_dram_in_place_does_not_count(device):
    assert rate(device) is None
    assert rate(device, dimm("ChannelA-DIMM0")) == 8 * 4800e6


def test_speeds_of_old_and_of_new_tables_are_found():
    assert rate(dimm(length=0x20)) == 8 * 5600e6
    assert rate(dimm(speed=70000)) == 8 * 70000e6
    assert rate(dimm(width=0xFFFF)) is None


def test_entries_are_read_where_the_table_is_not_shown():
    entries = {f"sys/firmware/dmi/entries/17-{n}/raw": dimm(f"ChannelA-DIMM{n}") for n in range(2)}
    assert host_of(captured(entries)).memory_rate == 8 * 4800e6


def test_a_table_for_root_alone_says_so():
    files = {"sys/firmware/dmi/entries/17-0/handle": "1\n"}
    assert "run as root" in reason(host_of(captured(files)), "DIMM rate")


@given(st.binary(max_size=200), st.integers(0, 400))
def test_garbled_and_truncated_tables_never_raise(noise, cut):
    whole = table(dimm("ChannelA-DIMM0"), dimm("ChannelB-DIMM0"))
    for content in (noise, whole[:cut] + noise, dimm()[: cut % 100]):
        files = {DMI: content, "sys/firmware/dmi/entries/17-0/raw": content}
        for one in files:
            found = host_of(captured({one: files[one]})).memory_rate
            assert found is None or found > 0


def channels(*slots, sockets=1):
    files = processors(sockets=sockets, cores=1, threads=1) | {DMI: table(*slots)}
    details = host_of(captured(files))
    return details.memory_channels, details.memory_channels_empty


def test_channels_whose_slots_are_all_empty_are_counted():
    two = [dimm(f"DIMM_{c}{n}", size=0x4000 if c in "AB" and n == 1 else 0)
           for c in "ABCD" for n in (1, 2)]  # fmt: skip
    assert channels(*two) == (2, 2)
    assert channels(*[dimm(f"DIMM_{c}1") for c in "AB"]) == (2, 0)
    spelled = [
        dimm("DIMM 0", bank=f"P0 CHANNEL {c}", size=0 if c == "C" else 0x4000) for c in "ABC"
    ]
    assert channels(*spelled) == (2, 1)


def test_channels_are_not_guessed_of_slots_without_names():
    assert channels(dimm("PROC 1 DIMM 1"), dimm("PROC 1 DIMM 2", size=0)) == (None, None)
    assert channels() == (None, None)
