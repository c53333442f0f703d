"""Runs of shipped machines, healthy and faulted, whose efficiencies, noise and faults are drawn at
random; and what of the machine a finding's subject stands for."""

from __future__ import annotations

import random
import re
from contextlib import closing

import msgspec
import yaml

from linkgauge.backends.sim import simulate
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.faults import parse_fault
from linkgauge.backends.sim.hardware import build
from linkgauge.backends.sim.resources import names_of
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.controller import execute
from linkgauge.engine.journal import Opened
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.supervisor import Supervisor
from linkgauge.engine.worker import LocalWorker
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.model.notation import parse_cell
from linkgauge.model.result import EngineSettings, Settings, Simulation
from sim_kit import Silent

BENCHMARKS = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
    "device_to_device_memcpy_write_ce", "device_local_copy", "host_to_host_memcpy_read_cpu",
    "host_to_host_memcpy_write_cpu",
)  # fmt: skip
SIZES = (256 << 20, 320 << 20, 384 << 20)
MOST_DEVICES = 4
STRIKES = ("hang", "crash", "lost", "nomem")
KINDS = ("slow", "drift", "jitter", "stall", "flip", *STRIKES)
RIGHT = {
    "slow": {"slow", "link-speed", "link-width", "fabric-links"},
    "drift": {"drift"},
    "jitter": {"scatter"},
    "stall": {"stall"},
    "flip": {"wrong-bytes"},
    "hang": {"hang"},
    "crash": {"crash"},
    "lost": {"lost"},
    "nomem": {"out-of-memory"},
}
"""The checks that are to find each kind of fault."""
CAUSES = frozenset().union(*RIGHT.values())
DEGRADED = {"vm-degraded"}
"""Machines whose link is slow as shipped: that is to be said of them, too."""


def perturbed(machine, draw):
    """The machine's YAML with other efficiencies (±5 %), noise (0.1 to 2 %) and seed."""
    tree = yaml.safe_load(load(machine)[1])
    for kind in tree["link_kinds"].values():
        for field in ("efficiency", "sm_efficiency"):
            for way, share in kind.get(field, {}).items():
                kind[field][way] = min(1.0, share * draw.uniform(0.95, 1.05))
    tree["noise"] = 0.001 * 20 ** draw.random()
    tree["seed"] = draw.randrange(1 << 30)
    return yaml.safe_dump(tree)


class Bed:
    """A machine with some of its devices, and runs on it."""

    def __init__(self, machine, draw):
        self.machine = machine
        self.text = perturbed(machine, draw)
        self.hardware = build(parse_description(self.text))
        devices = [device.name for device in self.hardware.devices]
        # Neighbours, so that what they share is there.
        first = draw.randrange(max(1, len(devices) - MOST_DEVICES + 1))
        self.devices = devices[first : first + MOST_DEVICES]
        self.backend = simulate(Simulation(machine, self.text), EngineSettings())

    def run(self, *faults, sizes=SIZES, apart=False):
        """What there is to judge by, as the doctor gets it."""
        simulation = Simulation(self.machine, self.text, faults)
        settings = Settings(sizes, samples=9, timeout=0.4, simulation=simulation)
        worker = Supervisor(settings) if apart else LocalWorker(settings)
        with closing(worker):
            machine = worker.survey(("sim",))
            over = fabrics(machine, self.devices)
            near = {device.near for device in over[0].devices}
            # A second node, for the first to be compared with.
            nodes = sorted(machine.host.nodes, key=lambda node: node.index not in near)[:2]
            rows = select(BENCHMARKS, (), only_d2d=False)
            plan = make_plan(lay_out(rows, over, nodes), machine, sizes)
            opened = Opened(
                id="1", label="l", simulated=True, command=(), started="s", machine=machine,
                settings=settings, plan=plan,
            )  # fmt: skip
            run = execute((opened,), worker, lambda record: None, Silent())
            after = run.after if apart else worker.look(("sim",))
        return judged(msgspec.structs.replace(scrubbed(run), after=after))

    def targets(self, evidence):
        """Names that a fault may be aimed at, with the numbers of the cells that touch them."""
        found = {}
        for number, cell in enumerate(evidence.cells()):
            if cell.status == "skip":
                continue
            for transfer in parse_cell(cell.transfers):
                for name in self.backend._resources.touched(transfer):
                    found.setdefault(name, set()).add(number)
        switches = {switch.name for switch in self.hardware.switches}
        return {name: cells for name, cells in found.items() if name not in switches}

    def link_names(self, subject):
        """The name, as the description has it, of what a finding is about."""
        device = re.fullmatch(r"(?:PCIe link of )?(sim:\d+)(?: \(.*\))?", subject)
        if device and subject != device[1]:
            return self._pcie_of(device[1])
        bridge = re.fullmatch(r"host bridge (.*)", subject)
        if bridge:
            below = self._devices_below(lambda folder: folder.startswith(f"pci{bridge[1]}/"))
            return self._above(below)
        port = re.fullmatch(r"(?:PCIe link of )?([0-9a-f]{4}:[0-9a-f:.]+)", subject)
        if port:
            below = self._devices_below(lambda folder: f"/{port[1]}/" in f"/{folder}")
            return self._above(below)
        return {subject}

    def _devices_below(self, is_below):
        from linkgauge.backends.sim.pci import functions
        from linkgauge.backends.sim.symptoms import Symptoms

        every = functions(self.hardware, self.backend._topology, Symptoms(self.hardware))
        below = {f.address for f in every if is_below(f.folder)}
        return {d.name for d in self.hardware.devices if d.pci in below}

    def _pcie_of(self, device):
        return set().union(
            *(names_of(link) for link in self.hardware.links
              if link.kind.kind == "pcie" and device in (link.a, link.b))
        )  # fmt: skip

    def _above(self, devices):
        """Names of the links from the switches that these devices hang from, away from them."""
        switches = {link.b for link in self.hardware.links
                    if link.a in devices and link.kind.kind == "pcie"}  # fmt: skip
        return set().union(
            *(names_of(link) for link in self.hardware.links
              if link.a in switches and link.b not in devices)
        )  # fmt: skip


