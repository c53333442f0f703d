"""Ranks move bytes between memories of their GPUs by UCX: of the emulator's, which UCX takes for
memory of the host."""

import pytest

from cuda_emulator import emulated
from linkgauge.model.errors import Unsupported
from linkgauge.model.settings import Settings
from linkgauge.rooms.network import rank as net
from linkgauge.rooms.network import ucx, ucx_copies
from net_ranks import Pair, began, run, without_ucx
from ranks_kit import launch

needs_ucx = pytest.mark.skipif(bool(without_ucx()), reason=without_ucx())
GPU, FAR = "cuda:0@0", "cuda:1@1"


@pytest.fixture
def pair(monkeypatch):
    monkeypatch.setitem(ucx._MEMORY_TYPES, "cuda", ucx._MEMORY_TYPES["host"])
    monkeypatch.setattr(ucx_copies, "GPU_TRANSPORT", "self")
    made = [emulated(2, kernel="plain") for _ in range(2)]
    pair = Pair(gpus=[net.GpuOfRank(launch(rank, 2), made[rank][0]) for rank in (0, 1)])
    pair.bindings = [bindings for _, bindings in made]
    yield pair
    pair.close()


@needs_ucx
@pytest.mark.parametrize(
    "text",
    [
        f"{GPU} -> {FAR} by ucx", f"{GPU} -> {FAR} by {FAR}.ucx", f"host:0@0 -> {FAR} by ucx",
        f"{FAR} -> host:0@0 by ucx", f"{GPU} -> {FAR} by nic:0.ucx",
        f"host:0@1 -> {GPU} by nic:0@0.ucx",
    ],
)  # fmt: skip
def test_every_byte_arrives(pair, text):
    copy = pair.copy(text)
    assert pair.mismatch(copy) == 0
    ended = run(pair, [copy])
    assert pair.mismatch(copy) is None
    assert ended[copy.transfer.engine.owner.rank].seconds[0] > 0


@needs_ucx
def test_the_gpus_context_is_current_where_ucx_is_used(pair):
    copy = pair.copy(f"{GPU} -> {FAR} by ucx")
    groups = pair.prepared(copy)
    for group in groups:
        group.arm(1, 1)
    for bindings in pair.bindings:
        bindings.calls.clear()
    pair.both(began, groups)
    assert all("cuCtxSetCurrent" in bindings.names() for bindings in pair.bindings)


def test_a_rank_without_gpu_says_why_if_it_is_asked_for_one(monkeypatch):
    def nothing(name, *others):
        raise Unsupported("no NVIDIA driver")

    monkeypatch.setattr(net, "open_backend", nothing)
    member = net.create(launch(0, 2), Settings(sizes=()), ("box",) * 2, with_gpu=True)
    assert (member.gpu, member.lacks_gpu) == (None, "no NVIDIA driver")
    member.close()
