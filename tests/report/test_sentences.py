"""What a person reads of each note."""

import pytest

from linkgauge.model.notes import (
    Beside,
    Imprecise,
    NearCache,
    NotRevisited,
    Profiled,
    Remark,
    Unjudged,
)
from linkgauge.report.sentences import sentence


@pytest.mark.parametrize(
    ("note", "says"),
    [
        (Beside(2), "measured at the same time as 2 other pairs"),
        (
            Imprecise(0.01, 0.0213, 9),
            (
                "precision of ±1.00% missed: ±2.13% after 9 samples; raise --max-time or "
                "quiet the machine"
            ),
        ),
        (
            Imprecise(0.01, None, 1),
            (
                "precision of ±1.00% missed: no interval after 1 samples; raise --max-time or "
                "quiet the machine"
            ),
        ),
        (NotRevisited("sim:0 set aside"), "not visited again: sim:0 set aside"),
        (
            Unjudged("≥ 0.9 × achievable", "limits.yml line 2", "unknown: no link"),
            "cannot judge limit ≥ 0.9 × achievable (limits.yml line 2): unknown: no link",
        ),
        (Profiled("nsys"), "measured under nsys: do not compare it with other figures"),
        (Remark("one DRAM"), "one DRAM"),
        (
            NearCache(4 << 10, 32 << 20, 4),
            "4 KiB fit in the last-level cache (32.0 MiB): the figure may be the cache's",
        ),
        (
            NearCache(32 << 20, 32 << 20, 4),
            (
                "32 MiB are less than 4 times the last-level cache (32.0 MiB): the figure may be "
                "partly the cache's"
            ),
        ),
    ],
)
def test_a_note_is_a_sentence(note, says):
    assert sentence(note) == says
