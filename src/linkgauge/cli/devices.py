"""`linkgauge devices`: the memories of a machine, and how they are connected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkgauge.model.errors import InputError
from linkgauge.report.formats import MACHINE, MACHINE_IN_DETAIL, MEASURED, MEASURED_IN_DETAIL

from .help_text import OUTPUT
from .options import MachineFormat, Option, own

if TYPE_CHECKING:
    from linkgauge.machine.tree import Root
    from linkgauge.model.machine import Machine
    from linkgauge.report.formats import Format


@own(
    hardware=Option(
        "Add what the machine cannot report about itself: a file from --yaml, filled in.",
        "FILE.yml",
        heading=OUTPUT,
    ),
    verbose=Option(
        "Also show caches, limits, the kernel's command line, PCI details, and what could not be "
        "read.",
        flag="-v --verbose",
        heading=OUTPUT,
    ),
)
def devices(
    *,
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="Show the machine of this run, with the bandwidth measured over each link: its "
            "folder, its run.json, what `pack` wrote, or the latest of a label. Default: this "
            "machine as it is now.",
        ),
    ] = None,
    backend: list[str] | None = None,
    machine: str | None = None,
    root: Path | None = None,
    hardware: Path | None = None,
    verbose: bool = False,
    form: MachineFormat,
) -> int:
    """Show memories, PCI topology, and links between devices.

    Examples:
        linkgauge devices
        linkgauge devices default
        linkgauge devices --machine dgx-h200-8
        linkgauge devices --yaml > hardware.yml
    """
    from linkgauge.machine.hardware import read_hardware, state

    if run is not None:
        if backend or machine or root or hardware:
            raise InputError("a run has its own machine: leave out all other options but -v")
        return _measured(run, form, verbose=verbose)
    if root is not None and (machine is not None or backend):
        raise InputError("--root reads a captured machine: leave out --machine and --backend")
    stated = {} if hardware is None else read_hardware(hardware)
    found = survey(backend, machine) if root is None else read(open_root(root))
    shown = found if hardware is None else state(found, stated)
    form.write(MACHINE_IN_DETAIL if verbose else MACHINE, shown)
    return 0


def _measured(path: Path, form: Format, *, verbose: bool) -> int:
    """The machine of a run, with what its links carried."""
    from linkgauge.engine.runs import one_run, read_run
    from linkgauge.report.judged import judged

    run = read_run(one_run(path, command="devices"))
    if form.is_document:
        form.write(MACHINE, run.machine)
    else:
        form.write(MEASURED_IN_DETAIL if verbose else MEASURED, judged(run))
    return 0


def survey(backend: list[str] | None = None, machine: str | None = None) -> Machine:
    """This machine, or a simulated one."""
    from linkgauge.engine import session
    from linkgauge.engine.request import RunRequest
    from linkgauge.model.settings import Settings

    from .simulation import simulation_of

    settings = Settings(sizes=(), simulation=simulation_of(machine))
    return session.survey(RunRequest(settings=settings, backends=tuple(backend or ())))


def read(root: Root) -> Machine:
    """A captured machine."""
    from linkgauge.machine.capture import read_machine

    return read_machine(root)


def open_root(path: Path) -> Root:
    """A folder, or an archive held in memory: the machine in it, which may lie a folder or two
    deeper. Raises InputError for neither, and where no machine is there."""
    from linkgauge.machine.archive import read_archive, top_of_machine
    from linkgauge.machine.tree import names_in

    if not path.is_dir():
        return read_archive(path)
    return path / top_of_machine(path, lambda folder: names_in(path, folder))
