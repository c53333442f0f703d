"""The bar of a run: what it says of the time left."""

import io
import re
from itertools import chain, zip_longest

import pytest
from rich.console import Console
from rich.progress import Progress

from linkgauge.report.progress import progress_bar, time_left
from recorded_kit import HEALTHY, recorded_run


def seconds_left(text):
    hours, minutes, seconds = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def repetitions_of(run):
    """How long each repetition of a real run took, in the order of repetitions: round by round."""
    each = [
        [cell.seconds / len(cell.repetitions)] * len(cell.repetitions)
        for result in run.results
        for cell in result.cells
        if cell.repetitions and cell.seconds
    ]
    rounds = zip_longest(*each)
    return [seconds for seconds in chain.from_iterable(rounds) if seconds]


@pytest.mark.parametrize("name", HEALTHY[:3])
def test_the_time_left_is_steady_and_right_within_a_factor_of_two(name):
    clock, repetitions = [0.0], repetitions_of(recorded_run(name))
    bar = Progress(get_time=lambda: clock[0], console=Console(file=io.StringIO()))
    bar.add_task("", total=len(repetitions))
    (task,) = bar.tasks
    assert time_left(task) == "-:--:--", "nothing is promised before the first repetition"
    shown = []
    for number, seconds in enumerate(repetitions, 1):
        clock[0] += seconds
        bar.advance(task.id)
        if len(repetitions) * 0.1 < number < len(repetitions) * 0.9:
            shown.append(seconds_left(time_left(task)) / sum(repetitions[number:]))
    assert max(shown) < 2
    assert min(shown) > 0.5


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_time_left_is_never_cut_off(width):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, color_system=None)
    with progress_bar(console) as bar:
        task = bar.add_task("device_to_device_bidirectional_memcpy_write_ce (10, 71)", total=21_871)
        bar.advance(task, 10_000)
        bar.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", plain) if "left" in line]
    assert lines
    for line in lines:
        assert len(line) <= width
        assert re.search(r" left [-\d]+:[-\d]{2}:[-\d]{2} *$", line)
