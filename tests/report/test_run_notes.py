"""Notes below a run's figures: what several sizes have in common is said once."""

from msgspec.structs import replace

from linkgauge.model.notes import NearCache, Remark
from linkgauge.report.run_notes import folded_notes, note_lines
from sweep_kit import KI, MI, run, sweep

CACHE = 32 * MI


def noted(sizes, notes_of, lines=note_lines, **more):
    results = [
        replace(one, cells=tuple(replace(c, notes=notes_of(one.size), **more) for c in one.cells))
        for one in sweep({("0", "0"): 1.0}, sizes)
    ]
    return [line.plain for line in lines(run(*results))]


def test_sizes_near_the_cache_are_one_sentence_each_way():
    sizes = (64 * KI, 1 * MI, 16 * MI, 32 * MI, 64 * MI)
    assert noted(sizes, lambda size: (NearCache(size, CACHE, 4), Remark("by libc"))) == [
        (
            "note (3 cells): 64 KiB to 16 MiB fit in the last-level cache (32.0 MiB): the "
            "figures may be the cache's"
        ),
        "note (5 cells): by libc",
        (
            "note (2 cells): 32 MiB to 64 MiB are less than 4 times the last-level cache "
            "(32.0 MiB): the figures may be partly the cache's"
        ),
    ]


def test_a_cell_with_buffers_of_two_sizes_counts_once():
    (line,) = noted((MI,), lambda size: (NearCache(size, CACHE, 4), NearCache(2 * size, CACHE, 4)))
    assert line.startswith("note (1 cell): 1 MiB to 2 MiB fit in")


def test_a_missed_precision_names_its_size_where_there_are_several():
    missed = {"stopped": "noise"}
    (line,) = noted((KI, 2 * KI), lambda _: (), **missed)
    assert "2 cells without an interval" in line
    loose = replace(sweep({("0", "0"): 1.0}, (KI,))[0].cells[0].summary, ci95=(1e8, 1e9))
    (line,) = noted((KI, 2 * KI), lambda _: (), summary=loose, **missed)
    assert "h2d 1 KiB (0, 0) ±" in line
    assert "h2d 2 KiB (0, 0) ±" in line
    (line,) = noted((KI,), lambda _: (), summary=loose, **missed)
    assert "missed: h2d (0, 0) ±" in line


def folded(*texts):
    return noted((MI,), lambda _: tuple(map(Remark, texts)), folded_notes)


def test_at_the_end_remarks_that_begin_alike_but_for_numbers_are_one():
    assert folded("host:0: read by a", "host:1: copy by b", "cuda:0: one", "host:0: c") == [
        "note (1 cell): host:0: read by a, and 2 like it (linkgauge show -v)",
        "note (1 cell): cuda:0: one",
    ]


def test_at_the_end_a_few_kinds_are_shown():
    lines = folded(*(f"kind {letter}: x" for letter in "abcdef"))
    assert len(lines) == 5
    assert lines[-1] == "note: 2 more (linkgauge show -v)"


def test_at_the_end_a_missed_precision_is_left_to_the_verdict():
    assert noted((MI,), lambda _: (), folded_notes, stopped="noise") == []
