"""What a worker knows of its buffers' contents from one repetition to the next."""

from fakes import FakeBackend
from linkgauge.backends.protocol import SamplingPolicy
from linkgauge.engine.measuring.pool import SETS
from linkgauge.engine.workers.outcomes import Repetition
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import worker_with

SIZE = 4096
THERE, BACK = "fake:0 -> fake:1 by fake:0.sm", "fake:1 -> fake:0 by fake:0.sm"
ALL = ["fake:0", "fake:1"]


class Noted(FakeBackend):
    """Notes which memories are filled."""

    def __init__(self, *, steady=True):
        super().__init__()
        self.filled = []
        self.policy = SamplingPolicy(steady=steady)

    def prepare(self, copies, operation="copy"):
        group = super().prepare(copies, operation)
        group.policy = self.policy
        return group

    def fill(self, buffer, *content, **inverted):
        self.filled.append(str(buffer.memory))
        super().fill(buffer, *content, **inverted)


def repetition(worker, number, text):
    cell = PlannedCell("0", "0", parse_transfers(text), Report.FIRST)
    (found,) = worker.measure([cell], SIZE, Repetition(number))
    return found.status


def filled(*texts, harm=lambda turn, group: None, verify=True, steady=True):
    """The memories filled in each repetition. All repetitions take the same buffers."""
    backend = Noted(steady=steady)
    worker = worker_with(Settings((SIZE,), samples=2, verify=verify), fake=backend)
    found = []
    for turn, text in enumerate(texts):
        backend.filled.clear()
        backend.on_sample = lambda group, turn=turn: harm(turn, group)
        found.append((repetition(worker, turn * SETS, text), list(backend.filled)))
    return found


def test_a_source_that_still_holds_the_pattern_is_not_filled_again():
    assert filled(THERE, THERE) == [("pass", ALL), ("pass", ["fake:1"])]


def test_only_steady_copies_leave_a_source_as_it_is():
    assert filled(THERE, THERE, steady=False) == [("pass", ALL)] * 2


def test_a_destination_becomes_a_source_that_holds_the_pattern():
    assert filled(THERE, BACK, THERE) == [("pass", ALL), ("pass", ["fake:0"]), ("pass", ["fake:1"])]


def test_both_ends_of_both_ways_are_filled_before_and_after():
    """The warm-up has written to both."""
    both = filled(THERE, "fake:0 <-> fake:1 by fake:0.sm", THERE)
    assert [memories for _, memories in both] == [ALL] * 3


def test_what_is_only_read_is_filled_before_and_after():
    """A read does not show whether its source holds the pattern."""
    read = filled(THERE, "fake:0 -> null by fake:0.sm", THERE)
    assert [memories for _, memories in read] == [ALL, ["fake:0"], ALL]


def test_another_set_of_buffers_is_filled_for_itself():
    backend = Noted()
    worker = worker_with(Settings((SIZE,), samples=2), fake=backend)
    assert [repetition(worker, number, THERE) for number in range(3)] == ["pass"] * 3
    assert backend.filled == ALL * 3


def test_after_wrong_bytes_everything_is_filled_again():
    def harm(turn, group):
        if turn == 0:
            group.copies[0].source.data[7] = 0
            group.copies[0].destination.data[7] = 0

    assert filled(THERE, THERE, harm=harm) == [("fail", ALL), ("pass", ALL)]


def test_a_source_that_changes_between_repetitions_is_noticed():
    def harm(turn, group):
        if turn == 1:
            group.copies[0].source.data[7] = 0
            group.open()

    assert filled(THERE, THERE, harm=harm) == [("pass", ALL), ("fail", ["fake:1"])]


def test_nothing_is_filled_where_nothing_is_verified():
    assert filled(THERE, THERE, verify=False) == [("pass", [])] * 2
