"""`linkgauge ai`: what its options ask for, and what it says without torch."""

import pytest

from linkgauge.cli.ai import choice_of, names_of
from linkgauge.cli.main import app
from linkgauge.model.errors import InputError


def called(*words):
    return app(["ai", *words], standalone_mode=False, prog_name="linkgauge")


def chosen(model=None, batch=None, prompt=None, types=None, ranks=None, seed=1, how="own"):
    return choice_of(model, batch, prompt, types, 16, ranks, how, seed, None)


def test_workloads_go_by_their_benchmarks_names_with_and_without_ai():
    assert names_of(["inference", "ai_pipeline"]) == ("ai_inference", "ai_pipeline")
    assert names_of([]) == (
        "ai_inference", "ai_inference_streamed", "ai_kv_offload", "ai_training_step",
        "ai_pipeline",
    )  # fmt: skip
    with pytest.raises(InputError, match="unknown workload 'inferense', did you mean 'inference'"):
        names_of(["inferense"])


def test_options_are_lists_of_what_is_measured():
    choice = chosen("1b", "1, 8,8", "512", "bf16,fp32", 2)
    assert (choice.model, choice.batches, choice.prompts) == ("1b", (1, 8), (512,))
    assert (choice.numbers, choice.ranks) == (("bf16", "fp32"), 2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "70b"}, "--model 70b: there are 10m, 100m, 1b, 3b"),
        ({"batch": "0"}, "--batch 0: give numbers"),
        ({"prompt": "1,x"}, "--prompt 1,x: give numbers"),
        ({"types": "int8"}, "--types int8: there are bf16, fp16, fp32"),
        ({"ranks": 0}, "--ranks"),
        ({"seed": -1}, "--seed -1: give 0 to"),
        ({"how": "vllm"}, "--implementation vllm: there are own, transformers"),
    ],
)
def test_what_no_workload_takes_is_one_clear_line(wrong, said):
    with pytest.raises(InputError, match=said):
        chosen(**wrong)


def test_several_processes_are_for_training(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="are for training"):
        called("inference")


@pytest.mark.ai
def test_every_workload_at_its_small_size(tmp_path, monkeypatch, capsys):
    from linkgauge.engine.runs import RUN_FILE, read_run

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("LINKGAUGE_HISTORY", "none")
    monkeypatch.setenv("LINKGAUGE_NO_REPORT", "1")
    small = ["--device", "torch:cpu:0", "--model", "10m", "--prompt", "16", "--batch", "1"]
    assert called(*small, "--types", "fp32", "--samples", "2", "--out", str(tmp_path)) == 0
    (kept,) = tmp_path.rglob(RUN_FILE)
    run = read_run(kept)
    assert {result.benchmark for result in run.results} == set(names_of([]))
    cells = [cell for result in run.results for cell in result.cells]
    assert {cell.status for cell in cells} == {"pass"}
    assert all(cell.verified and cell.work is not None for cell in cells)
    shown = capsys.readouterr().out
    assert "first token, p50 (ms)" in shown
    assert "bounded by" in shown
