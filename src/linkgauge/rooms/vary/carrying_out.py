"""Measures the settings of `linkgauge vary`, keeps every run, compares, and shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linkgauge.engine.controller import now
from linkgauge.engine.folder import create_run_folder
from linkgauge.engine.interrupts import Interrupts, undisturbed
from linkgauge.engine.runs import VARY_FILE
from linkgauge.history.keeping import remember
from linkgauge.judge.verdict import judge
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.result import exit_code
from linkgauge.model.stats.ranks import MOST_ROUNDS, least_rounds
from linkgauge.model.units import parse_fraction
from linkgauge.model.variation import Variation
from linkgauge.report.console import make_console
from linkgauge.report.files import write_document, write_run
from linkgauge.report.formats import Format

from .differences import can_compare, compare
from .documents import VARIATION
from .live import LiveRounds
from .rounds import Comparison, Taken, measure_rounds, plan_all

MOST_SIGNIFICANCE = 0.2


def check_rounds(rounds: int, significance: str) -> float:
    """The significance as a fraction. Raises InputError if so many rounds cannot tell a difference
    with it."""
    alpha = parse_fraction(significance, "significance")
    if alpha > MOST_SIGNIFICANCE:
        raise InputError(f"--significance {significance}: give at most {MOST_SIGNIFICANCE:.0%}")
    least = least_rounds(alpha)
    if rounds < least:
        raise InputError(
            f"--rounds {rounds} find no difference at a significance of {alpha:.4%}: give "
            f"--rounds {least} or more, or a larger --significance"
        )
    if max(rounds, least) > MOST_ROUNDS:
        raise InputError(f"--rounds {rounds} are too many: give at most {MOST_ROUNDS}")
    return alpha


def carry_out(asked: Comparison, form: Format) -> int:
    """Returns the exit code: that of the worst run; 4 if nothing could be compared."""
    started, taken = now(), list[Taken]()
    errors = make_console(stderr=True)
    end: BaseException | None = None
    with LiveRounds(errors, asked.rounds * len(asked.variants)) as live:
        try:
            plans = plan_all(asked.variants, live)
            for one in measure_rounds(asked, plans, live):
                with Interrupts() as interrupts, interrupts.held():
                    taken.append(one)
                    _keep(one, live)
                first_round = len(taken) == len(asked.variants)
                if first_round and not can_compare(taken, len(asked.variants)):
                    break
        except (KeyboardInterrupt, LinkgaugeError) as reason:
            end = reason
    if end is not None and not taken:
        raise end
    with undisturbed():
        variation = _compared(asked, taken, started, whole=end is None)
        kept = _write(asked, taken, variation)
        form.write(VARIATION, variation)
        console = errors if form.is_document else make_console()
        if kept is not None:
            console.print(f"results: {kept}")
    if end is not None:
        raise end
    return _code(taken, variation)


def _keep(taken: Taken, live: LiveRounds) -> None:
    if taken.folder is not None:
        run = judge(taken.run)
        write_run(taken.folder, run)
        remember(run, taken.folder, live.say)


def _compared(asked: Comparison, taken: Sequence[Taken], started: str, *, whole: bool) -> Variation:
    settings = [variant.setting for variant in asked.variants]
    return Variation(
        label=asked.request.label,
        simulated=asked.request.settings.simulation is not None,
        command=asked.request.command,
        started=started,
        finished=now() if whole else None,
        significance=asked.significance,
        rounds=asked.rounds,
        prepare=asked.prepare,
        settings=tuple(settings),
        runs=tuple(one.kept for one in taken),
        cells=compare(taken, len(settings), asked.significance),
    )


def _write(asked: Comparison, taken: Sequence[Taken], variation: Variation) -> Path | None:
    """Writes the document into a folder of its own, beside those of the runs' labels."""
    folder = taken[0].folder
    if folder is None or asked.request.out is None:
        return None
    accelerator = folder.parents[1].name
    own = create_run_folder(
        Path(asked.request.out), accelerator, asked.request.label, variation.started
    )
    return write_document(own / VARY_FILE, variation)


def _code(taken: Sequence[Taken], variation: Variation) -> int:
    codes = {exit_code(one.run) for one in taken}
    if worst := next((code for code in (3, 1) if code in codes), 0):
        return worst
    is_compared = any(one.change for cell in variation.cells for one in cell.settings)
    return 0 if is_compared else 4
