"""`linkgauge vary`: the same benchmarks under several settings, and what differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from linkgauge.cli.help_text import OUTPUT, PRECISION, SETTINGS, WHAT
from linkgauge.cli.options import (
    Option,
    Sampling,
    Simulated,
    at_least_one,
    complete_benchmark,
    headed,
    own,
)
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Format

from .documents import VARIATION


def _complete_memory(incomplete: str) -> list[str]:
    from .settings import MEMORIES

    return [kind for kind in MEMORIES if kind.startswith(incomplete)]


def _complete_experiment(incomplete: str) -> list[str]:
    from .experiments import complete_experiment

    return complete_experiment(incomplete)


def _one_of(*words: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


@own(
    host_mode=Option("Run memory_stream_* in one mode.", "stream|peak", heading=WHAT),
    experiment=Option(
        "Run the benchmarks and settings of an experiment; list shows all experiments.",
        "NAME|list",
        heading=WHAT,
        more={"autocompletion": _complete_experiment},
    ),
    **headed(
        SETTINGS,
        cpus=Option("Use only these CPUs: 0-3,8, or all.", "CPUS"),
        numa_node=Option("Take the host memory of device copies from this node.", "N|near"),
        memory=Option(
            "Use this kind of host memory: pinned, pageable, base, thp, huge …",
            "KIND",
            more={"autocompletion": _complete_memory},
        ),
        streams=Option("Split each copy by ce over N streams (cuda).", "N"),
        affinity=Option(
            "Run the controlling thread near the memory, or on any CPU (cuda).",
            "on|off",
            more={"autocompletion": _one_of("on", "off")},
        ),
        host_kernel=Option("Use this kernel for host threads, or the fastest.", "NAME|fastest"),
        engine=Option(
            "Copy by copy engines, or by kernels.",
            "ce|sm",
            more={"autocompletion": _one_of("ce", "sm")},
        ),
        graph=Option(
            "Launch each kernel of latency_launch as a graph, or directly.",
            "on|off",
            more={"autocompletion": _one_of("on", "off")},
        ),
        env=Option("Set an environment variable to each value; empty unsets it.", "NAME=A,B"),
        prepare=Option("Run this before each run, with the setting in its environment.", "COMMAND"),
    ),
    **headed(
        PRECISION,
        rounds=Option("Measure every setting N times.", "N"),
        significance=Option("Accept this rate of false differences.", "P"),
    ),
    out=Option("Keep runs below this folder.", "DIR", heading=OUTPUT),
)
def vary(
    context: typer.Context,
    *,
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BENCHMARK...",
            help="Measure these benchmarks, or transfers as linkgauge copy takes them.",
            autocompletion=complete_benchmark,
        ),
    ] = None,
    prefix: list[str] | None = None,
    experiment: str | None = None,
    cpus: list[str] | None = None,
    numa_node: list[str] | None = None,
    memory: list[str] | None = None,
    streams: list[int] | None = None,
    affinity: list[str] | None = None,
    host_kernel: list[str] | None = None,
    engine: list[str] | None = None,
    graph: list[str] | None = None,
    env: list[str] | None = None,
    prepare: str | None = None,
    rounds: int = 10,
    significance: str = "1%",
    profile: str = "quick",
    backend: list[str] | None = None,
    device: list[str] | None = None,
    size: str | None = None,
    sampling: Sampling,
    host_mode: str | None = None,
    label: str = "vary",
    out: Path = Path("results"),
    simulated: Simulated,
    list_faults: bool = False,
    wait: bool = False,
    form: Annotated[Format, VARIATION],
) -> int:
    """Measure the same under several settings, and show what differs.

    Repeat an option under "Settings to compare" to give several values; the first is the baseline.

    Examples:
        linkgauge vary --experiment list
        linkgauge vary --experiment engine
        linkgauge vary --prefix host_to_ --engine ce --engine sm
    """
    from linkgauge.benchmarks.catalog import select
    from linkgauge.cli import requests
    from linkgauge.cli.simulation import simulation_of
    from linkgauge.engine.request import Selection, Written
    from linkgauge.model.settings import EngineSettings

    from .experiments import carry_out_named

    if experiment is not None:
        return carry_out_named(context, experiment, form)

    from linkgauge.cli.options_record import request_of

    from .carrying_out import carry_out, check_rounds
    from .rounds import Comparison
    from .settings import variants_of

    alpha = check_rounds(at_least_one("--rounds", rounds) or 1, significance)
    transfers = [text for text in benchmarks or () if "->" in text]
    what: Selection | Written
    if not benchmarks and not prefix:
        raise InputError("vary what? Give benchmarks, --prefix, --experiment or transfers")
    if transfers:
        if prefix or len(benchmarks or ()) > 1:
            raise InputError("give benchmarks, or transfers in one argument, joined with '&'")
        if numa_node:
            raise InputError("--numa-node has no effect: the transfers name their nodes")
        what = Written(transfers[0])
    else:
        mode = requests.host_mode_of(host_mode)
        rows = select(benchmarks or (), prefix or ())
        if not backend and all(row.on_host for row in rows):
            backend = ["host"]  # opening others would take time in every round
        what = Selection(tuple(benchmarks or ()), tuple(prefix or ()), host_mode=mode)
    simulation = simulation_of(*simulated)
    settings = requests.settings_of(profile, size, sampling, EngineSettings(), simulation)
    request = request_of(
        context, what, settings,
        label=label, out=out, wait=wait, profile=None if size else profile,
        backends=tuple(backend or ()), devices=tuple(device or ()),
    )  # fmt: skip
    given = {
        "--cpus": cpus, "--numa-node": numa_node, "--memory": memory, "--streams": streams,
        "--affinity": affinity, "--host-kernel": host_kernel, "--engine": engine, "--graph": graph,
        "--env": env,
    }  # fmt: skip
    variants = variants_of(given, request)
    return carry_out(Comparison(variants, rounds, alpha, prepare, request), form)
