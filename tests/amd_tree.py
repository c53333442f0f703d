"""Two AMD GPUs as their driver shows them, written down from the kernel's documentation and from
listings of MI300X servers that others published: no tree of a real machine is at hand."""

from __future__ import annotations

import struct

DEVICES = "sys/bus/pci/devices"
NODES = "sys/class/kfd/kfd/topology/nodes"
ADDRESSES = ("0000:05:00.0", "0000:26:00.0")


def metrics_1_3(clock=1700, power=300, throttled=0, width=16, speed=160):
    """gpu_metrics of MI200."""
    words = [40, 55, 50, 45, 45, 45, 90, 10, 0, power]
    clocks = [clock - 100, 1000, 1600, 0, 0, 0, 0, clock, 1000, 1600, 0, 0, 0, 0]
    return (
        struct.pack("<HBB", 120, 1, 3)
        + struct.pack("<10H2Q14H", *words, 1, 2, *clocks)
        + struct.pack("<I4H2I4H", 0, 0, width, speed, 0, 0, 0, 50, 50, 50, 50)
        + struct.pack("<Q4HQ", 0, 800, 800, 0xFFFF, 0, throttled)
    )


def metrics_1_4(power=750, width=16, speed=320):
    """gpu_metrics of MI300, to where versions of the family part."""
    return (
        struct.pack("<HBB", 212, 1, 4)
        + struct.pack(
            "<10H2Q2I4H", 61, 48, 50, power, 99, 20, 0, 0, 0, 0, 1, 2, 0, 0, width, speed, 16, 32
        )
        + bytes(148)
    )


def gpu(address, **changes):
    """The files of one GPU; None takes one away."""
    files = {
        "vendor": "0x1002\n",
        "device": "0x74a1\n",
        "class": "0x120000\n",
        "numa_node": "1\n",
        "current_link_speed": "32.0 GT/s PCIe\n",
        "current_link_width": "16\n",
        "max_link_speed": "32.0 GT/s PCIe\n",
        "max_link_width": "16\n",
        "pp_dpm_sclk": "0: 500Mhz\n1: 1204Mhz *\n2: 2100Mhz\n",
        "pp_dpm_mclk": "0: 900Mhz\n1: 1100Mhz\n2: 1300Mhz *\n",
        "vbios_version": "113-M3000100-102\n",
        "product_number": "102-G30211-0C\n",
        "unique_id": "a1b2c3d4e5f60718\n",
        "pcie_replay_count": "3\n",
        "mem_info_vram_total": "206141652992\n",
        "ras/umc_err_count": "ue: 2\nce: 17\nde: 0\n",
        "hwmon/hwmon7/power1_average": "158000000\n",
        "hwmon/hwmon7/power1_cap": "750000000\n",
        "hwmon/hwmon7/temp1_input": "38000\n",
        "hwmon/hwmon7/temp2_input": "47000\n",
        "gpu_metrics": metrics_1_4(),
    } | changes
    return {f"{DEVICES}/{address}/{name}": text for name, text in files.items() if text is not None}


def node(number, location, links=(), version=90402):
    """A node of the compute driver's topology: a GPU's, and its links (number of the other node,
    type, MB/s)."""
    where = f"{NODES}/{number}"
    files = {
        f"{where}/properties": (
            f"cpu_cores_count 0\nsimd_count 1216\nmem_banks_count 1\nvendor_id 4098\n"
            f"gfx_target_version {version}\nlocation_id {location}\ndomain 0\n"
            "hive_id 12345678901234567890\n"
        ),
        f"{where}/mem_banks/0/properties": (
            "heap_type 1\nsize_in_bytes 206141652992\nflags 0\nwidth 8192\nmem_clk_max 1300\n"
        ),
    }
    for index, (other, kind, rate) in enumerate(links):
        files[f"{where}/io_links/{index}/properties"] = (
            f"type {kind}\nversion_major 0\nnode_from {number}\nnode_to {other}\nweight 15\n"
            f"min_bandwidth {rate}\nmax_bandwidth {rate}\nflags 1\n"
        )
    return files


def topology():
    """A CPU's node, and two GPUs that one link of XGMI joins."""
    return {
        f"{NODES}/0/properties": "cpu_cores_count 96\nsimd_count 0\nlocation_id 0\n",
        **node(1, 0x0500, [(0, 2, 64000), (2, 11, 64000)]),
        **node(2, 0x2600, [(0, 2, 64000), (1, 11, 64000)]),
    }


def tree():
    """The files of both."""
    return {**gpu(ADDRESSES[0]), **gpu(ADDRESSES[1]), **topology(),
            "sys/module/amdgpu/version": "6.12.12\n"}  # fmt: skip
