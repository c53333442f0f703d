"""Reads huge pages, and the rate of the DIMMs from the firmware's tables (SMBIOS)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.model.hardware.gaps import NO_TABLE

from .tree import Root, parse_meminfo

HUGE_PAGES = "sys/kernel/mm/hugepages"
TABLE = "sys/firmware/dmi/tables/DMI"
ENTRIES = "sys/firmware/dmi/entries"
EDAC = "sys/devices/system/edac/mc"

# SMBIOS 3.7, 7.18.2: kinds of DRAM (SDRAM; DDR to FB-DIMM; DDR3 to LPDDR4; HBM to HBM3), not
# flash, and not the "RAM" of virtual machines. 7.18.6: DRAM, or a table too old to say.
_DRAM = {0x0F, *range(0x12, 0x15), *range(0x18, 0x1F), *range(0x20, 0x25)}
_STACKED = {0x20, 0x21, 0x24}
_VOLATILE = {0x00, 0x01, 0x02, 0x03}
# 7.18.1: row of chips, die, CAMM: soldered, or the only one on its channels.
_ALONE = {0x0B, 0x10, 0x11}
_MOST_BYTES = 1 << 20
# A letter before the number, other than the M of DIMM.
_LETTER = re.compile(r"(.*?)(?<!DIM)([A-Z])[0-9]{1,2}")


class Dimm(msgspec.Struct, frozen=True):
    """A memory module or an empty slot. Modules of a kit have equal `kit` (0: no kit), and `alone`
    modules share no channel. `width` is in data bits, `rate` in transfers/s. `stacked`: HBM."""

    locator: str
    bank: str
    kit: int
    alone: bool
    width: int | None
    rate: float | None
    stacked: bool = False
    is_filled: bool = True


def huge_pages(root: Root) -> dict[int, tuple[int, int]]:
    """Returns the total number of huge pages and the number of free ones, by page size in bytes."""
    found = pages_below(root, HUGE_PAGES)
    meminfo = parse_meminfo(root.text("proc/meminfo") or "")
    if not found and {"Hugepagesize", "HugePages_Total", "HugePages_Free"} <= meminfo.keys():
        counts = meminfo["HugePages_Total"], meminfo["HugePages_Free"]
        found[meminfo["Hugepagesize"]] = counts
    return dict(sorted(found.items()))


def pages_below(root: Root, pools: str) -> dict[int, tuple[int, int]]:
    found = {}
    for name in root.names(pools):
        size = re.fullmatch(r"hugepages-([0-9]{1,12})kB", name)
        total = root.number(f"{pools}/{name}/nr_hugepages")
        free = root.number(f"{pools}/{name}/free_hugepages")
        if size and total is not None and free is not None:
            found[int(size[1]) << 10] = (total, free)
    return dict(sorted(found.items()))


def memory_rate(root: Root, sockets: int | None) -> tuple[float | None, str | None]:
    """Returns the memory's peak rate in bytes/s (channels × data bits ÷ 8 × transfers/s). If the
    rate is None, also returns why it is unknown."""
    dimms = read_dimms(root)
    if not dimms:
        return None, _no_dimms(root)
    return rate_of(dimms, sockets, edac_channels(root))


def rate_of(
    dimms: tuple[Dimm, ...], sockets: int | None, channels: int | None = None
) -> tuple[float | None, str | None]:
    """Returns the peak rate of `channels` channels in bytes/s, or None and why it is unknown. If
    `channels` is None, the names of the slots tell how many have memory."""
    channels = channels or named_channels(dimms, sockets)
    widths = {dimm.width for dimm in dimms}
    rates = {dimm.rate for dimm in dimms}
    if None in widths | rates:
        return None, "the firmware's table does not give the speed and width of every DIMM"
    if channels is None:
        return None, (
            f"the firmware's table names {len(dimms)} DIMMs but not their channels: "
            "load the EDAC driver of this memory controller"
        )
    if len(widths) > 1:
        return None, "DIMMs of different widths share the channels"
    # Channels run at their slowest DIMM.
    slowest = min(rate for rate in rates if rate is not None)
    return channels * slowest * next(width for width in widths if width is not None) / 8, None


def _no_dimms(root: Root) -> str:
    tables = root.names(TABLE.rpartition("/")[0]) or root.names(ENTRIES)
    if not tables:
        return NO_TABLE
    if root.content(TABLE) is None and not _structures(root):
        return f"/{TABLE} is readable by root only: run as root"
    return "the firmware's table describes no DRAM (usual in virtual machines)"


def edac_channels(root: Root) -> int | None:
    """Returns the number of channels with memory; None if the EDAC driver shows none."""
    found = set()
    for controller in root.names(EDAC):
        for name in root.names(f"{EDAC}/{controller}"):
            if not re.fullmatch(r"(dimm|rank)[0-9]+", name):
                continue
            place = root.text(f"{EDAC}/{controller}/{name}/dimm_location") or ""
            size = root.number(f"{EDAC}/{controller}/{name}/size")
            channel = re.search(r"\bchannel ([0-9]+)", place)
            if channel and size:
                found.add((controller, channel[1]))
    return len(found) or None


def named_channels(dimms: tuple[Dimm, ...], sockets: int | None) -> int | None:
    """Counts channels with memory by slots' names (`P0 CHANNEL A`, `DIMM_B1`); None if unknown."""
    if len(dimms) == 1 or all(dimm.alone for dimm in dimms):
        return len(dimms)
    names = _channel_names(dimms, sockets)
    if names is not None:
        return len(set(names))
    letters = [_LETTER.fullmatch(dimm.locator.upper()) for dimm in dimms]
    if None in letters or sockets is None:
        return None
    # Letters name sockets (Dell): each DIMM is a channel if every socket's DIMMs are one kit.
    slots = {match.groups() for match in letters if match}
    kits = {(match[2], dimm.kit) for match, dimm in zip(letters, dimms, strict=True) if match}
    one_kit_each = len(kits) == len(slots) and all(kit for _, kit in kits)
    return len(dimms) if one_kit_each else None


