"""`linkgauge devices`: the memories of a machine, and how they hang together."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkgauge.model.errors import InputError

from .options import Backends, Json, Machine

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
Yaml = Annotated[bool, typer.Option("--yaml", help="Write hardware.yml to stdout.")]


def devices(
    backend: Backends = None,
    machine: Machine = None,
    root: RootOption = None,
    hardware: Hardware = None,
    json: Json = False,
    yaml: Yaml = False,
) -> int:
    """Show the memories that can be measured, the PCI tree, links and distances between devices,
    and what could not be read.

    Example: linkgauge devices --yaml > hardware.yml
    """
    from linkgauge.machine.hardware import read_hardware, state
    from linkgauge.report.hardware import hardware_yaml
    from linkgauge.report.inventory import print_machine

    if json and yaml:
        raise InputError("--json and --yaml both want stdout: give one of them")
    if root is not None and (machine is not None or backend):
        raise InputError(
            "--root reads a captured machine: it takes neither --machine nor --backend"
        )
    stated = {} if hardware is None else read_hardware(hardware)
    found = survey(backend, machine) if root is None else read(open_root(root))
    if hardware is not None:
        found = state(found, stated)
    if yaml:
        sys.stdout.write(hardware_yaml(found))
    else:
        print_machine(found, as_json=json)
    return 0


def survey(backend: list[str] | None = None, machine: str | None = None) -> MachineModel:
    """This machine, or a simulated one."""
    from linkgauge.engine.supervisor import Supervisor
    from linkgauge.model.result import Settings

    from .session import choose_backends, make_simulation

    simulation = make_simulation(machine, None)
    accelerators, _ = choose_backends(backend, simulation)
    with closing(Supervisor(Settings(sizes=(), simulation=simulation))) as worker:
        return worker.survey(accelerators)


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
