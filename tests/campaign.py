"""Runs of shipped machines, healthy and faulted, of which everything that may vary is drawn.

A healthy one has other efficiencies of its links (by up to 5 %, each way by itself), noise of 0.1
to 2 % and up to 1 % more of a link, two to four devices beside each other, copy engines or kernels,
now and then a benchmark of several transfers at once, and 9 to 21 samples. A faulted one has a
fault as well: of each kind, and of a link, a device, a host node or a switch. Its magnitude is
drawn:

    slow      10 to 75 % of the rate are left
    drift     the rate falls to 20 to 65 % by the end of the run: what overheats loses as much
    jitter    samples vary by 5 to 30 %, where a quiet machine's do by 2 % at most
    stall     every third to eighth sample lasts 10 to 300 ms longer: a p99 of 1.15 times the median
    flip, hang, crash, lost, nomem    any is one, in whatever phase of a cell

A third of `slow`, `jitter`, `stall` and `flip` begin in mid-run, by when half of what they touch is
measured at most. A fault that nothing can tell is drawn anew: one that shows in less than two cells
(`shows`), that slows what has nothing to be slow beside, or that unsettles what has nothing like it
to be unsteady beside (`tells`): copies over the only switch vary as a neighbour's do.
"""

from __future__ import annotations

import math
import os
import random
import re
import statistics
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from operator import truediv
from pathlib import Path

import msgspec
import yaml

from campaign_names import Names
from linkgauge.backends.sim.backend import simulate
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.controller import execute
from linkgauge.engine.kept.journal import Opened
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.judge.blame.cases import timed_cases_of
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence, Finding, evidence_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.errors import PHASES
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.settings import EngineSettings, Settings, Simulation
from sim_kit import Silent

SEED = os.environ.get("LINKGAUGE_SEED", "0")
"""What all is drawn from; another one makes another campaign."""
SIZES = (256 << 20, 320 << 20, 384 << 20)
RATES = ("slow", "drift")
UNSTEADY = ("jitter", "stall")
LASTING = ("slow", "jitter", "stall", "flip")
STRIKES = ("hang", "crash", "lost", "nomem")
"""Kinds that end their cell: measured by processes of their own."""
_SLOW = "slow switch link-speed link-width link-errors fabric-links fabric-errors clocks"
RIGHT = {
    "slow": set(_SLOW.split()),
    "drift": {"drift", *_SLOW.split()[1:]},
    "jitter": {"scatter"},
    "stall": {"stall"},
    "flip": {"wrong-bytes"},
    "hang": {"hang"},
    "crash": {"crash"},
    "lost": {"lost"},
    "nomem": {"out-of-memory"},
}
"""The checks that are to find each kind of fault."""
PLACES = ("link", "device", "host", "switch")
CAUSES = frozenset[str]().union(*RIGHT.values())
DEGRADED = {"vm-degraded"}
"""Machines whose link is slow as shipped: that is to be said of them, too."""
ATTEMPTS = 12
LEAST_CONCURRENT = 6
"""Unsteady cells with steady peers from which chance is no likely reason."""
SHOWN = 0.15
"""Part that a cell's figure must lose, or that its samples must differ by, for a fault to show …"""
ABOVE = {"slow": 2.0, "drift": 2.0, "stall": 7.0}
"""… and how many standard deviations of its samples: less is not above the noise."""
UNSEEN = yaml.safe_load(Path(__file__).with_name("unseen_machines.yml").read_text())
KNOWN = yaml.safe_load(Path(__file__).with_name("known.yml").read_text())
"""Machines as data sheets have them."""


class Drawn(msgspec.Struct, frozen=True):
    """What came of one run: the fault (None: healthy), what the doctor puts first, whether that is
    right, and everything that it found."""

    machine: str
    fault: str | None
    first: Finding | None
    right: bool
    findings: tuple[Finding, ...]


