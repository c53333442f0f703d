"""The cuda backend over a driver that answers every call: devices, refusals, affinity, failures."""

import itertools
import os
from types import SimpleNamespace

import pytest

from cuda_kit import NODES, Status, backend_of, engine_copies, gpu
from linkgauge.backends.cuda import queue
from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.cuda.group import CudaGroup
from linkgauge.backends.cuda.settings import CopySettings, store_tuned
from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import BackendError
from linkgauge.model.notation import parse_transfer


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "linkgauge"


class TestDevices:
    def test_say_that_they_are_a_mig_instance(self):
        uuid = SimpleNamespace(bytes=bytes(16))
        name = b"NVIDIA A100-SXM4-40GB MIG 1g.5gb\0"
        (device,) = backend_of(
            gpu(cuDeviceGetName=[name], cuDeviceGetUuid_v2=[uuid])
        ).devices()  # fmt: skip
        assert device.uuid.startswith("MIG-0000")
        assert device.notes[-1].startswith("a MIG instance")

    def test_show_what_was_tuned_for_their_model_unless_it_is_not_used(self, cache):
        best = {"sm local": CopySettings(unroll=4), "ce local": CopySettings(streams=2)}
        store_tuned("NVIDIA H200", best, cache / "tuned")
        bindings = gpu(cuDeviceGetUuid_v2=[SimpleNamespace(bytes=bytes(16))])
        (device,) = backend_of(bindings).devices()
        assert device.notes[2:] == (
            "tuned: ce local: 2 streams",
            "tuned: sm local: plain of 512 threads, 4 in flight",
        )
        (device,) = backend_of(bindings, tuned=False).devices()
        assert len(device.notes) == 2


class TestRefusal:
    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("cuda:0 -> cuda:1 by ce", "no peer access from cuda:0 to cuda:1"),
            ("cuda:1 -> cuda:0 by cuda:0.sm", "no peer access from cuda:0 to cuda:1"),
            ("cuda:0 -> cuda:2 by ce", "no cuda:2: this machine has 2 CUDA devices"),
            ("host:0/pageable -> cuda:0 by sm", "kernels of cuda:0 do not reach pageable"),
            ("host:2 -> cuda:0 by ce", "no node host:2: this machine has host:0, host:1"),
            ("cuda:0 <-> host:0 by ce", "join two transfers with '&', or use sm"),
        ],
    )
    def test_says_what_is_missing(self, text, says):
        answers = {"cuDeviceCanAccessPeer": [0], "cuDeviceGetAttribute": [0]}
        assert says in str(backend_of(gpu(2, **answers)).refusal(parse_transfer(text)))


class TestWithoutPeerAccess:
    TEXT = "cuda:0 -> cuda:1 by ce"

    def copy(self, backend, text=TEXT, **more):
        transfer = parse_transfer(text)
        ends = [backend.allocate(memory, 4096, transfer.engine) for memory in transfer.memories]
        return Copy(transfer, *ends, 4096, 1, **more)

    @pytest.fixture
    def bindings(self):
        bindings = gpu(2)
        made = itertools.count(100)
        bindings.cuMemAlloc = lambda size: (Status.CUDA_SUCCESS, next(made))
        bindings.cuDevicePrimaryCtxRetain = lambda device: (Status.CUDA_SUCCESS, 10 * device)
        devices = itertools.count(1)
        bindings.cuDeviceGet = lambda index: (Status.CUDA_SUCCESS, next(devices))
        return bindings

    @pytest.mark.parametrize("reach", [0, 1])
    def test_no_pair_is_refused_to_copy_engines(self, reach):
        backend = backend_of(gpu(2, cuDeviceCanAccessPeer=[reach]), peer_access=False)
        assert backend.refusal(parse_transfer(self.TEXT)) is None
        assert backend.refusal(parse_transfer("cuda:0 -> cuda:1 by cuda:1.ce")) is None
        by_kernel = backend.refusal(parse_transfer("cuda:0 -> cuda:1 by sm"))
        assert str(by_kernel) == "peer access from cuda:0 to cuda:1 is not asked for"
        assert by_kernel.kind == "peer"

    def test_the_driver_copies_between_contexts_that_do_not_reach_each_other(self, bindings):
        backend = backend_of(bindings, peer_access=False)
        copies = [self.copy(backend), self.copy(backend, "cuda:1 -> cuda:0 by ce", warm_ups=4)]
        group = backend.prepare(copies)
        group.arm(5)
        group.open()
        there, back = copies
        assert [call[:5] for call in bindings.of("cuMemcpyPeerAsync")] == [
            *[(there.destination.address, 20, there.source.address, 10, 4096)] * 5,
            *[(back.destination.address, 10, back.source.address, 20, 4096)] * 5,
        ]
        assert "cuCtxEnablePeerAccess" not in bindings.names()
        assert "cuMemcpyAsync" not in bindings.names()
        group.wait()
        group.close()

    def test_its_own_call_is_what_enqueues_it(self, bindings, monkeypatch):
        seen = []
        monkeypatch.setattr(queue, "address_of", lambda name: seen.append(name) or 1)
        backend = backend_of(bindings, peer_access=False)
        backend.prepare([self.copy(backend)], "enqueue").close()
        assert seen == ["cuMemcpyPeerAsync"]

    def test_the_result_says_so(self):
        backend = backend_of(gpu(2), peer_access=False)
        assert (
            "the driver copies by way of the host" in backend.remarks(parse_transfer(self.TEXT))[-1]
        )
        assert backend.remarks(parse_transfer("host:0 -> cuda:1 by ce")) == ()


class TestAffinity:
    @pytest.fixture
    def moves(self, monkeypatch):
        made = []
        monkeypatch.setattr(os, "sched_setaffinity", lambda who, cpus: made.append(cpus))
        monkeypatch.setattr("linkgauge.backends.cuda.device.near_node", lambda root, pci: 1)
        return made

    def prepared(self, backend, text):
        transfer = parse_transfer(text)
        ends = [backend.allocate(memory, 4096, transfer.engine) for memory in transfer.memories]
        backend.prepare([Copy(transfer, *ends, 4096, 1)]).close()

    def test_the_controlling_thread_is_on_the_devices_node(self, moves):
        self.prepared(backend_of(gpu()), "cuda:0 -> cuda:0 by ce")
        assert moves == [(2, 3)]

    def test_or_where_it_was(self, moves):
        self.prepared(backend_of(gpu(), affinity=False), "cuda:0 -> cuda:0 by ce")
        self.prepared(backend_of(gpu(), nodes=NODES[:1]), "cuda:0 -> cuda:0 by ce")
        assert moves == []


class TestFailures:
    def test_nor_where_it_has_no_gate(self):
        bindings = gpu()
        driver, works = engine_copies(bindings, devices=(0, 1))
        bindings.failing["cuMemHostAlloc"] = Status.CUDA_ERROR_OUT_OF_MEMORY
        with pytest.raises(BackendError, match="cuMemHostAlloc"):
            CudaGroup(driver, works)
        assert len(set(bindings.of("cuEventDestroy"))) == len(bindings.of("cuEventCreate")) == 9

    def test_what_an_older_driver_does_not_have_is_an_error_of_that_call(self):
        bindings = gpu()

        def missing(*arguments):
            raise RuntimeError('Function "cuMemAdvise_v2" not found')

        bindings.cuMemAdvise_v2 = missing
        with pytest.raises(BackendError, match=r'^cuMemAdvise_v2: Function "cuMemAdvise_v2" not'):
            Driver(bindings).call("cuMemAdvise_v2", 1)