def scrubbed(run):
    """Without the words in which a simulation names its fault in an error."""
    document = re.sub(rb" \(SIMULATED: [^)]*\)", b"", msgspec.json.encode(run))
    return msgspec.json.decode(document, type=type(run))


def judged(run):
    from linkgauge.judge.verdict import judge

    run = judge(run)
    return evidence_of(run)


def draw_fault(kind, bed, healthy, draw):
    """A fault of this kind that some cells touch, and not nearly all."""
    targets = bed.targets(healthy)
    all_cells = sum(1 for _ in healthy.cells())
    names = sorted(n for n, cells in targets.items() if 2 <= len(cells) < 0.9 * all_cells)
    if kind in ("hang", "crash"):
        names = [name for name in names if len(targets[name]) <= all_cells / 2]
    target = draw.choice(names)
    text = f"{kind} {target}"
    if kind == "slow":
        text += f" rate={draw.uniform(0.2, 0.6):.3f}"
    elif kind == "drift":
        falls = 1 - draw.uniform(0.5, 0.8)  # over the whole plan
        text += f" per_cell={falls ** (1 / all_cells) - 1:.4f}"
    elif kind == "jitter":
        text += f" sigma={draw.uniform(0.06, 0.12):.3f}"
    elif kind == "stall":
        text += f" every={draw.choice((3, 4))} for={draw.uniform(0.05, 0.2):.3f}"
    elif kind == "lost":
        cells = sorted(targets[target])
        text += f" cells={draw.choice(cells[: max(1, len(cells) // 2)])}"
    elif kind == "crash":
        text += f" signal={draw.choice(('SEGV', 'KILL'))}"
    return str(parse_fault(text)), target


def is_right(bed, kind, target, evidence, finding):
    """Whether a finding says what is wrong, and of what: the target, or what touches the same
    cells, so that none tells them apart."""
    if finding is None or finding.check not in RIGHT[kind]:
        return False
    cells = bed.targets(evidence)
    if kind == "lost":  # what it did before it was lost tells nothing
        first = min(n for n, cell in enumerate(evidence.cells()) if cell.status == "error")
        cells = {name: {n for n in numbers if n >= first} for name, numbers in cells.items()}
    return any(
        name == target or cells.get(name) == cells[target]
        for name in bed.link_names(finding.subject)
    )


def primary(machine, findings):
    """What the doctor puts first of what is wrong, beside what the machine always has."""
    for finding in findings:
        if finding.check in CAUSES and finding.severity in ("fail", "warn"):
            if machine in DEGRADED and finding.check == "link-speed":
                continue
            return finding
    return None


def trial(kind, machine, seed):
    """One run: what was drawn, the finding, whether it is right, all findings."""
    draw = random.Random(f"{kind} {machine} {seed}")
    bed = Bed(machine, draw)
    if kind is None:
        findings = diagnose(bed.run())
        return None, primary(machine, findings), findings
    sizes = SIZES[:1] if kind in ("hang", "crash") else SIZES
    healthy = bed.run(sizes=sizes)
    for _ in range(20):
        text, target = draw_fault(kind, bed, healthy, draw)
        evidence = bed.run(text, sizes=sizes, apart=kind in STRIKES)
        if shows(kind, healthy, evidence):
            break
    else:
        raise AssertionError(f"no {kind} of {machine} shows")
    findings = diagnose(evidence)
    found = primary(machine, findings)
    return (text, is_right(bed, kind, target, evidence, found)), found, findings


def shows(kind, healthy, evidence):
    """Whether a fault changed what was measured: where something else is the bottleneck, nobody
    can tell."""
    changed = 0
    for before, after in zip(healthy.cells(), evidence.cells(), strict=True):
        if before.status != after.status:
            changed += 1
        elif before.summary and after.summary:
            if kind in ("slow", "drift"):
                changed += after.summary.median < 0.75 * before.summary.median
            else:
                spread = max(after.samples) / min(after.samples) - 1
                changed += spread > 0.15
    return changed >= 2
