"""Compare the cuda backend with nvbandwidth 0.8 on this machine, each in processes of its own.

nvbandwidth is built by the user. What is printed is a markdown document, fit for
docs/benchmarks.md; progress goes to stderr and raw data to the file of --json, after every run.
Exit status: 0 every bar held, 1 one was missed, 2 bad usage, 3 something was not measured,
130 interrupted. `report FILE` prints the document of earlier raw data again.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from linkgauge.engine.kept.runs import JOURNAL_FILE, read_run
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import decode_hook, encode_hook
from nvbandwidth_document import exit_status, make_sections, problems_of, render
from nvbandwidth_figures import Document, last_document
from nvbandwidth_plan import (
    Campaign,
    Record,
    Step,
    linkgauge_command,
    nvbandwidth_command,
    schedule,
)

GRACE_SECONDS = 15.0
"""Time limit for an interrupted linkgauge to save what it measured."""
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Finished:
    """A process that ended: its output, and why it was stopped, if so."""

    exit: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    trouble: str | None = None


def launch(command: Sequence[str], timeout: float) -> Finished:
    """Runs the command in its own process group, which is stopped after `timeout` seconds or
    Ctrl-C."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return Finished(None, trouble=f"cannot start {command[0]}: {error.strerror}")
    trouble = None
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        trouble = f"stopped after {timeout:g} s"
        stdout, stderr = _stop(process)
    except KeyboardInterrupt:
        trouble = INTERRUPTED
        stdout, stderr = _stop(process)
    return Finished(process.returncode, stdout, stderr, trouble)


