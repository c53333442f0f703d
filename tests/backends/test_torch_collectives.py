"""A rank's part of a collective by torch.distributed, alone in its group: by gloo on the CPU."""

import pytest

from linkgauge.backends import open_backend
from linkgauge.backends.protocol import Copy, run
from linkgauge.backends.torch.collectives import TorchCollective
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_memory, parse_transfer
from linkgauge.model.operations.collective import Collective

pytestmark = pytest.mark.ai
pytest.importorskip("torch")
PART = parse_transfer("torch:cpu:0 -> torch:cpu:0 by ccl")
SIZE = 4096


@pytest.fixture(scope="module")
def backend():
    opened = open_backend("torch")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def distributed(tmp_path_factory):
    import torch.distributed as found

    path = tmp_path_factory.mktemp("store") / "store"
    found.init_process_group("gloo", store=found.FileStore(str(path), 1), rank=0, world_size=1)
    yield found
    found.destroy_process_group()


def group(backend, distributed, work):
    ends = [backend.allocate(PART.source, SIZE, PART.engine) for _ in range(2)]
    copy = Copy(PART, None if work.in_place else ends[0], ends[1], SIZE, 1)
    unit = backend.unit(parse_memory("torch:cpu:0"))
    return TorchCollective(distributed, unit, work, copy, 3)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    "work",
    [
        Collective("all_reduce", "float", "sum"), Collective("all_reduce", "double", "prod"),
        Collective("all_reduce", "int32", "max"), Collective("all_gather", "half"),
        Collective("broadcast", "uint8", root=0), Collective("reduce", "int64", "min", root=0),
    ],
    ids=lambda work: f"{work.collective}-{work.type}",
)  # fmt: skip
def test_what_a_rank_receives_is_right(backend, distributed, work, in_place):
    made = group(backend, distributed, Collective(*[getattr(work, name) for name in
                 ("collective", "type", "reduction", "root")], in_place=in_place))  # fmt: skip
    assert made.check().count == 0
    assert run(made, 2, 3).seconds[0] > 0
    ((one, other),) = made.iterations(2)
    assert min(one, other) > 0


def test_a_wrong_number_is_found_with_its_place(backend, distributed, monkeypatch):
    made = group(backend, distributed, Collective("all_reduce", "float", "sum"))
    carry_out = made.carry_out

    def spoiled(loops):
        carry_out(loops)
        made._result[7] += 1

    monkeypatch.setattr(made, "carry_out", spoiled)
    found = made.check()
    assert (found.count, found.rank, found.first) == (1, 3, 7)


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (Collective("gather", "float", root=0), "has no gather"),
        (Collective("all_reduce", "f8e4m3", "sum"), "no numbers of type f8e4m3"),
        (Collective("all_reduce", "float", "mulsum"), "does not reduce by mulsum"),
        (Collective("all_reduce", "float", "avg"), "gloo does not reduce by avg"),
        (Collective("all_reduce", "float", "sum", graphed=True), "no graphs"),
        (Collective("all_reduce", "float", "sum", registered="local"), "no registered buffers"),
    ],
)
def test_what_torch_does_not_do_is_unsupported(backend, distributed, work, why):
    with pytest.raises(Unsupported, match=why):
        group(backend, distributed, work)


def test_a_failing_call_is_named(backend, distributed, monkeypatch):
    def fails(*_):
        raise RuntimeError("connection reset by peer")

    monkeypatch.setattr(distributed, "all_reduce", fails)
    made = group(backend, distributed, Collective("all_reduce", "float", "sum"))
    with pytest.raises(BackendError, match="all_reduce: connection reset"):
        made.check()