def channels(root: Root, sockets: int | None) -> tuple[int | None, int | None]:
    """Returns the numbers of channels with and without a module; None if unknown, or for HBM."""
    filled, empty = channels_of(_slots(root), sockets)
    return (len(filled), len(empty)) if filled else (None, None)


def channels_of(slots: Sequence[Dimm], sockets: int | None) -> tuple[list[str], list[str]]:
    """Returns the names of channels with and without a module; none if unknown, or for HBM."""
    names = _channel_names(slots, sockets)
    if names is None or any(slot.stacked and slot.is_filled for slot in slots):
        return [], []
    filled = {name for name, slot in zip(names, slots, strict=True) if slot.is_filled}
    used, empty = list[str](), list[str]()
    for name in dict.fromkeys(names):
        (used if name in filled else empty).append("".join(name))
    return used, empty


def _channel_names(slots: Sequence[Dimm], sockets: int | None) -> list[tuple[str, ...]] | None:
    spelled = [name for slot in slots if (name := _spelled_channel(slot)) is not None]
    if len(spelled) == len(slots):
        return list(spelled)
    letters = [_LETTER.fullmatch(slot.locator.upper()) for slot in slots]
    names = [match.groups() for match in letters if match]
    if len(names) < len(slots) or sockets is None or len({n for _, n in names}) <= sockets:
        return None
    return names


def _spelled_channel(dimm: Dimm) -> tuple[str] | None:
    for place in (dimm.bank, dimm.locator):
        match = re.search(r".*CHANNEL[ _]*(?:[A-Z](?![A-Z])|[0-9]+)", place.upper())
        if match:
            return (match[0],)
    return None


def read_dimms(root: Root) -> tuple[Dimm, ...]:
    return tuple(slot for slot in _slots(root) if slot.is_filled)


def _slots(root: Root) -> list[Dimm]:
    return [_slot(structure) for structure in _structures(root)]


def is_all_stacked(root: Root) -> bool:
    dimms = read_dimms(root)
    return bool(dimms) and all(dimm.stacked for dimm in dimms)


def _structures(root: Root) -> tuple[bytes, ...]:
    table = root.content(TABLE)
    if table is not None:
        return tuple(one for one in split_table(table[:_MOST_BYTES]) if one[0] == 17)
    names = sorted(name for name in root.names(ENTRIES) if name.startswith("17-"))
    entries = (root.content(f"{ENTRIES}/{name}/raw") for name in names)
    return tuple(entry for entry in entries if entry and entry[0] == 17)


def split_table(table: bytes) -> Iterator[bytes]:
    at = 0
    while at + 4 <= len(table) and table[at + 1] >= 4:
        end = table.find(b"\0\0", at + table[at + 1])
        end = len(table) if end < 0 else end + 2
        yield table[at:end]
        at = end


def _slot(structure: bytes) -> Dimm:
    length = structure[1] if len(structure) > 1 else 0
    body = structure[:length]

    def field(offset: int, size: int) -> int:
        return int.from_bytes(body[offset : offset + size], "little")

    is_dram = field(0x12, 1) in _DRAM and field(0x28, 1) in _VOLATILE
    speeds = (field(0x20, 2), field(0x58, 4)), (field(0x15, 2), field(0x54, 4))
    rate = next((known for pair in speeds if (known := _speed(*pair))), None)
    width = field(0x0A, 2)
    return Dimm(
        locator=_string(structure, length, field(0x10, 1)),
        bank=_string(structure, length, field(0x11, 1)),
        # 0xFF means unknown.
        kit=field(0x0F, 1) % 0xFF,
        alone=field(0x0E, 1) in _ALONE,
        width=None if width in (0, 0xFFFF) else width,
        rate=rate,
        stacked=field(0x12, 1) in _STACKED,
        is_filled=is_dram and field(0x0C, 2) != 0,
    )


def _speed(megatransfers: int, extended: int) -> float | None:
    """Returns transfers/s; None if unknown. `extended` counts if the first field is 0xFFFF."""
    known = extended & 0x7FFFFFFF if megatransfers == 0xFFFF else megatransfers
    return known * 1e6 or None


def _string(structure: bytes, length: int, index: int) -> str:
    strings = structure[length:].split(b"\0")
    return strings[index - 1].decode("latin-1").strip() if 0 < index <= len(strings) else ""
