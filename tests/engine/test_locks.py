"""One run at a time on a device, whatever becomes of the run that has it."""

import signal
import subprocess
import sys
import threading
import uuid

import msgspec
import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.locks import devices_measured, hold
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.model.errors import DeviceBusy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks are Linux' alone")

HOLDER = """
import sys
from linkgauge.engine.locks import hold
with hold({key: "cuda:0" for key in sys.argv[1:]}, wait=True):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def key():
    return f"test-{uuid.uuid4()}"


@pytest.fixture
def holder():
    """Starts processes that hold keys until they are told to end."""
    started = []

    def start(*keys):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, *keys], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def held(process):
    assert process.stdout.readline() == b"held\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_holder_that_dies_in_any_way_leaves_it_free(key, holder, number):
    process = holder(key)
    held(process)
    process.send_signal(number)
    process.wait()
    with hold({key: "cuda:0"}):
        pass


def test_many_that_wait_come_one_after_the_other_and_none_deadlocks(key, holder):
    keys = [f"{key}-{n}" for n in range(3)]
    processes = [holder(*(keys if n % 2 else reversed(keys))) for n in range(4)]
    held_by = []

    def follow(process):
        if process.stdout.readline() == b"held\n":
            held_by.append(process.pid)
            with pytest.raises(DeviceBusy, match=str(process.pid)), hold({keys[0]: "cuda:0"}):
                pass
            process.communicate(b"\n")

    threads = [threading.Thread(target=follow, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(held_by) == sorted(process.pid for process in processes)


def test_a_child_of_the_holder_does_not_hold(key):
    with hold({key: "cuda:0"}):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with hold({key: "cuda:0"}):
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_held_are_the_devices_of_the_plan_by_address_else_uuid():
    here = machine([
        device(0, pci="0000:1b:00.0", uuid="GPU-0"), device(1, uuid="GPU-1"), device(2),
        device(3, uuid="GPU-3"),
    ])  # fmt: skip

    def plan(*names, devices=(), machine=here):
        laid_out = lay_out(select(names, ()), fabrics(here, devices), here.host.nodes)
        return devices_measured(machine, make_plan(laid_out, here, [4096]))

    some = plan("host_to_device_memcpy_ce", devices=["fake:0", "fake:1", "fake:2"])
    assert some == {"0000:1b:00.0": "fake:0", "GPU-1": "fake:1"}
    assert plan("host_to_host_memcpy_copy_cpu") == {}
    reading = plan("device_to_device_memcpy_read_ce", devices=["fake:1", "fake:3"])
    assert reading == {"GPU-1": "fake:1", "GPU-3": "fake:3"}
    simulated = msgspec.structs.replace(here, simulated="rack")
    assert plan("device_to_device_memcpy_read_ce", machine=simulated) == {}
