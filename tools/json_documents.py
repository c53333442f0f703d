"""What `--json` of each command writes where no type of src/ is the whole document. `tools/schemas`
makes the schemas, and a test holds what commands write against them."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.judge.compare.machine_state import Fact
from linkgauge.judge.findings import Severity, Undetectable
from linkgauge.model.documents.result import RunVerdict
from linkgauge.model.units import Better
from linkgauge.report.rows import SampleRow
from linkgauge.report.tables import CellRow
from linkgauge.rooms.check.health import NodeCondition


class FindingText(msgspec.Struct):
    """A statement of what a check found.

    check: The check.
    severity: How grave it is.
    subject: The part of the machine that it is about.
    found: What was found.
    why: Why that matters.
    remedy: The lines that fix it: commands, and prose behind `# `.
    cells: The cells that it is based on.
    lines: The lines of the kernel's log that it is based on.
    explained_by: The names of the findings that explain it.
    value: What was found, in the unit that the catalogue of checks names; left out if it is none."""

    check: str
    severity: Severity
    subject: str
    found: str
    why: str
    remedy: tuple[str, ...]
    cells: tuple[str, ...]
    lines: tuple[str, ...]
    explained_by: tuple[str, ...]
    value: float | msgspec.UnsetType = msgspec.UNSET


class Judged(msgspec.Struct, kw_only=True):
    """What a command that judges says right after `schema`.

    verdict: The verdict.
    exit_code: The exit code of the command.
    findings: What the doctor found of what was measured; those of `doctor` are all.
    undetectable: Parts that may be slow without a figure that shows it; left out if none are."""

    verdict: RunVerdict
    exit_code: int
    findings: tuple[FindingText, ...]
    undetectable: tuple[Undetectable, ...] | msgspec.UnsetType = msgspec.UNSET


class Findings(Judged, tag_field="schema", tag="linkgauge.findings/1"):
    """What `linkgauge doctor --json` writes."""


class Check(Judged, kw_only=True, tag_field="schema", tag="linkgauge.check/1"):
    """What `linkgauge check --json` writes.

    condition: The condition of the node, as Kubernetes has them."""

    condition: NodeCondition


class NamedDomain(msgspec.Struct):
    """A domain of libvirt.

    name: Its name; null if it has none.
    uuid: Its UUID; null if it has none."""

    name: str | None
    uuid: str | None


class Domain(Judged, kw_only=True, tag_field="schema", tag="linkgauge.vm/1"):
    """What `linkgauge vm --json` writes.

    simulated: Whether the machine is simulated.
    role: What the machine was taken for; null if that is not known.
    reasons: What shows that.
    domain: The domain that was compared; null for none.
    running: Domains that run on this host.
    defined: Definitions of domains on this host.
    counts: How many findings there are, by severity.
    xml: Elements to put in place of the domain's own.
    settings: Settings of the system that writes the XML, where it is not libvirt.
    message: What to tell the host's administrator, a paragraph each."""

    simulated: bool
    role: Literal["host", "guest"] | None
    reasons: tuple[str, ...]
    domain: NamedDomain | None
    running: tuple[str, ...]
    defined: tuple[str, ...]
    counts: dict[Severity, int]
    xml: tuple[str, ...]
    settings: tuple[str, ...]
    message: tuple[str, ...]


class Summary(Judged, kw_only=True, tag_field="schema", tag="linkgauge.summary/1"):
    """What `linkgauge export --json` writes.

    run: The run's id.
    label: Its label.
    started: When it began (RFC 3339).
    finished: When it ended; null if it broke off.
    simulated: The name of the simulated machine; null if the machine is real.
    cells: A row for each cell."""

    run: str
    label: str
    started: str
    finished: str | None
    simulated: str | None
    cells: tuple[CellRow, ...]


class Samples(msgspec.Struct, tag_field="schema", tag="linkgauge.samples/1"):
    """What `linkgauge export --json --samples` writes.

    run: The run's id.
    label: Its label.
    started: When it began (RFC 3339).
    finished: When it ended; null if it broke off.
    simulated: The name of the simulated machine; null if the machine is real.
    samples: A row for each raw sample."""

    run: str
    label: str
    started: str
    finished: str | None
    simulated: str | None
    samples: tuple[SampleRow, ...]


class Seen(msgspec.Struct):
    """An accelerator at a glance.

    name: Its name, such as cuda:0 or its PCI address.
    model: Its product; null if unknown."""

    name: str
    model: str | None


