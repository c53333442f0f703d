"""Backends of GPUs, and torch."""

import pytest

from conformance.subjects import Subject


class Torch(Subject):
    """torch's `cpu`, which is there wherever torch is."""

    name = "torch"
    arrays = ("torch:cpu:0", "sm")
    memories = ("torch:cpu:0", "host:0", "host:0/pageable")
    paths = (
        "host:0 -> torch:cpu:0 by ce",
        "torch:cpu:0 -> host:0 by ce",
        "torch:cpu:0 -> torch:cpu:0 by ce",
        "host:0/pageable -> torch:cpu:0 by ce",
        "torch:cpu:0 -> torch:cpu:0 by sm",
        "null -> torch:cpu:0 by sm",
    )
    groups = (
        "host:0 -> torch:cpu:0 by ce & torch:cpu:0 -> host:0 by ce x2",
        "torch:cpu:0 -> torch:cpu:0 by sm & host:0 -> torch:cpu:0 by ce",
        " & ".join(["host:0 -> torch:cpu:0 by ce"] * 16),
    )
    refused = (
        "host:0 -> torch:cpu:77 by ce",
        "host:0 -> torch:tpu:0 by ce",
        "host:77 -> torch:cpu:0 by ce",
        "host:0 -> cuda:0 by torch:cpu:0.ce",
        "host:0 <-> torch:cpu:0 by sm",
        "host:0 -> torch:cpu:0 by sm",
        "torch:cpu:0 -> null by sm",
        "host:0 -> host:0 by torch:cpu:0.ce",
        "host:0/wc -> torch:cpu:0 by ce",
    )
    chases = ("torch:cpu:0 -> null by sm",)

    def corrupt(self, buffer, offset):
        buffer.tensor[offset] ^= 0x10

    def content(self, buffer):
        return bytes(buffer.tensor.tolist())


class TorchCuda(Torch):
    """The same on a device of CUDA or ROCm."""

    arrays = ("torch:cuda:0", "sm")
    memories = ("torch:cuda:0", "host:0", "host:0/pageable")
    paths = tuple(path.replace("torch:cpu", "torch:cuda") for path in Torch.paths)
    groups = tuple(group.replace("torch:cpu", "torch:cuda") for group in Torch.groups)
    refused = tuple(text.replace("torch:cpu", "torch:cuda") for text in Torch.refused)
    chases = ("torch:cuda:0 -> null by sm",)


class TorchCudaPair(TorchCuda):
    memories = ("torch:cuda:1",)
    paths = ("torch:cuda:0 -> torch:cuda:1 by ce", "torch:cuda:1 -> torch:cuda:0 by ce")
    groups = (
        "torch:cuda:0 -> torch:cuda:1 by ce & torch:cuda:1 -> torch:cuda:0 by ce",
        "torch:cuda:0 -> torch:cuda:1 by ce & host:0 -> torch:cuda:0 by ce",
    )
    refused = ("torch:cuda:0 -> torch:cuda:1 by torch:cuda:1.ce",)

    def __init__(self):
        super().__init__()
        if len(self.backend.devices()) < 3:
            pytest.skip("needs two devices of CUDA or ROCm")


class Cuda(Subject):
    name = "cuda"
    arrays = ("cuda:0", "sm")
    memories = ("cuda:0", "host:0", "host:0/pageable")
    paths = (
        "host:0 -> cuda:0 by ce",
        "cuda:0 -> host:0 by ce",
        "cuda:0 -> cuda:0 by ce",
        "host:0 -> cuda:0 by sm",
        "cuda:0 -> host:0 by sm",
        "cuda:0 -> cuda:0 by sm",
        "host:0 <-> cuda:0 by sm",
        "cuda:0 -> null by sm",
        "null -> cuda:0 by sm",
        "host:0/pageable -> cuda:0 by ce",
        "cuda:0 -> host:0/mapped by sm",
        "host:0/wc -> cuda:0 by ce",
        "host:0/managed -> cuda:0 by ce",
    )
    groups = (
        "host:0 -> cuda:0 by ce & cuda:0 -> host:0 by ce x2",
        "host:0 -> cuda:0 by sm & cuda:0 -> host:0 by ce & cuda:0 -> cuda:0 by sm",
        " & ".join(["host:0 -> cuda:0 by ce"] * 16),
    )
    refused = (
        "host:0 -> cuda:77 by ce",
        "host:77 -> cuda:0 by ce",
        "host:0 -> opencl:0 by cuda:0.ce",
        "host:0 <-> cuda:0 by ce",
        "cuda:0 -> null by ce",
    )
    chases = ("host:0 -> null by cuda:0.sm", "cuda:0 -> null by sm")
    ranks = ("cuda:0",)

    def move(self, buffer, *how):
        if buffer.memory.is_host:
            super().move(buffer, *how)
        else:
            buffer.home.call("cuMemcpy", *how)


class CudaPair(Cuda):
    memories = ("cuda:1",)
    paths = (
        "cuda:0 -> cuda:1 by ce",
        "cuda:0 -> cuda:1 by cuda:1.ce",
        "cuda:0 -> cuda:1 by sm",
        "cuda:1 -> cuda:0 by cuda:0.sm",
        "cuda:0 <-> cuda:1 by sm",
    )
    groups = (
        "cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce",
        "cuda:0 -> cuda:1 by sm & host:0 -> cuda:0 by ce & cuda:1 -> host:0 by sm x2",
    )
    chases = ("cuda:1 -> null by cuda:0.sm",)
    ranks = ("cuda:0", "cuda:1")

    def __init__(self):
        super().__init__()
        if len(self.backend.devices()) < 2:
            pytest.skip("needs two CUDA devices")