def perturbed(machine: str, draw: random.Random, noise: float = 0.02, jitter: float = 0.15) -> str:
    """The machine's YAML, drawn as said above; an unseen one's links have noise up to `jitter`."""
    listed = (UNSEEN | KNOWN).get(machine)
    tree = yaml.safe_load(yaml.safe_dump(listed) if listed else load(machine)[1])
    for kind in tree["link_kinds"].values():
        for field in ("efficiency", "sm_efficiency"):
            for way, share in kind.get(field, {}).items():
                kind[field][way] = min(1.0, share * draw.uniform(0.95, 1.05))
        kind["jitter"] = f"{draw.choice((0, draw.random())):.4f}%"
        if machine in UNSEEN:
            kind["jitter"] = 0.001 * (jitter / 0.001) ** draw.random()
    tree["noise"] = 0.001 * (noise / 0.001) ** draw.random()
    tree["seed"] = draw.randrange(1 << 30)
    return yaml.safe_dump(tree)


def benchmarks(draw: random.Random) -> tuple[str, ...]:
    engine = draw.choice(("ce", "sm"))
    together = (
        "host_to_device_bidirectional_memcpy", "device_to_device_bidirectional_memcpy_read",
        "device_to_device_bidirectional_memcpy_write", "all_to_host_memcpy", "host_to_all_memcpy",
    )  # fmt: skip
    names = (
        "host_to_device_memcpy", "device_to_host_memcpy", "device_to_device_memcpy_read",
        "device_to_device_memcpy_write", *draw.sample(together, draw.choice((0, 0, 1))),
    )  # fmt: skip
    return (
        *(f"{name}_{engine}" for name in names),
        "device_local_copy", "host_to_host_memcpy_read_cpu", "host_to_host_memcpy_write_cpu",
    )  # fmt: skip


class Bed:
    """A machine with some of its devices, and runs on it."""

    def __init__(self, machine: str, draw: random.Random, *noise: float) -> None:
        self.machine = machine
        self.text = perturbed(machine, draw, *noise)
        self.hardware = build(parse_description(self.text))
        self.names = Names(
            self.hardware, simulate(Simulation(machine, self.text), EngineSettings())
        )
        devices = [device.name for device in self.hardware.devices]
        count = draw.randint(2, 4)
        # Neighbours, so that what they share is there.
        first = draw.randrange(max(1, len(devices) - count + 1))
        self.devices = devices[first : first + count]
        self.benchmarks = benchmarks(draw)
        self.samples = draw.choice((9, 14, 21))

    def run(
        self, *faults: str, apart: bool = False, judged: bool = True, read: Evidence | None = None
    ) -> Evidence:
        """What there is to judge by, as the doctor gets it; or only what was measured. Readers find
        what they found in the run `read`: no counter, clock or link tells of the fault."""
        simulation = Simulation(self.machine, self.text, faults)
        sizes = SIZES[:1] if apart else SIZES
        settings = Settings(sizes, samples=self.samples, timeout=0.4, simulation=simulation)
        # Only what ends a process needs one.
        with closing(Supervisor(settings) if apart and faults else LocalWorker(settings)) as worker:
            machine = worker.survey(("sim",))
            over = fabrics(machine, self.devices)
            near = {device.near for device in over[0].devices}
            # A second node, for the first to be compared with.
            nodes = sorted(machine.host.nodes, key=lambda node: node.index not in near)[:2]
            plan = make_plan(lay_out(select(self.benchmarks, ()), over, nodes), machine, sizes)
            opened = Opened(
                id="1", label="l", simulated=True, command=(), started="s", machine=machine,
                settings=settings, plan=plan,
            )  # fmt: skip
            run = execute((opened,), worker, lambda record: None, Silent())
            after = run.after if isinstance(worker, Supervisor) else worker.look(("sim",))
        run = msgspec.structs.replace(scrubbed(run) if faults else run, after=after)
        if read is not None:
            run = run.with_cells(lambda cell: msgspec.structs.replace(cell, readings=()))
            run = msgspec.structs.replace(run, machine=read.machine, after=read.after)
        return evidence_of(judge(run) if judged else run)


def scrubbed(run: Run) -> Run:
    """Without the words in which a simulation names its fault in an error."""
    document = re.sub(
        rb" \(SIMULATED: [^)]*\)", b"", msgspec.json.encode(run, enc_hook=encode_hook)
    )
    return msgspec.json.decode(document, type=Run, dec_hook=decode_hook())


