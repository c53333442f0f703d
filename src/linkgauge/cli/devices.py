"""`linkgauge devices`: the memories of a machine, and how they hang together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkgauge.model.errors import InputError

from . import options
from .options import Backends, Machine

if TYPE_CHECKING:
    from linkgauge.machine.tree import Root
    from linkgauge.model.machine import Machine as MachineModel

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR|FILE.tgz",
        help="A captured machine instead of this one: its folder, or what `capture` wrote.",
    ),
]
Hardware = Annotated[
    Path | None,
    typer.Option(
        "--hardware",
        metavar="FILE.yml",
        help="State what the machine cannot know: a file that --yaml wrote, filled in.",
    ),
]


def devices(
    *,
    backend: Backends = None,
    machine: Machine = None,
    root: RootOption = None,
    hardware: Hardware = None,
    form: options.MachineFormat,
) -> int:
    """Show the memories that can be measured, the PCI tree, links and distances between devices,
    and what could not be read.

    Example: linkgauge devices --yaml > hardware.yml
    """
    from linkgauge.machine.hardware import read_hardware, state

    if root is not None and (machine is not None or backend):
        raise InputError(
            "--root reads a captured machine: it takes neither --machine nor --backend"
        )
    stated = {} if hardware is None else read_hardware(hardware)
    found = survey(backend, machine) if root is None else read(open_root(root))
    form.write("machine", found if hardware is None else state(found, stated))
    return 0


def survey(backend: list[str] | None = None, machine: str | None = None) -> MachineModel:
    """This machine, or a simulated one."""
    from linkgauge.engine import session
    from linkgauge.engine.request import RunRequest
    from linkgauge.model.result import Settings

    from .requests import simulation_of

    settings = Settings(sizes=(), simulation=simulation_of(machine))
    return session.survey(RunRequest(settings=settings, backends=tuple(backend or ())))


def read(root: Root) -> MachineModel:
    """A captured machine."""
    from linkgauge.machine.capture import read_machine

    return read_machine(root)


def open_root(path: Path) -> Root:
    """A folder as it is, an archive held in memory. Raises InputError for neither."""
    from linkgauge.machine.archive import read_archive

    if path.is_dir():
        return path
    return read_archive(path)
