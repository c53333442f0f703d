"""The catalogue of checks. Ids never change, because waivers and tickets name them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import yaml

from linkgauge.judge.curve_shape import PLATEAU
from linkgauge.judge.findings import Severity
from linkgauge.judge.peers import LOW, PERHAPS

from .host_setup import LITTLE_LOCKED
from .links import LEAST_READ_REQUEST

NOTHING = "nothing"
"""The unit of checks that a waiver cannot cover."""
SCHEMA: Literal["linkgauge.checks/1"] = "linkgauge.checks/1"


class CheckEntry(msgspec.Struct, frozen=True):
    """A check of the catalogue.

    id: The name of the check, which does not change between versions.
    of: `doctor` for a finding, `check` for a reason why a node is not healthy.
    severity: The severities that its findings can have.
    reads: The data that the check reads.
    limit: The condition under which the check reports a finding.
    why: Why the finding matters.
    action: What to do about the finding.
    unit: The unit of the value that a waiver accepts; empty if a waiver accepts a severity."""

    id: str
    of: Literal["doctor", "check"]
    severity: tuple[Severity, ...]
    reads: str
    limit: str
    why: str
    action: str
    unit: str = ""


class Counterpart(msgspec.Struct, frozen=True):
    """A test of another tool, and the checks that correspond to it.

    tool: The tool and where its tests are listed.
    test: The name of the test there.
    checks: The ids of the checks that find the same problem; empty if there are none.
    note: How test and checks differ, or why no check corresponds to the test."""

    tool: str
    test: str
    checks: tuple[str, ...] = ()
    note: str = ""


class Catalogue(msgspec.Struct, frozen=True):
    """The catalogue of checks.

    schema: The name and version of this document's format.
    checks: The checks, grouped by subject.
    counterparts: Tests of other tools, with the checks that find the same problems."""

    checks: tuple[CheckEntry, ...]
    counterparts: tuple[Counterpart, ...] = ()
    schema: Literal["linkgauge.checks/1"] = SCHEMA


_PART = "the link reaches only this part of its rate"
_ROWS: tuple[tuple[str, ...], ...] = (
    # PCI Express
    ("silent", "fail", "PCI configuration space", "all registers read as ones",
     "the function fell off the bus or lost its power", "power off and on; reseat"),
    ("gone", "fail", "the vendor's library beside PCI", "the library lists it, PCI does not",
     "the device fell off the bus while its driver was loaded", "power off and on"),
    ("switch", "fail warn", "links of switches and bridges", "each link is slow, lost or faulty",
     "a fault in the shared part is likelier than one in each link", "firmware; reseat it"),
    ("link-speed", "fail warn note unknown", "link status, under load where known",
     "below what both ends support", _PART, "retrain by setpci; a run if it is idle", "GT/s"),
    ("link-width", "fail warn unknown", "link status", "fewer lanes than both ends have", _PART,
     "reseat; another slot; bifurcation", "lanes"),
    ("bridge", "warn note", "link capabilities of bridges above a device", "less than the device's",
     "the device cannot be faster than that", "another slot"),
    ("target-speed", "fail note", "Link Control 2 of the port above", "below what both ends can",
     "the link trains to no more than that", "retrain by setpci"),
    ("payload", "fail warn unknown", "MaxPayload of both ends", "the ends differ",
     "the other end rejects longer packets", "boot with pci=pcie_bus_safe"),
    ("read-request", "warn", "MaxReadReq", f"below {LEAST_READ_REQUEST} bytes",
     "small requests keep reads below the link's rate", "setpci"),
    ("relaxed-ordering", "warn", "Device Control of accelerators", "off",
     "writes wait for each other", "setpci; the firmware's setup"),
    ("aspm", "warn note", "Link Control and the kernel's policy", "a state of rest is allowed",
     "a link that rests wakes up before each transfer", "the policy performance"),
    ("bar1", "warn note", "the window to a device's memory", "smaller than the memory",
     "others reach the memory through it", "Above 4G Decoding, Resizable BAR"),
    ("acs", "warn", "ACS of ports between two devices", "redirection is on",
     "copies between devices go up to the root complex", "setpci, unless VMs use the devices"),
    ("link-errors", "fail warn", "AER and replay counters, and copies over the link",
     "they rose during the run; a failure if uncorrectable, or if all copies are 3 % behind peers",
     "broken packets are sent again", "reseat; cables"),
    ("kernel-reads", "note", "reads of host memory by kernels and engines", "below 0.8 of engines'",
     "reads in flight bound kernels, not the link", "use copy engines"),
    ("both-ways", "note", "reads while the device writes", "below 0.6 of reads alone",
     "the root complex orders answers behind writes", "the firmware's setup"),
    # Links between accelerators
    ("fabric-links", "fail note", "the state of each link", "inactive, and not so by design",
     "copies have only the others", "the fabric manager; nvidia-smi nvlink -s", "links"),
    ("fabric-errors", "warn", "error counters of links", "they rose during the run",
     "what arrives broken is sent again", "reseat; the vendor's tool"),
    ("fabric-state", "fail warn", "state, status, cluster and clique of the fabric",
     "not completed; no domain; no partition", "memory of others is out of reach",
     "the fabric manager; the partition"),
    ("peer-access", "fail note", "cells refused for want of peer access", "any",
     "copies go through host memory, or not at all", "peer cliques; ACS; the vendor's tool"),
    ("imex", "fail", "cells refused for want of an IMEX channel", "any",
     "memory of other nodes is out of reach", "nvidia-imex"),
    ("in-switch", "warn note", "an all_reduce over NVSwitches", "as fast as rings are",
     "switches that reduce are faster", "NCCL_NVLS_ENABLE; NCCL_DEBUG=INFO"),
    ("copy-engines", "note", "copies within a device", "below 0.8 of the share of kernels",
     "how fast an engine is there is not published", "use kernels"),
    ("not-separate", "unknown", "links that only collectives crossed", "no copy crossed them",
     "a slow one may not show", "measure copies between the devices"),
    # Accelerators
    ("clocks", "warn", "reasons for low clocks", "heat, or a slowdown by the hardware",
     "kernels are slower", "power supply; cooling"),
    ("capped-clock", "warn note", "reasons for low clocks", "a limit such as the power cap",
     "kernels are slower", "power limit; cooling"),
    ("locked-clock", "warn", "the locked clock", "below the highest", "kernels are slower",
     "nvidia-smi -rgc", "MHz"),
    ("power-limit", "warn", "the limit of power", "below the default, or below others'",
     "clocks fall under load", "nvidia-smi -pl", "W"),
    ("ecc", "fail warn", "errors that ECC could not correct", "any", "memory returns wrong bytes",
     "replace the card if they recur", "errors"),
    ("ecc-off", "warn", "the mode of ECC", "off on a model of data centres",
     "bits that flip stay undetected", "nvidia-smi -e 1, reset"),
    ("row-remap", "fail", "rows that wait to be remapped", "any", "broken rows are in use",
     "reset the device"),
    ("persistence", "note", "persistence mode", "off", "the driver is loaded for each program",
     "nvidia-smi -pm 1"),
    ("compute-mode", "fail warn", "compute mode", "exclusive or prohibited",
     "a second process cannot open the device", "nvidia-smi -c DEFAULT"),
    ("processes", "warn note", "other processes on the device", "seen at work",
     "they share its links and engines", "stop them"),
    ("mig", "note", "partitions", "any", "a part of the bandwidth, no peers", "nvidia-smi -mig 0"),
    ("runtime", "fail", "torch's kernels for the device", "none, or a ROCm that is too old",
     "kernels fail", "another wheel of torch"),
    ("answer", "warn", "answers of backends", "none in time", "the device is not judged",
     "linkgauge devices --backend NAME"),
    ("driver", "fail", "versions of driver and library", "they differ, or the driver is too old",
     "calls fail", "reboot, or update it"),
    # Host and network
    ("iommu", "warn unknown", "the kernel's IOMMU groups", "it translates",
     "each transfer looks addresses up", "iommu=pt"),
    ("channels", "warn", "slots of memory modules", "a channel is empty",
     "memory carries only what other channels do", "fit modules of the same kind"),
    ("governor", "warn unknown", "the CPU frequency governor", "powersave, ondemand …",
     "threads start slow", "cpupower frequency-set -g performance"),
    ("transparent-huge-pages", "warn", "the kernel's setting", "never", "copies miss the TLB",
     "the sysfs file"),
    ("huge-pages", "note", "reserved pages of 2 MiB", "none", "host:N/huge needs transparent ones",
     "the sysfs file"),
    ("memlock", "warn note", "the limit of locked memory", f"below {LITTLE_LOCKED >> 30} GiB",
     "buffers may move while they are measured", "ulimit -l unlimited"),
    ("smt", "warn note", "all threads beside one a core", "below 0.9 of that",
     "threads of a core share what moves bytes", "one thread a core"),
    ("near-node", "warn", "the NUMA node of devices", "unknown, or without memory",
     "buffers lie far away", "--numa-node; sysfs's numa_node"),
    ("allowed", "fail", "the cpuset of this process", "the near node is not in it",
     "threads and buffers are remote", "numactl; the cpuset"),
    ("busy", "warn note", "CPU time of others", "a tenth of the CPUs",
     "they take CPUs, bandwidth and cache", "stop them, run again"),
    ("steal", "warn note", "CPU time that the hypervisor took", "any during the run",
     "threads stand still", "vcpupin on the host"),
    ("guest-copies", "warn", "copies of a guest with host memory", "all at 0.3 to 0.7",
     "the guest is placed badly, no card is slow", "linkgauge vm on the host"),
    ("far-adapter", "warn note", "NUMA nodes of adapters", "none at the accelerator's",
     "traffic crosses the link between nodes", "another slot"),
    ("adapter-slot", "warn", "what a slot carries beside its ports", "less than the ports need",
     "ports reach a part of their rate", "a wider slot"),
    ("mtu", "warn", "packets of RDMA ports", "below 4200 bytes", "RDMA sends small packets",
     "ip link set mtu, also at the switch"),
    ("gpudirect", "warn", "modules of NVIDIA's driver", "no nvidia_peermem, no DMA-BUF",
     "adapters go through host memory", "modprobe nvidia-peermem"),
    ("network", "fail warn note", "counters of adapters, interfaces, queues and TCP",
     "one rose while a cell used it; a warning if it explains low figures",
     "packets are lost, sent again or held back", "as the counter says (docs/network-counters.md)"),
    ("tcp-limit", "warn note", "TCP_INFO of the connections of a cell",
     "a window, the send buffer or long round trips held it back, or long segments are lost",
     "each connection carries less than the link", "sysctl of the window that it names"),
    ("mtu-ends", "warn", "the two interfaces that a cell joins",
     "different MTUs, versions of RoCE or traffic classes",
     "longer packets are dropped, or sent shorter", "ip link set mtu, at both ends and the switch"),
    ("interface", "warn", "rates, FEC, rings, queues, interrupts and offloads",
     "a setting slows an interface of 10 Gb/s or more", "the CPU or the link then limits it",
     "ethtool, as the finding says"),
    ("uncrossed", "unknown", "links of a network", "no cell crossed them",
     "nothing is known of them", "rails_crossing"),
    ("kernel-log", "fail warn note unknown", "Xid, SXid, AER, EDAC, OOM … in the kernel's log",
     "any; by NVIDIA's catalog of Xids", "the driver may have named what figures show",
     "as the message says"),
    # Results
    ("wrong-bytes", "fail", "a comparison of every byte copied", "one byte is wrong",
     "programs compute wrong results", "take the part out of service if it recurs", NOTHING),
    ("hang", "fail", "the time of each cell", "its deadline passed",
     "programs that wait are blocked", "reset the device", NOTHING),
    ("crash", "fail", "the process that measures", "it died", "a driver or a library failed",
     "the kernel's log; coredumpctl", NOTHING),
    ("lost", "fail", "errors of calls", "the device is gone", "nothing reaches it until a reset",
     "power off and on; its seat", NOTHING),
    ("out-of-memory", "fail", "allocations", "failed though enough seemed free",
     "another process uses it", "ulimit; a smaller --size", NOTHING),
    ("slow", "fail warn", "figures of all cells of a part",
     (f"{PERHAPS:.0%} below peers, {LOW:.0%} "
     "or more below what is expected"), "what touches the part is slower",
     "the cause that it names", "%"),
    ("drift", "fail warn", "figures by the order of cells", "they fall", "the part gets slower",
     "cooling"),
    ("stall", "warn note", "the slowest samples of a part", "they stand out",
     "programs wait for the slowest", "the kernel's log; what runs beside"),
    ("scatter", "warn note unknown", "how samples of a part vary", "more than those of its peers",
     "nothing can rely on its figures", "what runs beside"),
    ("modes", "note", "samples of a cell", "they fall into two groups", "the median is one of two",
     "more samples"),
    ("unjudged", "unknown", "parts that no figure would show", "no peer, no reference",
     "a slow one would not show", "a baseline"),
    ("directions", "note", "pairs both ways", "one way below 90 % of the other",
     "the pair is not symmetric", "look at the link"),
    ("classes", "note", "pairs of devices", "two tight levels", "pairs have several links",
     "none: it is the topology"),
    ("plateau", "note", "curves over settings", f"they settle below {PLATEAU:.0%} of their peak",
     "the peak is not the sustained figure", "larger sizes"),
    ("waiver", "note", "waivers", "one ended, is exceeded, or covers nothing",
     "what it was to accept counts", "renew it or take it out", NOTHING),
    ("knee", "note", "curves over settings", "they stop growing", "something else is the limit",
     "none"),
)  # fmt: skip
_REASONS: tuple[tuple[str, ...], ...] = (
    ("Hung", "the time of each cell", "a cell never ended", "reset the device"),
    ("DeviceMissing", "accelerators that are there", "fewer than --devices", "the kernel's log"),
    ("MeasurementFailed", "errors of cells", "any", "the kernel's log"),
    ("WrongBytes", "a comparison of every byte copied", "one byte is wrong", "as wrong-bytes"),
    ("BelowLimit", "figures and --limits", "a limit is missed", "the limit that it names"),
    ("FaultFound", "the doctor's findings", "one is a failure", "as the finding says"),
    ("SlowTransfer", "figures, what is expected, their peers", "a cell is low", "linkgauge run"),
    ("Regression", "figures and --baseline", "a cell lost more than chance", "linkgauge gate"),
    ("UnlikeBaseline", "machine and settings", "they differ from the baseline's", "a new baseline"),
    ("Busy", "other processes on the devices", "they slow what is low", "stop them"),
    ("NotMeasured", "cells measured in time", "some are missing", "a longer --under"),
    ("NothingMeasured", "cells measured in time", "none", "linkgauge devices"),
    ("CheckFailed", "the check itself", "it ended with an error", "the error that it names"),
)
_COUNTERPARTS = Path(__file__).with_name("counterparts.yml")


def checks() -> tuple[CheckEntry, ...]:
    """Returns the checks of `doctor`, and the reasons for which `check` calls a node unhealthy."""
    return (
        *(_entry(*row) for row in _ROWS),
        *(CheckEntry(name, "check", ("fail",), reads, limit, "the node is not fit for work", action)
          for name, reads, limit, action in _REASONS),
    )  # fmt: skip


def _entry(
    id: str, severity: str, reads: str, limit: str, why: str, action: str, unit: str = ""
) -> CheckEntry:
    severities = msgspec.convert(severity.split(), tuple[Severity, ...])
    return CheckEntry(id, "doctor", severities, reads, limit, why, action, unit)


def catalogue() -> Catalogue:
    tools = yaml.safe_load(_COUNTERPARTS.read_text("utf-8"))
    found = (
        Counterpart(tool, test, tuple((of or {}).get("checks", ())), (of or {}).get("note", ""))
        for tool, tests in tools.items()
        for test, of in tests.items()
    )
    return Catalogue(checks(), tuple(found))
