"""Small domains with their right answers, beside one host: two nodes of eight cores of two
threads, an AMD EPYC 7443 with KVM, 16384 free pages of 2 MiB on each node, a GPU on node 0.
"""

import json
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.machine.tree import Captured
from vm_kit import GIB, domain, tree
from vm_kit import told as reported_of

CASES = Path(__file__).parents[1] / "data" / "vm"
BARE = {("warn", "unpinned"), ("note", "cpu-model"), ("note", "huge-pages-none")}
"""True of a domain that says little, and beside the case."""
RIGHT = {
    "good": set(),
    "wide": {("warn", "memory-remote")},
    "one-socket-two-cells": {("warn", "cell-spans"), ("note", "huge-pages-none")},
    "tcg": {("fail", "emulation"), ("fail", "refused")},
    "emulator-far": {("note", "emulator-far")},
    "memnode-without-cells": {("fail", "cell-of-none"), *BARE},
    "cells-from-one": {("fail", "cell-list"), ("warn", "memory-unbound"), *BARE},
    "preferred-memnode": {("note", "memory-policy"), *BARE},
}
SAYS = {
    "wide": "50% of accesses are remote if each node gives the same share",
    "one-socket-two-cells": "<topology sockets='2' cores='2' threads='2'/>",
    "tcg": "without KVM",
    "emulator-far": "runs on node 1; the vCPUs are on node 0",
    "cells-from-one": "their numbers are 1-2, not 0 to 1",
    "preferred-memnode": "<memnode cellid='0' mode='strict' nodeset='0'/>",
}


def told(name):
    path = CASES / f"{name}.xml"
    done = called("vm", path, "--as", "host", "--root", CASES / "host.tgz", "--json")
    return json.loads(done.stdout)


def test_every_case_has_an_answer():
    assert {path.stem for path in CASES.glob("*.xml")} == RIGHT.keys()


@pytest.mark.parametrize("name", RIGHT)
def test_each_case_gives_its_right_answer_and_nothing_else(name):
    document = told(name)
    findings = document["findings"]
    assert {(one["severity"], one["check"]) for one in findings} == RIGHT[name]
    assert SAYS.get(name, "") in json.dumps(findings, ensure_ascii=False)


def test_a_guest_writes_to_its_host_the_cheapest_wish_first(tmp_path):
    """What can be done while it runs, then a new definition, then the host's devices."""
    guest = tree(sockets=4, cores=1, memory=15 * GIB, thp="never")
    message = reported_in(tmp_path, domain(SOCKETS, memory=32), guest)
    kinds = [line for line in message if line.endswith(":")][1:]
    assert kinds[0] == "While the guest runs:"
    assert kinds[1].startswith("Once the guest is shut down")
    assert "- memory: the guest has 15 GiB, the domain gives 32 GiB" in message
    other = domain(SOCKETS, memory=32).replace(b"11111111", b"99999999")
    assert reported_in(tmp_path, other, guest) == []


def reported_in(folder, xml, guest):
    uuid = {"sys/class/dmi/id/product_uuid": b"11111111-2222-4333-8444-555555555555\n"}
    named = Captured(guest.files | uuid, guest.links)
    return reported_of(folder, xml, named, "guest")["message"]


SOCKETS = "<cpu><topology sockets='1' cores='2' threads='2'/></cpu>"
