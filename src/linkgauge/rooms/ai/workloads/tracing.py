"""A trace of one more loop, for Chrome's about:tracing and Perfetto, and what its time went to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from linkgauge.model.workload import Share, Workload

from .site import Site

_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("communication", ("nccl", "allreduce", "all_reduce", "gloo", "c10d")),
    ("copies", ("memcpy", "memset", "copy_", "aten::to")),
    ("attention", ("flash", "fmha", "attention", "sdp")),
    ("products", ("gemm", "gemv", "cutlass", "matmul", "addmm", "::mm", "::bmm", "nvjet", "xmma",
                  "splitk", "linear")),
    ("optimiser", ("adam", "multi_tensor", "foreach")),
)  # fmt: skip
"""Words in the names of kernels, and of torch's own operators where the host computes. What has
none of them is element by element: norms, rotations, activations."""
REST = "other kernels"


def traced(
    site: Site, asked: Workload, run: Callable[[], None]
) -> tuple[tuple[Share, ...], str | None]:
    """Traces a loop if that was asked for: the shares of its time, and the name of the file."""
    if asked.trace is None:
        return (), None
    profile, kinds = site.torch.profiler.profile, site.torch.profiler.ProfilerActivity
    activities = [kinds.CPU, *((kinds.CUDA,) if site.is_cuda else ())]
    with profile(activities=activities) as recorded:
        with site.stage(asked.kind):
            run()
        site.synchronize()
    path = Path(asked.trace) / f"{name_of(asked)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    recorded.export_chrome_trace(str(path))
    return shares_of(_times(recorded, on_device=site.is_cuda)), str(path)


def name_of(asked: Workload) -> str:
    """`decode-bf16-batch8-prompt512`: a file for each cell."""
    parts = (asked.kind, asked.numbers, f"batch{asked.batch}", f"prompt{asked.prompt}")
    more = ("" if asked.overlap else "serial", f"balance{asked.balance}")
    own = more if asked.kind in ("training", "pipeline") else ()
    return "-".join(part for part in (*parts, *own) if part)


def _times(recorded: Any, *, on_device: bool) -> Iterable[tuple[str, float]]:
    """Names and the times of each by itself."""
    for event in recorded.key_averages():
        if on_device:
            time = getattr(event, "self_device_time_total", 0.0)
            if str(event.device_type).endswith("CUDA"):
                yield event.key, float(time)
        else:
            yield event.key, float(event.self_cpu_time_total)


def shares_of(times: Iterable[tuple[str, float]]) -> tuple[Share, ...]:
    """What part of all each kind takes, the largest first."""
    found: Counter[str] = Counter()
    for name, time in times:
        found[kind_of(name)] += time  # type: ignore[assignment]  # of numbers, whatever they count
    total = sum(found.values())
    return tuple(Share(kind, time / total) for kind, time in found.most_common() if time > 0)


def kind_of(name: str) -> str:
    lower = name.lower()
    return next((kind for kind, words in _KINDS if any(word in lower for word in words)), REST)