def onset(kind: str, cells: Sequence[int], draw: random.Random) -> str:
    """From which of the cells that it touches on a fault strikes; text to follow its magnitude."""
    if kind not in LASTING or draw.random() < 2 / 3:
        return ""
    return f" cells={draw.choice(cells[: max(1, len(cells) // 2)])}.."


def magnitude(kind: str, cells: Sequence[int], number: int, draw: random.Random) -> str:
    """Of a fault that touches these of `number` cells."""
    match kind:
        case "slow":
            return f"rate={draw.uniform(0.1, 0.75):.3f}"
        case "drift":
            return f"per_cell={draw.uniform(0.2, 0.65) ** (1 / number) - 1:.6f}"
        case "jitter":
            return f"sigma={draw.uniform(0.05, 0.3):.3f}"
        case "stall":
            return f"every={draw.randint(3, 8)} for={0.01 * 30 ** draw.random():.3f}"
        case "flip":
            return f"offset={draw.randrange(1 << 28)} bit={draw.randrange(8)}"
    phase = draw.choice([phase.replace(" ", "-") for phase in PHASES[1:]])
    if kind == "crash":
        return f"phase={phase} signal={draw.choice(('SEGV', 'KILL'))}"
    if kind == "lost":
        return f"phase={phase} cells={draw.choice(cells[: max(1, len(cells) // 2)])}"
    return f"phase={phase}"


def trial(kind: str, place: str, machine: str, number: int) -> Drawn | None:
    """One faulted run; None where no such fault can be told on this machine."""
    draw = random.Random(f"{SEED} {kind} {place} {Path(machine).name} {number}")
    for _ in range(ATTEMPTS):
        bed = Bed(machine, draw)
        if place == "switch" and not bed.hardware.switches:
            return None
        healthy = bed.run(apart=kind in STRIKES, judged=False)
        touched = bed.names.touched(healthy)
        cells = sum(1 for _ in healthy.cells())
        names = [
            name
            for name, of in touched.items()
            if bed.names.place(name) == place
            and 2 <= len(of) < 0.9 * cells
            and (kind not in UNSTEADY or has_peers(healthy, of))
        ]
        if not names:
            continue
        target = draw.choice(sorted(names))
        struck = sorted(touched[target])
        size = magnitude(kind, struck, cells, draw) + onset(kind, struck, draw)
        fault = f"{kind} {target} {size}"
        evidence = bed.run(fault, apart=kind in STRIKES)
        if shows(kind, healthy, evidence) and tells(kind, healthy, evidence, touched[target]):
            findings = diagnose(evidence)
            first = primary(machine, findings)
            found = told(kind, healthy, evidence)
            right = is_right(bed, kind, target, found, evidence, first)
            return Drawn(machine, fault, first, right, findings)
    return None


def healthy_trial(machine: str, number: int) -> Drawn:
    findings = diagnose(Bed(machine, random.Random(f"{SEED} healthy {machine} {number}")).run())
    first = primary(machine, findings)
    return Drawn(machine, None, first, first is None, findings)


def primary(machine: str, findings: Sequence[Finding]) -> Finding | None:
    """What the doctor puts first of what is wrong, beside what the machine always has."""
    for finding in findings:
        if finding.check in CAUSES and finding.severity in ("fail", "warn"):
            if machine in DEGRADED and finding.check == "link-speed":
                continue
            return finding
    return None


def is_right(
    bed: Bed, kind: str, target: str, found: Set[int], evidence: Evidence, first: Finding | None
) -> bool:
    """Whether a finding says what is wrong, and of what: the target, or what touches the same
    cells, so that none tells them apart, or of these fewer, but all that tell (`found`)."""
    if first is None or first.check not in RIGHT[kind]:
        return False
    cells = bed.names.touched(evidence)
    if kind == "lost":  # what it did before it was lost tells nothing
        first_lost = min(n for n, cell in enumerate(evidence.cells()) if cell.status == "error")
        cells = {name: {n for n in of if n >= first_lost} for name, of in cells.items()}
        found = {n for n in found if n >= first_lost}
    names = bed.names.of_subject(first.subject)
    return target in names or any(
        of == cells[target] or (found and found <= of <= cells[target])
        for of in (cells.get(name, set()) for name in names)
    )


