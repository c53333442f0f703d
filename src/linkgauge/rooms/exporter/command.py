"""`linkgauge exporter`: metrics for Prometheus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from linkgauge.cli.help_text import OUTPUT, WHICH
from linkgauge.cli.options import TIME, Option, headed, own
from linkgauge.model.errors import InputError

if TYPE_CHECKING:
    from .machine import Source as Machine
    from .results import Source as Results
    from .server import Page


@own(
    **headed(
        OUTPUT,
        listen=Option(
            "Listen there, for this machine alone unless an address of others is given. Default: "
            "127.0.0.1:9410.",
            "[ADDRESS:]PORT",
        ),
        textfile=Option(
            "Write the metrics to this file once, for node_exporter's textfile collector.",
            "FILE.prom",
        ),
        refresh=Option("Read devices at most this often: 5, 5s, 2m. Default: 5s.", TIME),
    ),
    **headed(
        WHICH,
        history=Option(
            "Use this history instead of the one of LINKGAUGE_HISTORY or of the data folder.",
            "URL|FILE",
        ),
        results=Option("Show the runs below this folder instead of the history's.", "DIR"),
        label=Option("Show the runs of this label.", "TEXT"),
        benchmark=Option("Show the runs that measured this benchmark. Repeatable.", "NAME"),
        all_hosts=Option("Show the runs of every host of the history, simulated ones too."),
    ),
)
def exporter(
    *,
    listen: str | None = None,
    textfile: Path | None = None,
    refresh: float = 5.0,
    history: str | None = None,
    results: Path | None = None,
    label: str | None = None,
    benchmark: list[str] | None = None,
    all_hosts: bool = False,
    machine: str | None = None,
    fault: list[str] | None = None,
) -> int:
    """Serve the last results and the state of devices to Prometheus.

    Examples:
        linkgauge exporter
        linkgauge exporter --listen 0.0.0.0:9410
        linkgauge exporter --textfile linkgauge.prom
    """
    from linkgauge.machine.extras import needed

    needed("prometheus_client", "exporter")
    if refresh >= 86400:
        raise InputError(f"--refresh {refresh:g}: give less than a day")
    if listen is not None and textfile is not None:
        raise InputError("--textfile writes once and serves nothing: leave out --listen")
    if history is not None and results is not None:
        raise InputError("--history and --results: choose one")
    live = _machine(machine, fault, refresh)
    found = _results(live, history, results, label, tuple(benchmark or ()), all_hosts=all_hosts)
    from .server import Page

    page = Page(live, found, _say)
    if textfile is not None:
        return _write(page, textfile)
    return _serve(page, listen)


def _machine(machine: str | None, fault: list[str] | None, refresh: float) -> Machine:
    from linkgauge.cli.simulation import simulation_of

    from .machine import SimulatedMachine, ThisMachine

    simulation = simulation_of(machine, fault)
    if simulation is None:
        return ThisMachine(refresh, _say)
    return SimulatedMachine(simulation, refresh, _say)


def _results(
    live: Machine,
    history: str | None,
    results: Path | None,
    label: str | None,
    benchmarks: tuple[str, ...],
    *,
    all_hosts: bool,
) -> Results:
    from linkgauge.engine.runs import RESULTS
    from linkgauge.history.address import address

    from .results import FromFolder, FromHistory, Which

    which = Which(
        host=None if all_hosts else live.host,
        simulated=None if all_hosts else live.simulated,
        label=label,
        benchmarks=benchmarks,
    )
    if results is not None and not results.is_dir():
        _say(f"warning: there is no folder {results} yet: its runs are shown once there is")
    url = None if results is not None else address(history)
    return FromFolder(results or RESULTS, which) if url is None else FromHistory(url, which)


def _write(page: Page, path: Path) -> int:
    from linkgauge.report.files import write_asked

    if path.suffix != ".prom":
        raise InputError(f"--textfile {path}: node_exporter reads files that end in .prom alone")
    write_asked(path, page.text(_ONCE))
    return 0


_ONCE = 10.0
"""Seconds that a file waits for what there is to read."""


def _serve(page: Page, listen: str | None) -> int:
    from .server import LOOPBACK, PORT, Address, Server, parse_listen

    address = Address(LOOPBACK, PORT) if listen is None else parse_listen(listen)
    with Server(address, lambda packed: page.text(packed=packed)) as server:
        _say(f"metrics at http://{server.at}/metrics")
        if not server.at.is_local:
            _say("warning: other machines can read them: nothing asks who they are")
        server.serve_forever()
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
