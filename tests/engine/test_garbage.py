"""What a process has left of earlier runs is freed: a watch measures for months."""

import gc

from linkgauge.engine.garbage import collect_seldom


def test_only_what_is_loaded_before_the_first_run_is_kept_for_good():
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        collect_seldom()
        frozen = gc.get_freeze_count()
        left = [[] for _ in range(1000)]
        collect_seldom()
        assert gc.get_freeze_count() <= frozen
        assert gc.is_tracked(left)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