def shows(kind: str, healthy: Evidence, evidence: Evidence) -> bool:
    """Whether a fault changed what was measured: where something else is the bottleneck, nobody
    can tell."""
    return len(changed(kind, healthy, evidence)) >= 2


def changed(kind: str, healthy: Evidence, evidence: Evidence) -> Set[int]:
    """Numbers of the cells that a fault changed."""
    both = enumerate(zip(healthy.cells(), evidence.cells(), strict=True))
    return {n for n, (was, cell) in both
            if was.status != cell.status or lost(kind, was, cell) > SHOWN}  # fmt: skip


def lost(kind: str, was: CellResult, cell: CellResult) -> float:
    """Part by which a fault of this kind changed a cell, if by more than noise, which is the same
    with and without it."""
    if not (cell.samples and was.samples) or kind not in (*RATES, *UNSTEADY):
        return 0.0
    mean, n = statistics.fmean(was.samples), len(was.samples)
    # `statistics.pstdev` computes with fractions, which takes a hundred times as long.
    least = ABOVE.get(kind, 0.0) * math.dist(was.samples, [mean] * n) / math.sqrt(n) / mean
    if kind in RATES:
        found = 1 - statistics.median(cell.samples) / statistics.median(was.samples)
    elif kind == "stall":
        found = max(map(truediv, was.samples, cell.samples)) - 1
    else:
        found, before = (max(each.samples) / min(each.samples) - 1 for each in (cell, was))
        least = 1.5 * before
    return found if found > least else 0.0


def told(kind: str, healthy: Evidence, evidence: Evidence) -> Set[int]:
    """Of the cells that changed, those that tell: what is slow needs something to be slow beside,
    an expectation that it falls short of, or a cell of the same benchmark that was as fast and
    still is."""
    found = changed(kind, healthy, evidence)
    if kind not in RATES:
        return found
    was, now = list(numbered(healthy)), list(numbered(evidence))
    steady = [cell for number, cell in enumerate(was) if number not in found]
    return {
        number for number in found
        if falls_short(now[number][1])
        or any(name == was[number][0] and equivalent(was[number][1], cell) for name, cell in steady)
    }  # fmt: skip


def tells(kind: str, healthy: Evidence, evidence: Evidence, touched: Set[int]) -> bool:
    """Whether cells tell of a fault of a part that touches these, or readers do."""
    if kind in UNSTEADY:
        return has_peers(evidence, touched, changed(kind, healthy, evidence))
    read = kind == "slow" and inventories(healthy) != inventories(evidence)
    return read or bool(told(kind, healthy, evidence))


def has_peers(evidence: Evidence, touched: Set[int], found: Set[int] | None = None) -> bool:
    """Whether enough of the cells that a fault changed (None: all that it touches) have cells of
    their kind that it does not touch, measured since it began."""
    found = touched if found is None else found
    cases = {case.number: case for case in timed_cases_of(evidence) if case.cell.samples}
    since = min(found, default=0)
    kinds = {case.kind for n, case in cases.items() if n >= since and n not in touched}
    return sum(n in cases and cases[n].kind in kinds for n in found) >= LEAST_CONCURRENT


def inventories(evidence: Evidence) -> object:
    return evidence.machine.known, evidence.after


def numbered(evidence: Evidence) -> Iterator[tuple[str, CellResult]]:
    """Cells, each with its benchmark's name."""
    for result in evidence.results:
        for cell in result.cells:
            yield result.benchmark, cell


def falls_short(cell: CellResult) -> bool:
    """Of what is expected from what readers found, not from the run's own figures."""
    return cell.verdict == "low" and not (cell.expected and cell.expected.measured)


def equivalent(one: CellResult, other: CellResult) -> bool:
    if one.summary is None or other.summary is None:
        return False
    return abs(math.log(one.summary.median / other.summary.median)) < 0.1