def _stop(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Interrupts as Ctrl-C does, then kills the group; returns what it printed."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        return process.communicate(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


def document_of(step: Step, finished: Finished, out: Path) -> object:
    """What the process measured: its stdout, or linkgauge's journal if it did not get that far."""
    if step.tool != "linkgauge":
        document = last_document(finished.stdout.decode(errors="replace"))
        try:
            msgspec.convert(document, Document)
        except msgspec.ValidationError:
            return None
        return document
    try:
        return msgspec.to_builtins(
            msgspec.json.decode(finished.stdout, type=Run, dec_hook=decode_hook()),
            enc_hook=encode_hook,
        )
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    for journal in sorted(out.glob(f"**/{JOURNAL_FILE}")):
        try:
            return msgspec.to_builtins(read_run(journal.parent), enc_hook=encode_hook)
        except LinkgaugeError:
            continue
    return None


def trouble_of(finished: Finished, document: object) -> str | None:
    """Why a run cannot be used as it is, with the last line that it wrote to stderr."""
    trouble = finished.trouble
    if trouble is None and finished.exit:
        trouble = f"exit status {finished.exit}"
    if trouble is None and document is None:
        trouble = "no document on stdout"
    said = finished.stderr.decode(errors="replace").strip().splitlines() if trouble else []
    return f"{trouble}: {said[-1].strip()}" if said else trouble


def run_step(step: Step, command: tuple[str, ...], out: Path, timeout: float) -> Record:
    """Runs one process and keeps all that it measured."""
    begin = time.monotonic()
    finished = launch(command, timeout)
    seconds = time.monotonic() - begin
    document = document_of(step, finished, out)
    return Record(
        tool=step.tool,
        scope=step.scope,
        round=step.round,
        command=command,
        seconds=seconds,
        exit=finished.exit,
        trouble=trouble_of(finished, document),
        document=document,
    )


class Comparison:
    """Runs a schedule; `campaign` holds all that was measured, and `file` is updated after each
    run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._file: Path | None = options.json
        self.campaign = Campaign(
            mode=options.mode,
            rounds=options.rounds,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            gpus=gpus(),
            with_nvbandwidth=getattr(options, "with_nvbandwidth", False),
        )

    def run(self) -> None:
        """Starts no round once the budget is spent, and no step after an interruption."""
        begin = time.monotonic()
        campaign = self.campaign
        rounds = schedule(campaign.mode, campaign.rounds, campaign.with_nvbandwidth)
        with tempfile.TemporaryDirectory(prefix="against-nvbandwidth-") as folder:
            for number, steps in enumerate(rounds):
                spent = time.monotonic() - begin
                if self._options.budget is not None and spent >= self._options.budget:
                    left = f"{number} of {len(rounds)} rounds were started"
                    self._update(stopped=f"the budget was spent after {spent:.0f} s: {left}")
                    return
                for step in steps:
                    if not self._step(step, Path(folder)):
                        return

    def _step(self, step: Step, folder: Path) -> bool:
        """Returns whether to continue."""
        out = folder / f"{len(self.campaign.records)}"
        try:
            record = run_step(step, self._command(step, out), out, self._options.timeout)
        except KeyboardInterrupt:
            self._update(stopped=INTERRUPTED)
            return False
        self._update(record=record)
        show_progress(record)
        if record.trouble and record.trouble.startswith(INTERRUPTED):
            self._update(stopped=INTERRUPTED)
            return False
        return True

    def _command(self, step: Step, out: Path) -> tuple[str, ...]:
        if step.tool == "nvbandwidth":
            return nvbandwidth_command((self._options.nvbandwidth,), step.scope)
        program = tuple(shlex.split(self._options.linkgauge))
        if step.tool == "linkgauge as nvbandwidth":
            return nvbandwidth_command(
                (*program, "as", "nvbandwidth", "--emulate", "0.8"), step.scope
            )
        return linkgauge_command(program, step.scope, str(out), tuple(self._options.extra))

    def _update(self, record: Record | None = None, stopped: str | None = None) -> None:
        records = self.campaign.records + ((record,) if record else ())
        self.campaign = msgspec.structs.replace(
            self.campaign, records=records, stopped=stopped or self.campaign.stopped
        )
        if self._file is not None:
            save(self._file, self.campaign)


def save(path: Path, campaign: Campaign) -> None:
    """Writes atomically; a failure is reported and costs only the file."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(msgspec.json.encode(campaign) + b"\n")
        partial.replace(path)
    except OSError as error:
        print(f"against_nvbandwidth: cannot write {path}: {error.strerror}", file=sys.stderr)


def show_progress(record: Record) -> None:
    """One line on stderr: what ended, how long it took, what went wrong."""
    read = record.reading()
    tests = len({key.test for key in read.figures})
    what = f"{record.tool} {record.scope} {record.round}: {record.seconds:.1f} s, {tests} tests"
    problems = f", {len(read.problems)} problems: {read.problems[0]}" if read.problems else ""
    print(f"{datetime.now():%H:%M:%S} {what}{problems}", file=sys.stderr, flush=True)


def gpus() -> tuple[str, ...]:
    """Name and driver of each GPU from nvidia-smi; empty if it does not answer."""
    query = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    finished = launch(query, timeout=30)
    if finished.exit != 0:
        return ()
    lines = finished.stdout.decode(errors="replace").splitlines()
    return tuple(line.strip().replace(", ", ", driver ") for line in lines if line.strip())


def make_parser() -> argparse.ArgumentParser:
    """Sub-commands with the options they share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--nvbandwidth", required=True, metavar="PATH", help="the binary")
    common.add_argument(
        "--linkgauge",
        default=shlex.join([sys.executable, "-m", "linkgauge"]),
        metavar="COMMAND",
        help="default: this interpreter's",
    )
    common.add_argument("--rounds", type=_positive, default=5, help="alternations (default: 5)")
    common.add_argument("--budget", type=float, metavar="SECONDS", help="then start no round")
    common.add_argument(
        "--timeout", type=float, default=300.0, metavar="SECONDS", help="for each run (300)"
    )
    common.add_argument("--json", type=Path, metavar="FILE", help="raw data, after every run")
    common.add_argument(
        "--extra",
        type=shlex.split,
        default=[],
        metavar="OPTIONS",
        help="further options for linkgauge run, quoted: --extra='--max-time 2'",
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    for name, text in (
        ("device", "cells within and between devices, and latencies, once"),
        ("host", "cells that cross to the host, in rounds"),
        ("tuned", "what `linkgauge run --tune` has sped up, in rounds"),
        ("suite", "all 35 tests by linkgauge, in rounds"),
        ("as", "`linkgauge as nvbandwidth -j`: keys, and figures in rounds"),
        ("all", "everything but that, from as few runs as possible"),
    ):
        one = modes.add_parser(name, parents=[common], help=text, description=text)
        if name == "suite":
            one.add_argument("--with-nvbandwidth", action="store_true", help="its suite, once")
    again = modes.add_parser("report", help="the document of earlier raw data")
    again.add_argument("file", type=Path, metavar="FILE", help="written by --json")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return number


def conclude(campaign: Campaign) -> int:
    """Prints the document; returns the exit status."""
    sections = make_sections(campaign)
    problems = problems_of(campaign)
    print(render(campaign, sections, problems), end="")
    return exit_status(sections, campaign.stopped == INTERRUPTED, bool(problems))


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> int:
    """Measures, or reads what was measured, and prints the document."""
    options = make_parser().parse_args()
    if options.mode == "report":
        try:
            return conclude(msgspec.json.decode(options.file.read_bytes(), type=Campaign))
        except (OSError, msgspec.DecodeError) as error:
            print(f"against_nvbandwidth: {options.file}: {error}", file=sys.stderr)
            return 2
    signal.signal(signal.SIGTERM, _interrupt)
    comparison = Comparison(options)
    comparison.run()
    return conclude(comparison.campaign)


if __name__ == "__main__":
    sys.exit(main())
