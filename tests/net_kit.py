"""Hosts that are network namespaces of this machine, joined by a switch; each has a rank."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from launch_kit import Ended, environment

PORT = 7711
SECONDS = 240
"""A run that takes longer hangs."""
QUEUE = ("burst", "32k", "latency", "50ms")
"""Of tbf: a burst is little beside a sample, and a queue is as long as a switch's."""

RELAY = Path(__file__).with_name("net_relay.py")
WITH_SUMS = """
import ctypes, fcntl, socket, struct
off = ctypes.create_string_buffer(struct.pack("II", 0x17, 0))
asked = struct.pack("16sQ16x", b"eth0", ctypes.addressof(off))
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, asked)
"""
"""Has the kernel itself form checksums at eth0 (SIOCETHTOOL, ETHTOOL_STXCSUM): a veth leaves that
to hardware that it does not have."""


def _call(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def needed() -> None:
    """Skips where there can be no namespaces."""
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    why = f"no {missing[0]} (Debian: iproute2)" if missing else None
    if why is None:
        name = f"lg{secrets.token_hex(3)}"
        made = _call("ip", "netns", "add", name)
        _call("ip", "netns", "del", name)
        why = made.stderr.strip() if made.returncode else None
    if why is not None:
        if "namespaces" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail(f"no network namespaces: {why}")
        pytest.skip(f"no network namespaces here: {why}")


class Net:
    """Hosts 0 to `count` - 1: host N has the address 10.77.0.N+1 at its interface eth0, nic:1."""

    def __init__(self, count: int) -> None:
        self._tag = f"lg{secrets.token_hex(3)}"
        self.count = count
        self.switch = f"{self._tag}s"
        self._relays: list[subprocess.Popen[bytes]] = []

    def host(self, number: int) -> str:
        return f"{self._tag}h{number}"

    def address(self, number: int) -> str:
        return f"10.77.0.{number + 1}"

    def _do(self, *words: str) -> None:
        done = _call(*words)
        assert not done.returncode, f"{' '.join(words)}: {done.stderr}"

    def make(self) -> None:
        self._do("ip", "netns", "add", self.switch)
        self._do("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge")
        self._do("ip", "-n", self.switch, "link", "set", "br0", "up")
        for number in range(self.count):
            self.join(number)

    def join(self, number: int) -> None:
        """Makes a host, and its link to the switch."""
        name, port = self.host(number), f"p{number}"
        self._do("ip", "netns", "add", name)
        there = ("peer", "name", "eth0", "netns", name)
        self._do("ip", "-n", self.switch, "link", "add", port, "type", "veth", *there)
        self._do("ip", "-n", self.switch, "link", "set", port, "master", "br0", "up")
        self._do("ip", "-n", name, "link", "set", "lo", "up")
        self._do("ip", "-n", name, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        self._do("ip", "-n", name, "link", "set", "eth0", "up")

    def shape(self, number: int, rate: str) -> None:
        """What reaches this host comes at this rate."""
        device = ("dev", f"p{number}", "root", "tbf", "rate", rate, *QUEUE)
        self._do("tc", "-n", self.switch, "qdisc", "replace", *device)

    def slow(self, source: int, destination: int, rate: str) -> None:
        """What goes from one host to another goes at this rate, and everything else as before."""
        tc = ("tc", "-n", self.host(source))
        at = ("dev", "eth0", "parent", "1:")
        to = f"{self.address(destination)}/32"
        self._do(*tc, "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1")
        self._do(*tc, "class", "add", *at, "classid", "1:1", "htb", "rate", "10gbit")
        self._do(*tc, "class", "add", *at, "classid", "1:2", "htb", "rate", rate)
        self._do(*tc, "qdisc", "add", "dev", "eth0", "parent", "1:2", "tbf", "rate", rate, *QUEUE)
        self._do(*tc, "filter", "add", *at, "protocol", "ip", "u32", "match", "ip", "dst", to,
                 "flowid", "1:2")  # fmt: skip

    def delay(self, number: int, seconds: float, *fault: str) -> None:
        """All frames from and to this host take so much longer, and some come to harm
        (net_relay.py)."""
        port, inner, outer = f"p{number}", f"i{number}", f"o{number}"
        ip = ("ip", "-n", self.switch, "link")
        self._do(*ip, "set", port, "nomaster")
        self._do(*ip, "add", inner, "type", "veth", "peer", "name", outer)
        self._do(*ip, "set", outer, "master", "br0", "up")
        self._do(*ip, "set", inner, "up")
        for host in range(self.count):  # the relay would pass on what nobody has summed up
            self._in(self.host(host), sys.executable, "-c", WITH_SUMS)
        relay = (sys.executable, str(RELAY), port, inner, str(seconds), *fault)
        self._relays.append(subprocess.Popen(["ip", "netns", "exec", self.switch, *relay]))

    def _in(self, namespace: str, *words: str) -> None:
        self._do("ip", "netns", "exec", namespace, *words)

    def vanish(self, number: int) -> None:
        """The host's link is gone: nobody hears that it is."""
        self._do("ip", "-n", self.switch, "link", "del", f"p{number}")

    def remove(self) -> None:
        for relay in self._relays:
            relay.kill()
            relay.wait()
        for name in (self.switch, *(self.host(number) for number in range(self.count))):
            _call("ip", "netns", "del", name)

    def start(
        self, folder: Path, number: int, arguments: Sequence[str], more: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        """The rank of a host."""
        told = environment(
            LINKGAUGE_RANK=str(number),
            LINKGAUGE_RANKS=str(self.count),
            LINKGAUGE_FIRST=f"{self.address(0)}:{PORT}",
            LINKGAUGE_TOKEN=self._tag,
            LINKGAUGE_HOST=f"node{number}",
            **more,
        )
        return subprocess.Popen(
            ["ip", "netns", "exec", self.host(number), sys.executable, "-m", "linkgauge",
             *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env=told, cwd=folder,
        )  # fmt: skip

    def launch(self, folder: Path, *arguments: str, lost: Sequence[int] = (), **more: str) -> Ended:
        """`linkgauge ARGUMENTS` by a rank of each host; what rank 0 prints. Those that will be lost
        are killed at the end."""
        out = folder / "out"
        given = [*arguments, "--out", str(out)] if arguments[0] in ("run", "copy") else arguments
        ranks = [self.start(folder, number, given, more) for number in range(self.count)]
        try:
            said = [
                rank.communicate(timeout=SECONDS)
                for number, rank in enumerate(ranks)
                if number not in lost
            ]
        finally:
            for rank in ranks:
                rank.kill()
            for number in lost:
                ranks[number].communicate()
        for number, rank in enumerate(ranks):
            (folder / f"exit-{number}").write_text(str(rank.returncode))
        errors = "".join(one[1] for one in said)
        return Ended(ranks[0].returncode, said[0][0], errors, out)


@contextmanager
def net(count: int) -> Iterator[Net]:
    needed()
    made = Net(count)
    try:
        made.make()
        yield made
    finally:
        made.remove()
