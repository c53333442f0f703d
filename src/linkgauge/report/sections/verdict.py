"""Shows the verdict: what is wrong, why, and what to do first; or that nothing is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import msgspec

from linkgauge.engine.kept.journal import JOURNAL_FILE
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.documents.result import Run, exit_code
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.units import count_of
from linkgauge.report.blocks import (
    Block,
    Line,
    Problem,
    Prose,
    Span,
    Tiles,
    Tone,
    line,
    plain,
)
from linkgauge.report.results import title_of
from linkgauge.report.words.expectations import NOTHING, nothing_wrong
from linkgauge.report.words.groups import groups_of, headline, of_waivers
from linkgauge.report.words.remedies import Command, RemedyText, Step
from linkgauge.report.words.run_notes import Missed, missed_precision, more_precise, unreached
from linkgauge.report.words.sentences import first_of, program
from linkgauge.report.words.worst import WorstOfRun, lowest_cells, worst_finding, worst_of

from .opening import tally

MOST_LOW = 3
LONGEST_COMMENT = 40
DO_FIRST = "do first"
ON_SERVER = "on server"
"""The heading of remedies for a simulated machine. Nothing can be run on such a machine."""


class Closing(msgspec.Struct, frozen=True):
    """The texts around a verdict. `kept` is the run's folder. `since` compares with earlier runs.
    `by_doctor` is true if all findings are shown above, `scripted` if a script has the remedies."""

    kept: Path | None = None
    since: str | None = None
    by_doctor: bool = False
    scripted: bool = False


def verdict(run: Run, outcome: Outcome, closing: Closing) -> Iterator[Block]:
    wrong = worst_of(run, outcome)
    last = (*_lowest(run, outcome), *_waived(outcome), *numbers(run, outcome))
    if wrong is not None:
        yield _problem(wrong, last, _where(run.machine, run))
    elif outcome.verdict or outcome.unjudged:
        yield _well(run, outcome)._replace(last=last)
    elif last:
        yield Problem("", "", "", (), last=last, first=True)
    yield from _line_of(_next(run, wrong, closing))
    yield Tiles(tuple(tally(run, outcome)))


def ending(
    run: Run, outcome: Outcome, closing: Closing, *, verbose: bool = False
) -> Iterator[Block]:
    """Shows the lowest cells and the counts, then at most four lines: the verdict, why, what to do
    first, and the next command. If `verbose`, also shows which losses the run cannot detect."""
    wrong = worst_of(run, outcome)
    above = [*_lowest(run, outcome), *_waived(outcome)]
    if wrong is not None and wrong.cause is None:
        above += _explained(wrong)
    above += numbers(run, outcome) if verbose else _left_out(run)
    if above:
        yield Problem("", "", "", (), last=above, first=True)
    yield Tiles(tuple(tally(run, outcome)))
    yield Prose([*([plain(closing.since)] if closing.since else []), ()])
    if wrong is not None:
        found = _problem(wrong, (), _where(run.machine, run))
        text = "" if wrong.group is None else wrong.group.first.why
        why = wrong.cause or (plain(text) if text else None)
        said = [("why", why)] if why else []
        yield found._replace(said=said, steps=_one_step(found.steps, closing))
    elif outcome.verdict or outcome.unjudged:
        yield _well(run, outcome)
    yield from _line_of(_next(run, wrong, closing))


def _one_step(taken: Sequence[Step], closing: Closing) -> Sequence[Step]:
    """Replaces a remedy of several steps by one step, which says where all steps are shown."""
    if len(taken) <= 1:
        return taken
    commands = [step for step in taken if isinstance(step, Command)]
    captions = [step.text.rstrip(":") for step in taken if isinstance(step, RemedyText)]
    if len(commands) == 1 and len(captions) == 1 and len(captions[0]) <= LONGEST_COMMENT:
        return [Command(commands[0].words, captions[0])]
    about = re.split(r"[.,] ", captions[0])[0].rstrip(".") if captions else "a change"
    where = "shown above" if closing.kept is None else "shown by doctor"
    return [RemedyText(f"{about}: {len(taken)} lines, {where}")]


def _line_of(command: Command | None) -> Iterator[Block]:
    if command is not None:
        yield Problem("", "", "", (), steps=(command,), do="next", first=True)


def alarm(run: Run, outcome: Outcome) -> Iterator[Block]:
    wrong = worst_of(run, outcome)
    if wrong is not None and outcome.code and not exit_code(run):
        yield _problem(wrong, tuple(_lowest(run, outcome)), _where(run.machine, run))


def uncounted(outcome: Outcome) -> Iterator[Block]:
    others = [f for f in outcome.found if f.severity == "fail" and f not in outcome.findings]
    if others:
        names = first_of([f"{finding.check} {finding.subject}" for finding in others], ", ")
        yield Prose([plain(f"not counted, because the run did not measure it: {names}")])


def of_machine(
    machine: Machine, findings: Sequence[Finding], then: Command | None = None
) -> Iterator[Block]:
    grave = [finding for finding in findings if finding.is_grave]
    if (wrong := worst_finding(groups_of(grave))) is not None:
        yield _problem(wrong, (), _where(machine))
    else:
        what = "what is known of the setup" if machine.known.assumed else "the setup"
        ok = line(Span("ok", "good"), f": {what} shows no fault")
        yield Problem("", "", "", ok, first=True)
    yield from _line_of(then)


def _where(machine: Machine, run: Run | None = None) -> str:
    is_here = machine.simulated is None and (run is None or run.tool is msgspec.UNSET)
    return DO_FIRST if is_here else ON_SERVER


def _problem(wrong: WorstOfRun, last: Sequence[tuple[str, Line]], do: str) -> Problem:
    from .findings import problem_of, steps_of

    said = _explained(wrong) if wrong.cause is None else [("cause", wrong.cause)]
    taken: tuple[Step, ...] = ()
    if wrong.group is not None:
        first = wrong.group.first
        said += [("why", plain(first.why))] if first.why else []
        taken = tuple(_first_steps(steps_of(first)))
    one = problem_of(wrong.equivalent) if wrong.equivalent else Problem("", "bad", "", wrong.what)
    return one._replace(said=said, steps=taken, do=do, first=True, last=last)


def _explained(wrong: WorstOfRun) -> list[tuple[str, Line]]:
    for equivalent in wrong.group.explained if wrong.group else ():
        if equivalent[0].severity == "fail" or equivalent[0].check == "slow":
            return [("symptom", headline(equivalent))]
    return []


def _first_steps(found: Sequence[Step]) -> Iterator[Step]:
    """Yields the first prose of a remedy, and the commands up to the next prose. If the first
    command changes nothing, yields no other command."""
    prose, commands = list[Step](), list[Command]()
    for step in found:
        if isinstance(step, Command):
            commands.append(step)
        elif commands:
            break
        else:
            prose.append(step)
    yield from prose if commands else prose[:1]
    alone = commands and commands[0].only_looks and not commands[0].sets
    yield from commands[:1] if alone else commands


def _next(run: Run, wrong: WorstOfRun | None, closing: Closing) -> Command | None:
    if closing.kept is None:
        return None
    path = quote(str(closing.kept))
    is_open = run.finished is None and not run.machine.ranks  # one process can go on with it
    if is_open and (closing.kept / JOURNAL_FILE).exists():
        return Command((program(), "run", "--resume", path))
    if not closing.by_doctor:
        return Command((program(), "doctor", path)) if wrong is not None else None
    mends = wrong is not None and wrong.group is not None and wrong.group.first.remedy
    if closing.scripted or not mends:
        return None
    return Command((program(), "doctor", path, "--fix-script", "fix.sh"))


def _well(run: Run, outcome: Outcome) -> Problem:
    is_waived = any(one.severity == "waived" for one in outcome.waived)
    said = nothing_wrong(run, outcome.unjudged, is_waived=is_waived)
    tone: Tone = "good" if outcome.word == "ok" else "dim"
    word = line(Span(outcome.word, tone), f": {said}")
    return Problem("", tone, "", plain(said, "warn") if said == NOTHING else word, first=True)


def _waived(outcome: Outcome) -> Iterator[tuple[str, Line]]:
    for text in of_waivers(outcome.waived):
        yield "waived", plain(title_of(text), "dim")


def numbers(run: Run, outcome: Outcome) -> Iterator[tuple[str, Line]]:
    few = [one for one in outcome.found if (one.check, one.severity) == ("scatter", "unknown")]
    undetectable = [
        *map(str, outcome.undetectable),
        *(f"any loss on {one}" for one in outcome.parts("not-separate")),
        *(f"stalls in {one.subject}, which have few samples (--samples 8)" for one in few),
    ]
    if undetectable:
        yield "undetectable", plain("; ".join(undetectable))
    if (missed := missed_precision(run)) is not None:
        is_busy = any(one.check in ("busy", "processes") for one in outcome.findings)
        advice = more_precise(run, is_busy=is_busy)
        yield "precision", plain(f"{what_precision(missed)}{advice}")
    yield from _left_out(run)


def _left_out(run: Run) -> Iterator[tuple[str, Line]]:
    if (left := unreached(run)) is not None:
        yield "unreached", plain(left)


def _lowest(run: Run, outcome: Outcome) -> Iterator[tuple[str, Line]]:
    name = "lowest"
    for share, figure, where, _ in lowest_cells(run)[: MOST_LOW if outcome.verdict else 0]:
        yield name, plain(f"{share:.0%}{' of expected speed' if name else ''}, {figure}  {where}")
        name = ""


def what_precision(missed: Missed) -> str:
    furthest = f" (widest: {missed.cells[0]})" if missed.cells else ": no interval"
    return f"{count_of(missed.number)} missed the ±{missed.asked:.2%} asked for{furthest}"
