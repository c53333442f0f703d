"""A device with RDMA: one that this machine has, or one in software (rxe) that its kernel has.

Run as a program, it records in a folder what perftest's tools answer over it; PATH says which."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path

from linkgauge.machine.interfaces import read_interfaces
from linkgauge.model.hardware.inventory import Interface
from linkgauge.rooms.network.outside import ToolCall, is_heard, perftest_command

PROGRAMS = ("ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat")
ADDRESS = "10.78.0.1"
TABLE = 7810
"""The table of the first end of a wire for routes."""
MTU = 4096
"""Bytes that a packet of RDMA has at most."""
SECONDS = 60
"""A run of a tool that takes longer hangs."""


def present() -> Interface | None:
    """The first that is up and has an address."""
    able = (one for one in read_interfaces() if one.rdma and one.up and one.addresses)
    return next(able, None)


@contextmanager
def device() -> Iterator[Interface | str]:
    """One that may be used, by one process at a time, or why nothing is measured here."""
    with Path(tempfile.gettempdir(), "linkgauge-rdma.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _device() as found:
            yield found


@contextmanager
def _device() -> Iterator[Interface | str]:
    if shutil.which("ib_write_bw") is None or find_library("ucp") is None:
        yield "no perftest, or no UCX with RDMA (Debian: perftest, libucx0, ibverbs-providers)"
    elif (found := present()) is not None:
        yield found
    else:
        with _in_software(f"lg{secrets.token_hex(3)}") as made:
            yield made


@contextmanager
def _in_software(name: str) -> Iterator[Interface | str]:
    """rxe upon an interface of this name, which is made for it."""
    try:
        for line in (
            "modprobe rdma_rxe",
            f"ip link add {name} type veth peer name {name}p",
            f"ip address add {ADDRESS}/24 dev {name}",
            f"ip link set {name} up",
            f"ip link set {name}p up",
            f"rdma link add {name}rxe type rxe netdev {name}",
        ):
            subprocess.run(line.split(), check=True, capture_output=True, text=True)
        made: Interface | str = _active(name)
    except OSError as error:
        made = f"no {error.filename} (Debian: kmod, iproute2)"
    except subprocess.CalledProcessError as error:
        made = f"{' '.join(error.cmd)}: {error.stderr.strip()}"
    try:
        yield made
    finally:
        if Path("/sys/class/net", name).exists():
            subprocess.run(["ip", "link", "del", name], check=True)


@contextmanager
def wire() -> Iterator[tuple[Interface, Interface] | str]:
    """Two devices in software and the wire between them, or why there are none. The kernel sends
    nothing over a wire to an address of its own: rules for routes have it do so."""
    name = f"lg{secrets.token_hex(3)}"
    ends = [f"{name}{end}" for end in "ab"]
    lines = ["modprobe rdma_rxe", f"ip link add {ends[0]} type veth peer name {ends[1]}",
             "ip rule add pref 9 lookup local", "ip rule del pref 0"]  # fmt: skip
    for number, end in enumerate(ends):
        own, far = (f"10.78.1.{1 + (number + other) % 2}" for other in range(2))
        lines += [
            f"sysctl -qw net.ipv4.conf.{end}.accept_local=1 net.ipv4.conf.{end}.rp_filter=0",
            f"ip address add {own}/24 dev {end}",
            f"ip link set {end} up",
            f"ip rule add pref 7 iif {end} lookup local",
            f"ip rule add pref 8 oif {end} to {far} lookup {TABLE + number}",
            f"ip route add {far} dev {end} src {own} table {TABLE + number}",
            f"rdma link add {end}rxe type rxe netdev {end}",
        ]
    try:
        for line in lines:
            subprocess.run(line.split(), check=True, capture_output=True, text=True)
        deadline = time.monotonic() + SECONDS
        while not all(map(_has_address, ends)):
            assert time.monotonic() < deadline, f"{name} does not become active"
            time.sleep(0.1)
        found = {one.name: one for one in read_interfaces()}
        yield found[ends[0]], found[ends[1]]
    except OSError as error:
        yield f"no {error.filename} (Debian: kmod, iproute2, procps)"
    except subprocess.CalledProcessError as error:
        yield f"{' '.join(error.cmd)}: {error.stderr.strip()}"
    finally:
        for line in (f"ip link del {ends[0]}", "ip rule add pref 0 lookup local",
                     *(f"ip rule del pref {pref}" for pref in (7, 7, 8, 8, 9))):  # fmt: skip
            subprocess.run(line.split(), check=False, capture_output=True)


def _has_address(name: str) -> bool:
    file = Path(f"/sys/class/infiniband/{name}rxe/ports/1/gids/1")
    return bool(file.read_text().strip("0:\n"))


def _active(name: str) -> Interface:
    """Once its carrier is there, and its port's address is known."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = present()
        gids = (file.read_text() for file in Path("/sys/class/infiniband").glob("*/ports/1/gids/1"))
        if found is not None and any(gid.strip("0:\n") for gid in gids):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{name} does not become active")


def number(nic: Interface) -> int:
    """N of `nic:N`."""
    return [one.name for one in read_interfaces()].index(nic.name)


def packets(nic: Interface) -> int | None:
    """How many rxe has sent; null for other devices, not all of which count what stays in them."""
    counter = Path(f"/sys/class/infiniband/{nic.rdma}/ports/1/hw_counters/sent_pkts")
    return int(counter.read_text()) if counter.exists() else None


def record(program: str, nic: Interface, folder: Path) -> None:
    """The file that a client of linkgauge's writes, and the options that its help names."""
    file = folder.resolve() / f"{program}.json"
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    client = ToolCall(65536, 100, 1, nic.rdma, nic.addresses[0], port, file)
    server = client._replace(host=None, file=file.with_suffix(".server"))
    serving = subprocess.Popen([program, *perftest_command(program, "", server)])
    while not is_heard(server.port):
        assert serving.poll() is None
        time.sleep(0.05)
    command = [program, *perftest_command(program, "", client)]
    subprocess.run(command, check=True, timeout=SECONDS)
    serving.communicate(timeout=SECONDS)
    server.file.unlink(missing_ok=True)
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    found = sorted(set(re.findall(r"--[A-Za-z][\w-]*", said.stdout + said.stderr)))
    (folder / f"{program}.options").write_text("\n".join(found) + "\n")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with device() as found:
        assert isinstance(found, Interface), found
        subprocess.run(["ib_write_bw", "--version"], check=False)
        print(f"{found.rdma} of {found.name}, Linux {os.uname().release}")
        for program in PROGRAMS:
            record(program, found, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
