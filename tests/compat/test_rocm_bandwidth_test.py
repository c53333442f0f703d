"""`linkgauge as rocm-bandwidth-test` prints what a reader of that tool's output finds."""

import re

import pytest

from compat_kit import MadeUp, rated, spoken

MB = 1 << 20


def rbt(words="", on="riscv-2gpu", **more):
    return spoken("rocm-bandwidth-test", words, on=on, **more)


def matrices(done):
    """The figures of each matrix, by its title, as scripts split them."""
    found = {}
    title = None
    for line in done.stdout.splitlines():
        words = line.split()
        if line.startswith(" " * 10 + "Inter") or "bandwidth GB/s" in line or "Validation" in line:
            title = line.strip()
            found[title] = []
        elif title and words and words[0].isdigit():
            found[title].append(words[1:])
    return found


def tables(done):
    """The lines of each table, by the numbers of source and destination."""
    found = {}
    for part in done.stdout.split("directional Benchmark Result")[1:]:
        ends = tuple(map(int, re.findall(r"(?:Src|Dst) Device Id: (\d+)", part)))
        found[ends] = re.findall(
            r"^(\d+ (?:Bytes|KB|MB)) +(\S+) +(\S+) +(\S+) +(\S+) *$", part, re.MULTILINE
        )
    return found


def test_validation_of_all_paths_or_one():
    rows = matrices(rbt("-v"))["Data Path Validation"]
    assert rows == [["N/A", "PASS", "PASS"], ["PASS"] * 3, ["PASS"] * 3]
    read = matrices(rbt("-s 0 -d 2 -v"))
    assert read["Data Path Validation"][0] == ["N/A", "N/A", "PASS"]
    assert read["Inter-Device Access"][1] == ["N/A", "1", "N/A"]
    done = rbt("-v", faults=["flip sim:1"])
    assert done.returncode == 1
    assert "FAIL" in {word for row in matrices(done)["Data Path Validation"] for word in row}


def test_after_ctrl_c_the_rest_is_not_available(monkeypatch):
    MadeUp(rated(), cells=1).install(monkeypatch)
    done = rbt("-a")
    assert done.returncode == 130
    row = matrices(done)["Unidirectional copy peak bandwidth GB/s"][0]
    assert (row[1] != "N/A", row[2]) == (True, "N/A")


def test_pairs_at_the_same_time_share_what_carries_both():
    alone = tables(rbt("-s 0 -d 1"))[0, 1][-1]
    both = tables(rbt("-k 0,1,2,1"))
    assert list(both) == [(0, 1), (2, 1)]
    assert both[0, 1][-1][0] == "512 MB"
    assert float(both[0, 1][-1][2]) == pytest.approx(float(alone[2]), rel=0.05)
    ((line,),) = tables(rbt("-s 1 -d 1 -m 64")).values()  # within a device both ends count
    assert float(line[4]) == pytest.approx(2 * 64 * MB / float(line[3]) / 1e3, rel=1e-3)
