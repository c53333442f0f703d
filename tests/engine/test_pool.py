"""Buffers are kept for later cells as long as the host's memory has room for them."""

from fakes import FakeBackend
from linkgauge.engine.pool import BufferPool
from linkgauge.model.machine import Device
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Engine

SIZE = 4096


def device(memory, shares):
    return Device(memory, "fake", 1 << 30, 1 << 30, shares_host_memory=shares)


def keep(pool, backend, *names):
    """Lends a buffer in each of these memories, one after the other."""
    for name in names:
        memory = parse_memory(name)
        pool.lend(backend, memory, SIZE, Engine(memory, "ce"))
        pool.take_back()


def kept(backend):
    return [str(buffer.memory) for buffer in backend.buffers if not buffer.freed]


def test_a_budget_is_of_the_hosts_memory_alone():
    backend, pool = FakeBackend(devices=[device("fake:0", shares=False)]), BufferPool(2 * SIZE)
    keep(pool, backend, "fake:0", "host:0", "host:1", "host:2")
    assert kept(backend) == ["fake:0", "host:1", "host:2"]


def test_a_devices_memory_does_not_drive_out_the_hosts():
    backend, pool = FakeBackend(devices=[device("fake:0", shares=False)]), BufferPool(SIZE)
    keep(pool, backend, "host:0", "fake:0")
    assert kept(backend) == ["host:0", "fake:0"]


def test_a_device_without_memory_of_its_own_takes_the_hosts():
    backend, pool = FakeBackend(devices=[device("fake:0", shares=True)]), BufferPool(SIZE)
    keep(pool, backend, "host:0", "fake:0")
    assert kept(backend) == ["fake:0"]


def test_all_idle_buffers_can_be_freed():
    backend, pool = FakeBackend(devices=[device("fake:0", shares=False)]), BufferPool(2 * SIZE)
    keep(pool, backend, "host:0", "fake:0")
    pool.free_idle()
    assert kept(backend) == []
    keep(pool, backend, "host:0", "host:1")
    assert kept(backend) == ["host:0", "host:1"]
