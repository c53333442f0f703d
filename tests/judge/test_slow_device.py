"""A device that is a little slow is named, and not the engines that copy through it."""

import pytest

from command_kit import called


@pytest.mark.parametrize("rate", ["90%", "75%"])
def test_totals_of_all_devices_accuse_no_engines(tmp_path, rate):
    """Kernels over the same parts are as fast only in totals of other devices."""
    fault = ("--fault", f"slow sim:2 rate={rate}")
    done = called("run", "--machine", "dgx-h200-8", "--profile", "quick", "--no-report", *fault,
                  cwd=tmp_path)  # fmt: skip
    assert "slow  sim:2: " in done.stdout
    assert "copy engines" not in done.stdout
