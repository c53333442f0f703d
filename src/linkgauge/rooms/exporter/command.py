"""The command `linkgauge exporter`: serves metrics to Prometheus."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from linkgauge.cli import common
from linkgauge.cli.help_text import OUTPUT, WHICH
from linkgauge.cli.options import Options, Time, option
from linkgauge.model.errors import InputError

if TYPE_CHECKING:
    from .machine import MachineSource
    from .results import ResultSource
    from .server import MetricsPage


_ONCE = 10.0
"""The seconds to wait for readings before writing a file or sending a message."""
_EVERY = 60.0
"""The seconds between two messages to a collector, as OpenTelemetry has it by default."""


class ExporterOptions(Options):
    listen: str | None = option(
        OUTPUT,
        "Listen on this port; without ADDRESS, only this machine reaches it. Default: "
        "127.0.0.1:9410.",
        "[ADDRESS:]PORT",
    )
    textfile: Path | None = option(
        OUTPUT,
        "Write the metrics to this file once, for node_exporter's textfile collector.",
        "FILE.prom",
    )
    otlp: str | None = option(
        OUTPUT,
        "Send the metrics to this OpenTelemetry collector, each minute or each --refresh if that "
        "is longer.",
        "URL",
    )
    refresh: Time = option(
        OUTPUT,
        "Read devices at most this often: 20, 20s, 2m. Default: 5s.",
        "TIME",
        default=5.0,
        show_default=False,
    )
    history: str | None = common.history(WHICH)
    results: Path | None = option(
        WHICH, "Show the runs below this folder instead of the history's.", "DIR", is_input=True
    )
    label: str | None = option(WHICH, "Show the runs of this label.", "TEXT", is_input=True)
    benchmark: tuple[str, ...] = option(
        WHICH, "Show the runs that measured this benchmark. Repeatable.", "NAME"
    )
    waivers: Path | None = common.WAIVERS
    all_hosts: bool = option(
        WHICH, "Show the runs of every host of the history, simulated ones too."
    )
    simulated: common.Simulated


def exporter(asked: ExporterOptions) -> int:
    """Serve the last results and the state of devices to Prometheus.

    With --otlp, sends them to an OpenTelemetry collector instead.

    Examples:
        linkgauge exporter
        linkgauge exporter --listen 0.0.0.0:9410
        linkgauge exporter --textfile linkgauge.prom
        linkgauge exporter --otlp http://127.0.0.1:4318"""
    from linkgauge.machine.extras import needed
    from linkgauge.report.files import write_asked

    needed("prometheus_client", "exporter")
    if asked.refresh >= 86400:
        raise InputError(f"--refresh {asked.refresh:g}: give less than a day")
    if asked.listen is not None and asked.textfile is not None:
        raise InputError("--textfile writes once and serves nothing: leave out --listen")
    if asked.otlp is not None and (asked.listen or asked.textfile):
        raise InputError("--otlp sends and serves nothing: leave out --listen and --textfile")
    if asked.history is not None and asked.results is not None:
        raise InputError("--history and --results: choose one")
    from .machine import SimulatedMachine, ThisMachine
    from .server import MetricsPage

    simulation = asked.simulated.simulation()
    machine = ThisMachine if simulation is None else partial(SimulatedMachine, simulation)
    live: MachineSource = machine(asked.refresh, _say)
    page = MetricsPage(live, _results(live, asked), _say)
    if asked.otlp is not None:
        from .otlp import Collector, exporter_to, send_all

        collector = Collector(exporter_to(asked.otlp), live.host)
        send_all(page, collector, max(asked.refresh, _EVERY), _ONCE, _say)
    path = asked.textfile
    if path is None:
        return _serve(page, asked.listen)
    if path.suffix != ".prom":
        raise InputError(f"--textfile {path}: node_exporter reads files that end in .prom alone")
    write_asked(path, page.text(_ONCE))
    return 0


def _results(live: MachineSource, asked: ExporterOptions) -> ResultSource:
    from linkgauge.benchmarks.catalog import check_known
    from linkgauge.engine.kept.runs import RESULTS
    from linkgauge.history.address import address

    from .results import FromFolder, FromHistory, Which

    which = Which(
        host=None if asked.all_hosts else live.host,
        simulated=None if asked.all_hosts else live.simulated,
        label=asked.label,
        benchmarks=asked.benchmark,
    )
    results = asked.results
    if results is not None and not results.is_dir():
        _say(
            f"warning: folder {str(results)!r} does not exist yet: its runs are shown once it does"
        )
    url = None if results is not None else address(asked.history)
    waivers = common.waivers_in(asked.waivers)
    folder = results or RESULTS
    source = FromFolder(folder, which, waivers) if url is None else FromHistory(url, which)
    if asked.benchmark and not source.read().runs:  # else it is that of another tool or version
        check_known(asked.benchmark)
    return source


def _serve(page: MetricsPage, listen: str | None) -> int:
    from .server import LOOPBACK, PORT, Address, MetricsServer, parse_listen

    address = Address(LOOPBACK, PORT) if listen is None else parse_listen(listen)
    with MetricsServer(address, lambda form: page.text(form=form)) as server:
        _say(f"metrics at http://{server.at}/metrics")
        if not server.at.is_local:
            _say("warning: other machines can read them: nothing asks who they are")
        server.serve_forever()
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
