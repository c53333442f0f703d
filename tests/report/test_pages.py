"""What huge pages and policies make of a figure is said beside the matrix."""

from msgspec.structs import replace

from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Report
from linkgauge.report.pages import page_lines
from report.samples import cell, result


def lines(*cells):
    return [str(line) for line in page_lines(result("x", "x", "pass", cells, backend="host"))]


def copy(row, kind, figure):
    end = f"host:0/{kind}" if kind else "host:0"
    return cell(row, kind, [f"{end} -> {end} by cpu"], figure)


def chase(kind, size, nanoseconds):
    made = cell(f"0 {kind}", size, [f"host:0/{kind} -> null by cpu*1"], nanoseconds, Report.LATENCY)
    return replace(made, operation="chase")


def test_huge_pages_are_compared_with_base_pages_of_their_row():
    cells = copy("0", "base", 10), copy("0", "thp", 12), copy("0", "hugetlb", 11)
    assert lines(*cells) == ["huge pages (0): thp 1.20, hugetlb 1.10 times base pages"]
    assert lines(*cells[1:]) == []


def test_policies_are_compared_with_memory_bound_to_its_node():
    cells = copy("1", "", 20), copy("1", "interleave", 15)
    assert lines(*cells) == ["policies (1): interleave 0.75 times bind"]


def test_the_tlbs_share_is_what_huge_pages_save_of_a_latency():
    cells = [
        chase("base", "1 MiB", 10), chase("huge", "1 MiB", 10),
        chase("base", "1 GiB", 100), chase("huge", "1 GiB", 80),
        chase("base", "2 GiB", 120),
    ]  # fmt: skip
    assert lines(*cells) == [
        "TLB (0 huge): 20% at 1 GiB of the base pages' latency; within noise at 1 MiB"
    ]


def test_of_a_long_curve_some_sizes_are_named_the_last_among_them():
    sizes = [f"{size} KiB" for size in range(1, 21)]
    cells = [chase(kind, s, ns) for s in sizes for kind, ns in (("base", 4), ("thp", 3))]
    (line,) = lines(*cells)
    assert line.count("25% at") == 6
    assert "20 KiB" in line


def test_work_that_is_in_no_memory_has_no_pages():
    primes = replace(copy("0", "", 3e3), transfers=parse_transfers("null -> null by host:0.cpu*2"))
    assert lines(primes) == []
