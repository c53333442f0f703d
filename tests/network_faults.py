"""Faults of networks that linkgauge names, between two hosts of net_kit. Each run is a fork of
one process that has loaded linkgauge, because an emulated machine takes a minute for that.

    python network_faults.py RANK FOLDER SWITCH HOST0 HOST1 FAULT ..."""

import contextlib
import os
import pkgutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

CELL = os.environ.get("LINKGAUGE_FAULT_CELL", "host:0@0 -> host:0@1 by nic:1.tcp")
SIZE, COUNTS = os.environ.get("LINKGAUGE_FAULT_SIZE", "16M"), ("--samples", "4", "--loops", "1")
RARE = os.environ.get("LINKGAUGE_FAULT_RARE", "64M")
"""What is copied where few packets are lost, so that some are."""
FLOWS = 4 << 20
"""The bytes after which data flows."""
SETTLES = 1.0
"""Seconds in which a link that came up again is ready."""


def netem(*how):
    """At the switch's port to host 1, where each segment is a packet of its own."""
    return [("tc", "-n", "SWITCH", "qdisc", "replace", "dev", "p1", "root", "netem", *how,
             "limit", "100000")]  # fmt: skip


def at_device(*how):
    return [("tc", "qdisc", "replace", "dev", "HOST0", "root", *how)]


def in_host(host, *words):
    return ("ip", "netns", "exec", host, *words)


LONG = [
    ("ip", "-n", where, "link", "set", name, "mtu", "9000")
    for where, name in (("HOST0", "eth0"), ("HOST1", "eth0"), ("SWITCH", "p0"))
]
"""Both hosts send long packets, and the port of the switch to host 1 takes only short ones."""
FAULTS = {
    "healthy": [],
    "loss of 1 %": netem("loss", "1%"),
    "loss of 0.01 %": netem("loss", "0.01%"),
    "reorder": netem("delay", "4ms", "reorder", "90%", "25%"),
    "delay": netem("delay", "5ms"),
    "rate": [("tc", "-n", "HOST0", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate",
              os.environ.get("LINKGAUGE_FAULT_RATE", "60mbit"), "burst", "32k",
              "latency", "400ms")],
    "duplicate": netem("duplicate", "1%"),
    "flap of 2 s": [("FLAP",)],
    "mtu": [
        ("ip", "-n", "HOST0", "link", "set", "eth0", "mtu", "9000"),
        ("ip", "-n", "SWITCH", "link", "set", "p0", "mtu", "9000"),
    ],
    "mtu of the switch": [
        *LONG, in_host("HOST0", "sysctl", "-qw", "net.ipv4.tcp_mtu_probing=1"),
    ],
    "mtu unnoticed": [*LONG],
    "window": [in_host("HOST1", "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 8192 16384")],
    "cpu": [("BURN",)],
}  # fmt: skip
"""The commands that make a fault, once the host that it strikes is known."""
RDMA = {
    "rdma healthy": [], "rdma loss of 1 %": at_device("netem", "loss", "1%"),
    "rdma delay": at_device("netem", "delay", "5ms"),
    "rdma rate": at_device("tbf", "rate", "10mbit", "burst", "32k", "latency", "400ms"),
}  # fmt: skip
"""Faults of the wire below two devices in software (rdma_kit.wire), by the interface of rank 0."""
BACK = [
    ("tc", "qdisc", "del", "dev", "HOST0", "root"),
    ("tc", "-n", "HOST0", "qdisc", "del", "dev", "eth0", "root"),
    ("tc", "-n", "SWITCH", "qdisc", "del", "dev", "p1", "root"),
    ("ip", "-n", "HOST0", "link", "set", "eth0", "mtu", "1500"),
    ("ip", "-n", "HOST1", "link", "set", "eth0", "mtu", "1500"),
    in_host("HOST0", "sysctl", "-qw", "net.ipv4.tcp_mtu_probing=0"),
    in_host("HOST1", "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 6291456"),
]
NAMED = {
    "loss of 1 %": ("network", "sent again"), "loss of 0.01 %": ("network", "sent again"),
    "reorder": ("network", "out of order"), "delay": ("tcp-limit", "round trip"),
    "rate": ("network", "held back"), "duplicate": ("network", "arrived twice"),
    "flap of 2 s": ("network", "went down"), "mtu": ("mtu-ends", "different lengths"),
    "mtu of the switch": ("network", "longer than a hop"),
    "mtu unnoticed": ("tcp-limit", "shorter ones do"),
    "window": ("tcp-limit", "receive window"), "cpu": ("busy", "used"),
}  # fmt: skip
"""The check and the words by which each is named."""


def load():
    """Imports what a run needs, so that forks have it."""
    for name in ("cli", "engine", "judge", "report", "uses", "machine", "model"):
        package = import_module(f"linkgauge.{name}")
        for one in pkgutil.walk_packages(package.__path__, f"linkgauge.{name}."):
            with contextlib.suppress(ImportError):
                import_module(one.name)
    for name in ("rank", "benchmarks", "streams"):
        import_module(f"linkgauge.rooms.network.{name}")
    import_module("linkgauge.judge.network_counters").meanings()
    os.environ["LINKGAUGE_NO_REPORT"] = "1"  # no process that draws a page


def flapping(switch):
    """The other host's link goes down for 2 s once data flows."""
    if not os.fork():
        sent = Path("/sys/class/net/eth0/statistics/tx_bytes")
        begun = int(sent.read_text())
        while int(sent.read_text()) < begun + FLOWS:
            time.sleep(0.01)
        for state in ("down", "up"):
            subprocess.run(["ip", "-n", switch, "link", "set", "p1", state], check=True)
            time.sleep(2)
        os._exit(0)


def burn():
    """A process that is no child of ours keeps a CPU busy. Returns its id."""
    shell = f"{sys.executable} -c 'while True: pass' >/dev/null 2>&1 & echo $!"
    return int(subprocess.run(["sh", "-c", shell], capture_output=True, check=True).stdout)


def main(rank, folder, *places_and_faults):
    (switch, *hosts), faults = places_and_faults[:3], places_and_faults[3:]
    places = {"SWITCH": switch, "HOST0": hosts[0], "HOST1": hosts[1]}
    load()
    for fault in faults:
        burning = []
        for words in {**FAULTS, **RDMA}[fault] if rank == "0" else ():
            if words == ("FLAP",):
                flapping(switch)
            elif words == ("BURN",):
                burning = [burn() for _ in range(2 * (os.cpu_count() or 1))]
            else:
                subprocess.run([places.get(word, word) for word in words], check=True)
        child = os.fork()
        if not child:
            size = RARE if fault == "loss of 0.01 %" else SIZE
            sys.argv = ["linkgauge", "copy", CELL, "--size", size, *COUNTS, "--out",
                        f"{folder}/{fault}"]  # fmt: skip
            from linkgauge.__main__ import main as linkgauge

            linkgauge()
            os._exit(0)
        print(fault, os.waitpid(child, 0)[1], flush=True)
        for process in burning:
            os.kill(process, signal.SIGKILL)
        for words in BACK if rank == "0" else ():
            told = [places.get(word, word) for word in words]
            subprocess.run(told, check=False, capture_output=True)
        time.sleep(SETTLES)


if __name__ == "__main__":
    main(*sys.argv[1:])
