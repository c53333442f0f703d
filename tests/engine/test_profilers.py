"""How profilers are called, and the files that they leave."""

import re
from pathlib import Path

import pytest

import linkgauge.kernels
from linkgauge.engine.profilers import ASIDE, WAITING, command_of

KERNELS = Path(linkgauge.kernels.__file__).parent
_KERNEL = re.compile(r"__global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\(([^)]*)\)")


def kernels():
    """The parameters of each kernel that there is."""
    found = {}
    for file in KERNELS.glob("*.cu"):
        text = re.sub(r"#if PROGRESS.*?#endif", "", file.read_text(), flags=re.DOTALL)
        found |= dict(_KERNEL.findall(text))
    return found


class TestKernelsThatNcuLeavesOut:
    @pytest.fixture
    def wanted(self):
        command = command_of("ncu", "ncu", Path("x"))
        name = command[command.index("--kernel-name") + 1]
        return re.compile(name.removeprefix("regex:"))

    def test_are_kernels_that_there_are(self):
        assert {*WAITING, *ASIDE} <= kernels().keys()

    def test_are_all_that_others_see_at_work(self):
        """What a kernel shares with somebody who watches it is volatile."""
        sharing = {name for name, parameters in kernels().items() if "volatile" in parameters}
        assert sharing
        assert sharing <= {*WAITING}

    def test_are_not_those_that_are_measured(self, wanted):
        profiled = {name for name in kernels() if wanted.search(name)}
        assert profiled == {"arrays", "copy", "chase", "multiply_add", "read", "write"}
        assert wanted.search("filler_of_a_library")
