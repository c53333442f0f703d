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
from linkgauge.model.errors import InputError, LinkgaugeError
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


def test_each_run_of_a_simulated_machine_has_noise_of_its_own():
    noisy = variant("noisy", MACHINE.replace("noise: 0%", "noise: 5%"), COPY)
    runs = runs_of(experiment(noisy, noisy, rounds=4))
    samples = [one.run.results[0].cells[0].samples for one in runs]
    assert len(set(samples)) == len(samples) == 8
    again = runs_of(experiment(noisy, noisy, rounds=4))
    assert [one.run.results[0].cells[0].samples for one in again] == samples


def test_runs_are_kept_by_their_settings(tmp_path):
    kept = replace(ONE, request=replace(ONE.request, out=str(tmp_path), label="mine"))
    (one, other) = runs_of(experiment(kept, rounds=2))
    assert one.folder.parent == other.folder.parent == tmp_path / "simulated-test" / "mine"
    assert one.kept.folder == str(one.folder) != other.kept.folder
    assert (one.kept.status, one.kept.finished) == ("pass", True)


class TestTheCommandBeforeARun:
    def test_finds_the_setting_in_its_environment(self, monkeypatch):
        monkeypatch.setenv("GONE", "here")
        some = variant("0-1", MACHINE, COPY, environment={"COLOUR": "red", "GONE": None})
        command = 'echo "$LINKGAUGE_SETTING $LINKGAUGE_CPUS $LINKGAUGE_ROUND $COLOUR ${GONE-gone}"'
        printed = [
            one.kept.prepared for one in runs_of(experiment(some, rounds=2, prepare=command))
        ]
        assert printed == ["0-1 0-1 1 red gone", "0-1 0-1 2 red gone"]

    @pytest.mark.parametrize(
        ("command", "says"),
        [
            ("echo no such governor >&2; exit 3",
             r"before --cpus one, round 1 \(exit code 3\): no such governor"),
            ("exit 1", r"\(exit code 1\)$"),
            ("kill -9 $$", r"\(a signal\)"),
        ],
    )  # fmt: skip
    def test_ends_everything_if_it_fails(self, command, says):
        with pytest.raises(LinkgaugeError, match=says):
            next(runs_of(experiment(ONE, rounds=2, prepare=command)))


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


class TestWhatDoesNotVary:
    @pytest.mark.parametrize(
        ("engines", "says"),
        [
            ({"numa_node": 0}, "--numa-node has no effect"),
            ({"affinity": False}, "--affinity has no effect"),
            ({"streams": 2}, "--streams: only backend cuda"),
        ],
    )
    def test_engines_of_no_device(self, engines, says):
        settings = ONE.request.settings
        settings = replace(settings, engines=replace(settings.engines, **engines))
        with pytest.raises(InputError, match=says):
            experiment(replace(ONE, request=replace(ONE.request, settings=settings)))


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
