"""`linkgauge devices`: the memories of a machine, and how they are connected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from linkgauge.model.errors import InputError
from linkgauge.report.formats import MACHINE, MACHINE_IN_DETAIL

from .help_text import OUTPUT
from .options import MachineFormat, Option, own

if TYPE_CHECKING:
    from linkgauge.machine.tree import Root
    from linkgauge.model.machine import Machine


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
        linkgauge devices --machine dgx-h200-8
        linkgauge devices --yaml > hardware.yml
    """
    from linkgauge.machine.hardware import read_hardware, state

    if root is not None and (machine is not None or backend):
        raise InputError("--root reads a captured machine: leave out --machine and --backend")
    stated = {} if hardware is None else read_hardware(hardware)
    found = survey(backend, machine) if root is None else read(open_root(root))
    shown = found if hardware is None else state(found, stated)
    form.write(MACHINE_IN_DETAIL if verbose else MACHINE, shown)
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
