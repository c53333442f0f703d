"""Plans for random hosts and domains: what is printed passes the same checks, keeps the vCPUs on
one node of the host where they fit, and is never worse than what was given, by the planner's cost.

All in memory: `test_vm_placement.py` goes through the command line.
"""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from judge.test_vm_placement import PLACEMENT, host, pasted
from linkgauge.cli.devices import read
from linkgauge.machine.virtual import read_virtual
from linkgauge.rooms.vm.checks import judge
from linkgauge.rooms.vm.checks.comparison import DomainEvidence
from linkgauge.rooms.vm.checks.planner import cost
from linkgauge.rooms.vm.domain_xml import parse_domain
from linkgauge.rooms.vm.sections import elements_of
from vm_kit import domain, hostdev

MANY = settings(max_examples=max(40, settings.default.max_examples))


@st.composite
def hosts(draw):
    nodes, cores = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    threads, memory = draw(st.integers(1, 2)), draw(st.sampled_from((16, 64)))
    return {"nodes": nodes, "cores": cores, "threads": threads, "memory": memory}


def pins_of(draw, vcpus, cpus):
    """Pins as people write them: none, all to the same list, one by one, or to lists."""
    every = range(vcpus)
    kind = draw(st.sampled_from(("none", "list", "exact", "lists")))
    if kind == "none":
        return {}
    one = st.lists(st.integers(0, cpus - 1), min_size=1, max_size=4, unique=True)
    if kind == "list":
        return dict.fromkeys(every, draw(one))
    if kind == "lists":
        return {vcpu: draw(one) for vcpu in every}
    order = draw(st.permutations(range(cpus)))
    return {vcpu: [order[vcpu % cpus]] for vcpu in every}


@st.composite
def domains(draw, machine):
    """A domain that libvirt takes, for this host."""
    nodes, cpus = machine["nodes"], machine["nodes"] * machine["cores"] * machine["threads"]
    vcpus, threads = draw(st.integers(1, cpus)), draw(st.sampled_from((None, 1, 2)))
    cells = draw(st.sampled_from((0, 0, 1, 2, 3)))
    cells = cells if vcpus >= cells else 0
    inner = ""
    if threads and vcpus % threads == 0:
        units = vcpus // threads
        sockets = draw(st.sampled_from([n for n in (1, 2, 4) if units % n == 0]))
        inner += f"<topology sockets='{sockets}' cores='{units // sockets}' threads='{threads}'/>"
    homes = draw(st.lists(st.integers(0, vcpus - 1), min_size=cells - 1, max_size=cells - 1,
                          unique=True)) if cells > 1 else []  # fmt: skip
    bounds = [0, *sorted({n for n in homes if n}), vcpus]
    parts = [*pairwise(bounds)] if cells else []
    memory = max(1, len(parts)) * draw(st.sampled_from((1, 4, 12)))
    if parts:
        size = memory // len(parts)
        inner += "<numa>" + "".join(
            f"<cell id='{n}' cpus='{low}-{high - 1}' memory='{size}' unit='GiB'/>"
            for n, (low, high) in enumerate(parts)
        ) + "</numa>"  # fmt: skip
    pins = pins_of(draw, vcpus, cpus).items()
    tune = "".join(f"<vcpupin vcpu='{n}' cpuset='{','.join(map(str, at))}'/>" for n, at in pins)
    bound = draw(st.sets(st.integers(0, nodes - 1), max_size=nodes))
    listed = ",".join(map(str, sorted(bound)))
    bind = f"<numatune><memory mode='strict' nodeset='{listed}'/></numatune>"
    at = draw(st.lists(st.integers(0, nodes - 1), max_size=2))
    cards = [(f"0000:{0x10 + n:02x}:00.0", home) for n, home in enumerate(at)]
    body = f"<cputune>{tune}</cputune>{bind if bound else ''}<cpu mode='host-model'>{inner}</cpu>"
    devices = "".join(hostdev(address) for address, _ in cards)
    return domain(body, vcpus=vcpus, memory=memory, devices=devices), cards


def beside(root, xml):
    known = DomainEvidence(domain=parse_domain(xml), machine=read(root), virtual=read_virtual(root))
    return known, judge(known, "host")


def unmendable(case):
    """What no placement mends on this host: no CPU to spare, odd vCPUs on cores of two threads,
    fewer vCPUs than nodes with devices."""
    homes = {case.node_of_device(one.source) for one in case.domain.devices} - {None}
    found, siblings = set(), case.virtual.siblings
    if case.domain.vcpus == len(case.cpus):
        found |= {"emulator", "unpinned"}
    if any(len(cell.vcpus) % len(siblings[0]) for cell in case.memories):
        found |= {"pin-threads"}
    return found | ({"device-far"} if case.domain.vcpus < len(homes) else set())


def fits_one_node(case, machine):
    """Whether one node holds all vCPUs and memory, and neither devices nor cells ask for more."""
    homes = {case.node_of_device(one.source) for one in case.domain.devices}
    per_node = machine["cores"] * machine["threads"]
    fits = case.domain.vcpus <= per_node and case.domain.bytes <= machine["memory"] * 0.95 * 2**30
    return fits and len(homes) < 2 and len(case.cells) < 2


def test_no_plan_leaves_the_emulator_on_the_cpus_of_vcpus():
    """More memory than the host has, and pins to all of its CPUs."""
    pins = "<vcpupin vcpu='0' cpuset='0-2'/><vcpupin vcpu='1' cpuset='3'/>"
    xml = domain(f"<cputune>{pins}</cputune><cpu mode='host-model'/>", vcpus=2, memory=24)
    _, judged = beside(host(1, 4, 1, 16, []), xml)
    assert "emulator" in {one.check for one in judged.findings}
    assert (judged.suited, judged.too_much) == (None, True)


@MANY
@given(st.data())
def test_a_plan_passes_the_checks_on_one_node_and_is_not_worse(data):
    machine = data.draw(hosts())
    xml, cards = data.draw(domains(machine))
    root = host(machine["nodes"], machine["cores"], machine["threads"], machine["memory"], cards)
    case, judged = beside(root, xml)
    if judged.suited is None:
        return
    elements = elements_of(case.domain, judged.suited, case.host.cpu_vendor)
    better, after = beside(root, pasted(xml, elements))
    wrong = {one.check for one in after.findings if one.severity in ("fail", "warn")}
    assert not wrong & (PLACEMENT | {"cell-spans", "refused"}) - unmendable(better), after.findings
    assert cost(better) <= cost(case)
    if fits_one_node(case, machine):
        assert len(better.nodes_of(range(case.domain.vcpus))) <= 1