class Proposed(msgspec.Struct):
    """A command to type next.

    command: The command.
    purpose: What it is for."""

    command: str
    purpose: str


class Glance(msgspec.Struct, tag_field="schema", tag="linkgauge.glance/1"):
    """What `linkgauge --json`, without a command, writes.

    host: The host's name.
    accelerators: Its accelerators.
    unavailable: The reason for each backend that is unavailable, by its name.
    unanswered: Backends that did not answer in time.
    figures: How many figures the quick profile measures here, by what they are of.
    most_seconds: The most seconds that it takes.
    commands: Commands that fit this machine, the first one first."""

    host: str
    accelerators: tuple[Seen, ...]
    unavailable: dict[str, str]
    unanswered: tuple[str, ...]
    figures: dict[str, int]
    most_seconds: float
    commands: tuple[Proposed, ...]


class Against(msgspec.Struct):
    """A difference from the first configuration.

    ratio: The figure as a share of the first one's.
    low: The lower end of its interval; null with too few runs.
    high: The upper end of its interval; null with too few runs.
    p: The probability of a difference as clear where there is none; null with too few runs."""

    ratio: float
    low: float | None
    high: float | None
    p: float | None


class ConfigurationFigure(msgspec.Struct):
    """The figure of a configuration.

    median: The median of its runs.
    low: The lower end of what runs vary by; null with too few runs.
    high: The upper end; null with too few runs.
    runs: How many runs have the figure.
    against: The difference from the first configuration; null for the first one itself."""

    median: float
    low: float | None
    high: float | None
    runs: int
    against: Against | None


class ComparedAspect(msgspec.Struct):
    """What configurations are compared by.

    name: The aspect.
    of: What of it is measured.
    benchmark: The benchmark.
    unit: The unit of the figures.
    better: Whether higher or lower figures are better.
    figures: The figure of each configuration; null where it has none."""

    name: str
    of: str
    benchmark: str
    unit: str
    better: Better
    figures: tuple[ConfigurationFigure | None, ...]


class Configuration(msgspec.Struct):
    """A configuration: the runs of a label.

    label: The label.
    runs: The ids of its runs."""

    label: str
    runs: tuple[str, ...]


class Comparison(msgspec.Struct):
    """The configurations of an accelerator.

    accelerator: The folder of the runs.
    configurations: The configurations, the one that others are compared with first.
    compared: What they are compared by.
    facts: Facts of the machines in which they differ.
    simulated: Whether any run was on a simulated machine."""

    accelerator: str
    configurations: tuple[Configuration, ...]
    compared: tuple[ComparedAspect, ...]
    facts: tuple[Fact, ...]
    simulated: bool


class Comparisons(msgspec.Struct, tag_field="schema", tag="linkgauge.comparison/1"):
    """What `linkgauge show FOLDER --json` writes of several runs.

    comparisons: A comparison for each accelerator."""

    comparisons: tuple[Comparison, ...]


class ListedBenchmark(msgspec.Struct):
    """A benchmark, as `linkgauge list --json` writes it.

    name: Its name.
    title: What it measures.
    profiles: The profiles that it is in."""

    name: str
    title: str
    profiles: tuple[str, ...]


COMMANDS = {
    "": ("glance",),
    "ai": ("run",),
    "check": ("check",),
    "compare": ("runs-compared",),
    "copy": ("run",),
    "devices": ("machine",),
    "doctor": ("findings",),
    "expect": ("expect",),
    "export": ("summary", "samples"),
    "gate": ("gate",),
    "history": ("history",),
    "judge": ("run",),
    "latency": ("run",),
    "list": ("benchmarks",),
    "run": ("run", "plan"),
    "scale": ("scale",),
    "show": ("run", "comparison", "scale", "vary"),
    "traffic": ("run",),
    "vary": ("vary",),
    "vm": ("vm",),
    "watch": ("watch",),
}
"""The schemas of what each command writes with `--json`; "" is `linkgauge` alone."""
WHEN = {
    ("export", "samples"): "with `--samples`",
    ("run", "plan"): "with `--dry-run`",
    ("show", "comparison"): "of a folder of runs",
    ("show", "scale"): "of a scaling",
    ("show", "vary"): "of a variation",
    ("watch", "watch"): "each line",
}
"""When a command writes a document that is not its usual one."""
