"""The backends that the suite runs over."""

import pytest

from conformance.gpu_subjects import Cuda, CudaPair, Torch, TorchCuda, TorchCudaPair
from conformance.subjects import Host, Npu, OpenCL, Sim, Subject
from linkgauge.model.errors import Unsupported

SUBJECTS = (
    Host,
    OpenCL,
    Sim,
    Npu,
    pytest.param(Torch, marks=pytest.mark.ai),
    pytest.param(TorchCuda, marks=pytest.mark.gpu),
    pytest.param(TorchCudaPair, marks=pytest.mark.gpu_pairs),
    pytest.param(Cuda, marks=pytest.mark.gpu),
    pytest.param(CudaPair, marks=pytest.mark.gpu_pairs),
)


@pytest.fixture(scope="module", params=SUBJECTS, ids=lambda subject: subject.__name__)
def subject(request):
    try:
        opened: Subject = request.param()
    except Unsupported as reason:
        pytest.skip(str(reason))
    yield opened
    opened.backend.close()
