"""`linkgauge devices`: the memories of this machine."""

from __future__ import annotations

from contextlib import closing

from .options import Backends, Json, Machine


def devices(backend: Backends = None, machine: Machine = None, json: Json = False) -> int:
    """Show the memories that can be measured, and why a backend has none.

    Example: linkgauge devices --json
    """
    from linkgauge.engine.supervisor import Supervisor
    from linkgauge.model.result import Settings
    from linkgauge.report.inventory import print_machine

    from .session import choose_backends, make_simulation

    simulation = make_simulation(machine, None)
    accelerators, _ = choose_backends(backend, simulation)
    with closing(Supervisor(Settings(sizes=(), simulation=simulation))) as worker:
        print_machine(worker.survey(accelerators), as_json=json)
    return 0
