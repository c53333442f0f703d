"""What a visitor sees of `make run` on a host without accelerators."""

from command_kit import linkgauge

BRIEF = ("run", "--backend", "host", "--profile", "quick", "--samples", "2", "--size", "8M",
         "--no-report", "--budget", "5m")  # fmt: skip


def test_the_quick_profile_of_a_host_alone_is_few_figures_in_plain_words(tmp_path):
    done = linkgauge(*BRIEF, cwd=tmp_path, COLUMNS="120")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout[done.stdout.index("host  8 MiB") :].splitlines()
    rows = rows[: rows.index("")]
    figures = [row for row in rows if not row.startswith("cpu_primes_all: ")]
    assert 5 <= len(figures) <= 8
    for name in ("copy, all ", "triad, all ", "latency of memory", "primes up to 10,000, all "):
        assert any(row.startswith(name) for row in figures)
    assert "memory_stream" not in done.stdout
    assert "median" in head
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("compare: ")]
    assert said
    assert "skipped" not in done.stdout


def test_one_sample_leaves_no_empty_column(tmp_path):
    brief = [*BRIEF]
    brief[brief.index("--samples") + 1] = "1"
    done = linkgauge(*brief, cwd=tmp_path, COLUMNS="120")
    head = next(line for line in done.stdout.splitlines() if line.startswith("host  8 MiB"))
    assert head.split() == ["host", "8", "MiB", "median", "unit"]
