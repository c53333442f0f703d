"""What is shown of a run at several sizes, after its tables."""

import pytest
from msgspec.structs import replace

from linkgauge.judge.lines import with_lines
from linkgauge.report.console import make_console
from linkgauge.report.live import whole_run_lines
from linkgauge.report.sweep_text import sweep_lines
from sweep_kit import KI, MI, RATE, ping_pongs, run, sweep

PAIR = {("0", "0"): 1.0, ("0", "1"): 0.5}


def shown(*results, lines=sweep_lines):
    console = make_console()
    with console.capture() as taken:
        for line in lines(with_lines(run(*results))):
            console.print(line)
    return taken.get().splitlines()


def test_a_sweep_is_a_curve_and_a_line_for_each_path():
    assert shown(*sweep(PAIR)) == [
        "h2d  sim  64 KiB to 64 MiB",
        "memcpy CE host(row) -> device(column) bandwidth (GB/s), row, column by size",
        "         64 KiB     1 MiB    16 MiB    64 MiB",
        "0, 0      19.80     45.65     49.70     49.93",
        "0, 1       9.90     22.82     24.85     24.96",
        (
            "0, 0  time = 2.00 µs + bytes ÷ 50.00 GB/s, half of that bandwidth at 97.7 KiB "
            "(within 0.1%)"
        ),
        (
            "0, 1  time = 4.00 µs + bytes ÷ 25.00 GB/s, half of that bandwidth at 97.7 KiB "
            "(within 0.1%)"
        ),
        "",
    ]


def test_a_run_shows_one_table_of_all_sizes_and_the_line():
    assert shown(*sweep(PAIR), lines=whole_run_lines)[:6] == [
        "sim  GB/s by size",
        "            64 KiB   1 MiB  16 MiB  64 MiB",
        "h2d (0, 0)   19.80   45.65   49.70   49.93",
        "h2d (0, 1)    9.90   22.82   24.85   24.96",
        (
            "0, 0  time = 2.00 µs + bytes ÷ 50.00 GB/s, half of that bandwidth at 97.7 KiB "
            "(within 0.1%)"
        ),
        (
            "0, 1  time = 4.00 µs + bytes ÷ 25.00 GB/s, half of that bandwidth at 97.7 KiB "
            "(within 0.1%)"
        ),
    ]


def test_a_curve_of_many_sizes_stands_upright():
    text = shown(*sweep(PAIR, sizes=tuple(KI << n for n in range(17))))
    assert text[2].split() == ["0,", "0", "0,", "1"]
    assert text[3].split()[:2] == ["1", "KiB"]
    assert text[19].split()[:2] == ["64", "MiB"]


def test_of_many_paths_the_extremes_are_shown():
    paths = {("0", str(n)): 1 - n / 40 for n in range(20)}
    text = shown(*sweep(paths))
    assert text[1].endswith("of 20 paths by size")
    assert [line.split()[0] for line in text[3:6]] == ["lowest", "median", "highest"]
    assert text[5].split()[-1] == "49.93"
    assert text[6] == (
        "20 paths  latency 2.00 µs to 3.81 µs, bandwidth 26.25 GB/s to 50.00 GB/s, "
        "half of it at 97.7 KiB, within 0.1%"
    )


def test_of_many_paths_those_without_a_line_are_counted():
    paths = {("0", str(n)): 1.0 for n in range(18)}
    first, *others = sweep(paths)
    slow = replace(first.cells[0], summary=replace(first.cells[0].summary, median=1e9))
    text = shown(replace(first, cells=(slow, *first.cells[1:])), *others)
    assert text[-3].startswith("17 paths  latency 2.00 µs, ")
    assert text[-2] == "1 path  no line fits"


def test_latencies_whose_sizes_are_columns_have_lines_below():
    assert shown(ping_pongs()) == [
        "latency_copy_pingpong  sim  64 KiB to 64 MiB",
        (
            "host:0-0  time = 2.00 µs + bytes ÷ 50.00 GB/s, half of that bandwidth at 97.7 KiB "
            "(within 0.1%)"
        ),
        "",
    ]


@pytest.mark.parametrize(
    ("sizes", "time", "says"),
    [
        (
            (64 * KI, 1 * MI, 16 * MI),
            lambda size, _: size / (1e11 if size < MI else 1e10),
            "0, 0  no line fits: ",
        ),
        (
            (256 * MI, 512 * MI, 1024 * MI),
            lambda size, _: 2e-6 + size / RATE,
            "with a latency too short to show at 256 MiB (within 0.1%)",
        ),
        (
            (1, 4, 16),
            lambda size, _: 2e-6 + size / RATE,
            "0, 0  time = 2.00 µs, whatever the size (within 0.1%)",
        ),
        (
            (256 * KI, 1 * MI, 16 * MI),
            lambda size, _: 2e-6 + size / RATE,
            "97.7 KiB, below the sizes measured",
        ),
        (
            (KI, 16 * KI, 64 * KI),
            lambda size, _: 2e-6 + size / RATE,
            "97.7 KiB, above the sizes measured",
        ),
    ],
)
def test_what_the_sizes_do_not_show_is_said(sizes, time, says):
    *_, line, _ = shown(*sweep({("0", "0"): 1.0}, sizes, time=time))
    assert says in line


def test_one_or_two_sizes_are_no_sweep():
    assert shown(*sweep(PAIR, sizes=(64 * KI, 64 * MI))) == []
    assert shown(ping_pongs(sizes=(64 * KI, 64 * MI))) == []


def test_a_size_that_was_not_measured_has_no_figure():
    first, *others = sweep(PAIR)
    first = replace(first, cells=(first.cells[0],))
    assert shown(first, *others)[4].split() == ["0,", "1", "N/A", "22.82", "24.85", "24.96"]


def test_what_is_simulated_says_so():
    assert shown(*(replace(one, simulated=True) for one in sweep(PAIR)))[0].endswith("SIMULATED")
