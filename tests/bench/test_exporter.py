"""bench/exporter.py, for a second: every scrape is answered."""

import exporter as bench


def test_a_hundred_scrapes_a_second_are_answered(tmp_path):
    run = bench.measure("riscv-2gpu", tmp_path)
    with (
        bench.exporting(tmp_path, "--machine", "riscv-2gpu") as (pid, port),
        bench.adding(tmp_path, run, 0.3),
    ):
        bench.scrape(port)
        found = bench.scrapes(pid, port, rate=100, seconds=1)
    assert (found.errors, len(found.seconds)) == ([], 100)
    assert found.size > 1000
    assert found.after - found.before < 20 << 10
