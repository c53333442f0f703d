"""What most of a part's peers do, too, is no fault of this part."""

import pytest

from command_kit import called

HEAD = "nvbandwidth Version: v0.4\n\nCUDA Runtime Version: 12040\nDriver Version: 550.54\n\n"
DEVICES = "".join(f"Device {n}: NVIDIA H800\n" for n in range(8)) + "\n"


def table(name, arrow, figures):
    columns = "".join(f"{n:10d}" for n in range(8))
    row = "".join(f"{figure:10.2f}" for figure in figures)
    title = f"memcpy CE CPU(row) {arrow} GPU(column) bandwidth (GB/s)"
    return f"Running {name}.\n{title}\n  {columns}\n 0{row}\n\nSUM {name} {sum(figures):.2f}\n\n"


@pytest.mark.parametrize(
    ("both_ways", "code"), [([34.4, 50.5, *[34.4] * 6], 0), ([50.5, 34.4, *[50.5] * 6], 1)]
)
def test_a_link_is_no_failure_where_most_others_are_as_slow(tmp_path, both_ways, code):
    text = tmp_path / "nvbandwidth.txt"
    text.write_text(
        HEAD + DEVICES + table("host_to_device_memcpy_ce", "->", [55.2] * 8)
        + table("device_to_host_memcpy_ce", "<-", [55.3] * 8)
        + table("host_to_device_bidirectional_memcpy_ce", "<->", [37.4] * 8)
        + table("device_to_host_bidirectional_memcpy_ce", "<->", both_ways)
    )  # fmt: skip
    done = called("judge", text)
    assert (done.returncode, "\nfail slow" in done.stdout) == (code, code == 1)
