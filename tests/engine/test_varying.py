"""Settings are measured in rounds, in an order that drift does not favour."""

from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.engine.controller import Observer
from linkgauge.engine.request import Selection, Written
from linkgauge.engine.session import Session
from linkgauge.engine.varying import Rounds, orders, plan_all
from linkgauge.engine.worker import LocalWorker
from sim_kit import MACHINE
from vary_kit import experiment, opening, runs_of, variant

NAMED = Selection(("host_to_host_memcpy_copy_cpu",))
COPY = Written("host:0 -> host:0 by cpu")
ONE = variant("one", MACHINE, COPY)


@given(st.integers(1, 8), st.integers(0, 12), st.integers())
def test_each_round_has_every_setting_and_each_second_one_goes_backwards(settings, rounds, seed):
    found = list(orders(settings, rounds, Random(seed)))
    assert len(found) == rounds
    assert all(sorted(order) == list(range(settings)) for order in found)
    assert all(there[::-1] == back for there, back in zip(found[::2], found[1::2], strict=False))


class EndsAt(Observer):
    """Ctrl-C at the visit of this number."""

    def __init__(self, number):
        self.left = number

    def prepares(self, setting, number):
        pass

    def started(self, sheet, cell):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_a_run_that_ctrl_c_ends_is_the_last_one_and_not_whole():
    runs = runs_of(experiment(ONE, ONE), EndsAt(4))
    assert [next(runs).kept.finished for _ in range(4)] == [True, True, True, False]
    with pytest.raises(KeyboardInterrupt):
        next(runs)


def test_all_plans_have_the_sizes_of_the_one_with_the_least_memory():
    """Default sizes depend on what is free, which varies from moment to moment."""
    free = iter((8 << 30, 2 << 30))

    @contextmanager
    def with_less_and_less(request):
        session = Session(request, LocalWorker(request.settings))
        session.machine = _with_free(session.machine, next(free))
        yield session

    named = replace(ONE, request=replace(ONE.request, profile="quick", what=NAMED))
    with opening(with_less_and_less):
        plans = plan_all([named, named], Rounds())
    assert len({sheet.size for plan in plans for sheet in plan}) == 1
    assert plans[0][0].size == (2 << 30) // 8


def _with_free(machine, bytes_free):
    nodes = tuple(
        replace(node, memory_available=bytes_free, last_level_cache=1 << 30)
        for node in machine.host.nodes
    )
    return replace(machine, host=replace(machine.host, nodes=nodes))
