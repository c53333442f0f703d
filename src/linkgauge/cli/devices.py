"""Implements `linkgauge devices`, which shows a machine's memories and how they are connected."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from linkgauge.model.errors import InputError
from linkgauge.report.formats import MACHINE as OF_MACHINE
from linkgauge.report.formats import MACHINE_IN_DETAIL, MEASURED, MEASURED_IN_DETAIL

from . import common
from .help_text import OUTPUT
from .options import Options, argument, option
from .proposals import labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkgauge.machine.tree import Root
    from linkgauge.model.hardware.machine import Machine
    from linkgauge.report.formats import Format


class DevicesOptions(Options):
    run: Path | None = argument(
        "RUN",
        "Show the machine of this run (its folder, run.json, a file of `pack`, or a label for its "
        "latest run), with the bandwidth measured over each link. Default: this machine as it is "
        "now.",
        offer=labels,
    )
    backend: tuple[str, ...] = common.BACKEND
    machine: str | None = common.MACHINE
    root: Path | None = common.ROOT
    hardware: Path | None = option(
        OUTPUT,
        "Add what the machine cannot report about itself: a file from --yaml, filled in.",
        "FILE.yml",
        is_input=True,
    )
    verbose: bool = option(
        OUTPUT,
        "Also show caches, limits, the kernel's command line, PCI details, and what could not be "
        "read.",
        flags="-v --verbose",
    )
    nccl_topo: Path | None = option(
        OUTPUT,
        "Write the PCI tree to this file, for NCCL_TOPO_FILE in a guest that does not see it.",
        "FILE.xml",
    )
    form: common.MachineFormat


def devices(asked: DevicesOptions) -> int:
    """Show memories, PCI topology, and links between devices.

    Examples:
        linkgauge devices
        linkgauge devices default
        linkgauge devices --machine dgx-h200-8
        linkgauge devices --yaml > hardware.yml
        linkgauge devices --machine ppu-8 --nccl-topo topo.xml
    """
    if asked.nccl_topo is not None:
        return _write_topology(asked, asked.nccl_topo)
    if asked.run is not None:
        if asked.backend or asked.machine or asked.root or asked.hardware:
            raise InputError("a run has its own machine: leave out all other options but -v")
        return _measured(asked.run, asked.form, verbose=asked.verbose)
    found = found_machine(asked, brief=not asked.form.is_document and not asked.backend)
    asked.form.write(MACHINE_IN_DETAIL if asked.verbose else OF_MACHINE, found)
    return 0


def _write_topology(asked: DevicesOptions, path: Path) -> int:
    from linkgauge.engine.kept.runs import one_run, read_run
    from linkgauge.report.files import write_asked
    from linkgauge.report.nccl_topology import nccl_topology

    own = None if asked.run is None else read_run(one_run(asked.run, "devices")).machine
    write_asked(path, nccl_topology(own or found_machine(asked)))
    print(f"written: {path}: NCCL reads it if NCCL_TOPO_FILE={path}")
    return 0


def found_machine(asked: DevicesOptions, *, brief: bool = False) -> Machine:
    """Returns the machine that the options name. Raises InputError for options that conflict."""
    from linkgauge.machine.hardware import read_hardware, state

    backend, machine, root = asked.backend, asked.machine, asked.root
    if root is not None and (machine is not None or backend):
        raise InputError("--root reads a captured machine: leave out --machine and --backend")
    stated = {} if asked.hardware is None else read_hardware(asked.hardware)
    found = survey(backend, machine, brief=brief) if root is None else read(open_root(root))
    return found if asked.hardware is None else state(found, stated)


def _measured(path: Path, form: Format, *, verbose: bool) -> int:
    from linkgauge.engine.kept.runs import one_run, read_run
    from linkgauge.report.reading import judged

    run = read_run(one_run(path, command="devices"))
    if form.is_document:
        form.write(OF_MACHINE, run.machine)
    else:
        form.write(MEASURED_IN_DETAIL if verbose else MEASURED, judged(run))
    return 0


def survey(
    backends: Sequence[str] = (), machine: str | None = None, *, brief: bool = False
) -> Machine:
    """Describes this machine or a simulated one. If `brief`, opens backends only if needed."""
    from linkgauge.engine.workers.process import early_worker

    with nullcontext() if machine else early_worker(brief=brief) as first:
        from linkgauge.engine import session
        from linkgauge.engine.request import RunRequest
        from linkgauge.engine.workers.survey import SURVEY_SECONDS
        from linkgauge.model.settings import Settings

        from .common import simulation_of

        settings = Settings(sizes=(), simulation=simulation_of(machine))
        request = RunRequest(settings=settings, backends=tuple(backends))
        return session.survey(request, first, SURVEY_SECONDS if brief else None)


def read(root: Root) -> Machine:
    from linkgauge.machine.captures.capture import read_machine

    return read_machine(root)


def open_root(path: Path) -> Root:
    """Opens a captured machine in a folder or archive, also one or two folders deeper. Raises
    InputError if there is no machine."""
    from linkgauge.machine.captures.archive import read_archive, top_of_machine
    from linkgauge.machine.tree import Disk

    if not path.is_dir():
        return read_archive(path)
    return Disk(path / top_of_machine(path, Disk(path).names))
