"""The backend of real GPUs, for the tests of cuda that bring no other one."""

import pytest

from cuda_kit import on_gpus
from linkgauge.model.notation import parse_transfer


@pytest.fixture(scope="module")
def backend():
    opened = on_gpus(tuned=False)
    yield opened
    opened.close()


@pytest.fixture
def pair(backend):
    reason = backend.refusal(parse_transfer("cuda:0 -> cuda:1 by cuda:0.ce"))
    if reason is not None:
        pytest.skip(reason)
    return backend
