"""AI workloads on torch's `cpu`, at their small size: what they compute is right, whoever carries
it out, and what does not fit is said. What needs no torch comes first."""

from contextlib import closing

import pytest

from linkgauge.backends.protocol import run
from linkgauge.machine.processes.launch import launched
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.workload import Workload
from linkgauge.rooms.ai.workloads.group import kind_of, name_of, shares_of

CPU = parse_memory("torch:cpu:0")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nvjet_hsh_192x192_64x4", "products"), ("void cutlass::Kernel2<...gemm...>", "products"),
        ("void flash_fwd_splitkv_kernel<...>", "attention"),
        ("Memcpy HtoD (Pinned -> Device)", "copies"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "communication"),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimiser"),
        ("void at::native::vectorized_elementwise_kernel<4, silu>", "other kernels"),
    ],
)  # fmt: skip
def test_kernels_are_of_kinds_by_their_names(name, kind):
    assert kind_of(name) == kind


def test_shares_are_of_the_time_of_all_kernels_the_largest_first():
    shares = shares_of([("gemm", 6.0), ("flash_fwd", 1.0), ("gemv", 2.0), ("add", 1.0)])
    assert [(share.name, share.fraction) for share in shares] == [
        ("products", pytest.approx(0.8)),
        ("attention", pytest.approx(0.1)),
        ("other kernels", pytest.approx(0.1)),
    ]


def test_each_cell_has_a_trace_of_its_own():
    assert name_of(Workload("decode", batch=8, prompt=512)) == "decode-bf16-batch8-prompt512"
    names = {
        name_of(Workload("pipeline", balance=balance, overlap=overlap))
        for balance in (50, 100)
        for overlap in (True, False)
    }
    assert len(names) == 4


def place(environment):
    launch = launched(environment, by_torch=True)
    return launch.rank, launch.size, launch.local_rank


def test_ranks_are_those_that_torchrun_or_mpiexec_says():
    assert place({}) == (0, 1, 0)
    assert place({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}) == (0, 1, 0)
    assert place({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}) == (3, 4, 1)
    assert place({"RANK": "3", "WORLD_SIZE": "4"}) == (3, 4, 3)
    assert place({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}) == (1, 2, 1)
    assert place({"RANK": "x", "WORLD_SIZE": "2"}) == (0, 1, 0)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def workloads(torch):
    from linkgauge.rooms.ai.workloads import Workloads

    with closing(Workloads(torch)) as opened:
        yield opened


def carried_out(workloads, asked, samples=2):
    """Timings, what is wrong, and what else it shows."""
    with closing(workloads.group("cpu", CPU, asked)) as group:
        timings = [run(group, 1) for _ in range(samples)]
        return timings, group.mismatch(), group.done()


SMALL = {"prompt": 16, "tokens": 3, "numbers": "fp32"}


@pytest.mark.ai
@pytest.mark.parametrize(
    "asked",
    [
        Workload("prefill", batch=2, **SMALL), Workload("decode", batch=2, **SMALL),
        Workload("decode", batch=1, prompt=16, tokens=3, numbers="bf16"),
        Workload("streamed", batch=1, **SMALL),
        Workload("streamed", batch=1, overlap=False, **SMALL),
        Workload("offload", batch=2, **SMALL), Workload("restore", batch=2, **SMALL),
        Workload("training", prompt=16, numbers="bf16"),
        Workload("training", prompt=16, numbers="fp32", overlap=False),
        Workload("pipeline", tokens=4, numbers="fp32"),
        Workload("pipeline", tokens=4, numbers="fp32", overlap=False),
    ],
    ids=lambda asked: f"{asked.kind}-{asked.numbers}-{asked.overlap}",
)  # fmt: skip
def test_every_workload_computes_what_it_should(workloads, asked):
    timings, wrong, done = carried_out(workloads, asked)
    assert wrong is None
    assert all(timing.span > 0 for timing in timings)
    assert done.how
    assert done.rates.memory > 0
    assert done.demands.launching is None  # the host computes itself


@pytest.mark.ai
@pytest.mark.parametrize(
    ("asked", "nothing"),
    [
        (Workload("decode", **SMALL), {"_steps": []}),
        (Workload("pipeline", tokens=4, numbers="fp32"), {"_overlapping": lambda: None}),
    ],
    ids=lambda of: getattr(of, "kind", ""),
)
def test_work_that_does_nothing_is_not_taken_for_right(workloads, asked, nothing):
    """What trials before the first sample made must not pass for the samples' own."""
    with closing(workloads.group("cpu", CPU, asked)) as group:
        for name, value in nothing.items():
            setattr(group._work, name, value)
        run(group, 1)
        assert group.mismatch() is not None


