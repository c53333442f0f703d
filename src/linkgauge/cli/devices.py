"""`linkgauge devices`: the memories of this machine."""

from __future__ import annotations

from contextlib import closing

from .options import Backends, Json


def devices(backend: Backends = None, json: Json = False) -> int:
    """Show the memories that can be measured, and why a backend has none.

    Example: linkgauge devices --json
    """
    from linkgauge.engine.worker import LocalWorker
    from linkgauge.report.inventory import print_machine

    from .session import choose_backends

    accelerators, _ = choose_backends(backend)
    with closing(LocalWorker()) as worker:
        print_machine(worker.survey(accelerators), as_json=json)
    return 0
