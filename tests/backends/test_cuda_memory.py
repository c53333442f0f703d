"""Host memory of the cuda backend, without a GPU: what is asked of the driver, and what is said."""

from types import SimpleNamespace

import pytest

from linkgauge.backends.cuda.memory import allocate
from linkgauge.machine.host import read_host
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.machine import Node
from linkgauge.model.transfer import host


class Driver:
    enums = SimpleNamespace(CU_MEMHOSTREGISTER_PORTABLE=1, CU_MEMHOSTREGISTER_DEVICEMAP=2)

    def __init__(self, fails=""):
        self.calls = []
        self.fails = fails

    def call(self, name, *arguments, about=""):
        self.calls.append((name, *arguments))
        if name == self.fails:
            raise BackendError(name, f"CUDA_ERROR_UNKNOWN ({about})")


def had(kind, fails="", node=None, alone=True):
    home = SimpleNamespace(driver=Driver(fails), index=0, enter=lambda: None)
    node = node or read_host().nodes[0]
    return home.driver, allocate(host(node.index, kind), 8192, home, node, alone, True)


def test_pinned_memory_is_registered_whole_and_unregistered_before_it_goes():
    driver, buffer = had("")
    assert driver.calls == [("cuMemHostRegister", buffer.address, 8192, 3)]
    placement = buffer.placement()
    assert (placement.memory, placement.bytes, placement.locked) == ("host:0", 8192, True)
    buffer.free()
    buffer.free()
    assert driver.calls[1:] == [("cuMemHostUnregister", buffer.address)]


def test_pageable_memory_is_not_the_drivers():
    driver, buffer = had("pageable")
    assert (driver.calls, buffer.placement().locked, buffer.host_only) == ([], None, True)
    buffer.free()
    assert driver.calls == []


def test_memory_that_cannot_be_registered_is_the_drivers_error_with_the_size():
    with pytest.raises(BackendError, match=r"cuMemHostRegister.*8\.0 KiB of host:0"):
        had("", fails="cuMemHostRegister")


def test_memory_that_cannot_be_bound_is_refused_unless_there_is_no_other_node():
    missing = Node(900, read_host().nodes[0].cpus)
    with pytest.raises(Unsupported, match="cannot be bound to host:900"):
        had("", node=missing, alone=False)
    _, buffer = had("", node=missing)
    if buffer.placement().node is not None:
        assert buffer.warnings == (f"host:900 lies on node {buffer.placement().node}",)
    buffer.free()