@pytest.mark.gpu_pairs
def test_decoding_on_the_second_gpu_reads_all_weights_there(torch, workloads):
    """Graphs are captured on the device that computes, not on the first one, also if that one has
    captured some before."""
    with closing(
        workloads.group("cuda:0", parse_memory("torch:cuda:0"), Workload("decode", **SMALL))
    ):
        pass
    asked = Workload("decode", model="1b", prompt=64, tokens=8)
    memory = parse_memory("torch:cuda:1")
    with closing(workloads.group("cuda:1", memory, asked)) as group:
        timings = [run(group, 1).span for _ in range(3)]
        assert group.mismatch() is None
        done = group.done()
    least = done.demands.memory_bytes / done.rates.memory
    assert min(timings) > least / 2, "faster than the device reads its memory"


@pytest.mark.ai
def test_a_wrong_cache_is_noticed(workloads):
    """The scores of the last step no longer agree with a pass over all tokens."""
    with closing(workloads.group("cpu", CPU, Workload("decode", **SMALL))) as group:
        work = group._work
        work._cache.all[:, :, :, 4:8] = 0.5
        run(group, 1)
        assert "off by" in group.mismatch()


@pytest.mark.ai
def test_the_decoder_is_the_one_that_transformers_defines(workloads, torch):
    pytest.importorskip("transformers")
    for kind in ("prefill", "decode"):
        asked = Workload(kind, batch=2, implementation="transformers", **SMALL)
        _, wrong, done = carried_out(workloads, asked)
        assert wrong is None
        assert done.how[0].startswith("transformers ")


@pytest.mark.ai
def test_the_same_seed_makes_the_same_tokens(workloads):
    made = []
    for seed in (1, 1, 2):
        with closing(workloads.group("cpu", CPU, Workload("decode", seed=seed, **SMALL))) as group:
            run(group, 1)
            made.append(group._work._made.tolist())
    assert made[0] == made[1] != made[2]


@pytest.mark.ai
def test_what_does_not_fit_is_said_with_its_batch_and_what_it_needs(workloads):
    asked = Workload("prefill", batch=1 << 20, prompt=2048, numbers="fp32")
    with pytest.raises(Unsupported, match=r"out of memory at batch 1048576 \(needs \d.* torch:cpu"):
        workloads.group("cpu", CPU, asked)
    carried_out(workloads, Workload("prefill", batch=1, **SMALL))  # the sweep goes on


@pytest.mark.ai
def test_an_allocation_that_fails_after_all_is_no_error(workloads, monkeypatch, torch):
    from linkgauge.rooms.ai.workloads import decoder

    def fails(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(decoder.KeyValueCache, "__init__", fails)
    with pytest.raises(Unsupported, match="out of memory at batch 4"):
        workloads.group("cpu", CPU, Workload("prefill", batch=4, **SMALL))


@pytest.mark.ai
def test_the_parts_of_a_step_add_up_to_it(workloads):
    _, _, done = carried_out(workloads, Workload("training", prompt=32), samples=4)
    assert [stage.name for stage in done.stages] == [
        "input", "forward", "backward", "synchronisation", "optimiser",
    ]  # fmt: skip
    assert sum(stage.summary.median for stage in done.stages) <= done.seconds * 1.5


@pytest.mark.ai
@pytest.mark.parametrize("overlap", [False, True])
def test_two_ranks_add_up_their_gradients(workloads, overlap):
    asked = Workload("training", prompt=16, ranks=2, overlap=overlap)
    _, wrong, done = carried_out(workloads, asked)
    assert wrong is None
    assert done.how[0] == "2 ranks by gloo"
    assert done.communication > 0
    assert done.demands.between_devices == 4 * asked.shape.layers * asked.shape.layer_parameters


@pytest.mark.ai
def test_a_trace_is_a_file_that_perfetto_reads(workloads, tmp_path):
    import json
    from pathlib import Path

    asked = Workload("prefill", trace=str(tmp_path), **SMALL)
    _, _, done = carried_out(workloads, asked)
    events = json.loads(Path(done.trace).read_text())["traceEvents"]
    assert any(event.get("name") == "prefill" for event in events)
    assert sum(share.fraction for share in done.shares) == pytest.approx(1.0)
