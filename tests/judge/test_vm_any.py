"""Whatever a domain asks for and a machine shows, it is judged and printed without an exception."""

from xml.etree.ElementTree import fromstring

from hypothesis import given, settings
from hypothesis import strategies as st

from judge.test_vm_placement import host
from linkgauge.judge.findings import Evidence
from linkgauge.judge.vm import judge_alone
from linkgauge.judge.vm.role import stated
from linkgauge.machine.capture import read_machine
from linkgauge.machine.domain_xml import parse_domain
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import InputError
from linkgauge.model.virtual import RunningDomain
from linkgauge.report.domain_text import DomainReport, domain_document, domain_lines
from report.test_output import text_console
from vm_kit import compare, domain, expander, guest_bus, hostdev, root_port, tree

NUMBER = st.integers(0, 40)
SET = st.lists(st.sampled_from(("0", "1-3", "^2", "8-15", "31", "99", "16000-16383")), min_size=1,
               max_size=3).map(",".join)  # fmt: skip
CARD = "0000:17:00.0"


def element(template, *values):
    return st.tuples(*values).map(lambda found: template.format(*found))


def several(one):
    return st.lists(one, max_size=3).map("".join)


TUNE = several(
    element("<vcpupin vcpu='{}' cpuset='{}'/>", NUMBER, SET)
    | element("<emulatorpin cpuset='{}'/>", SET)
    | element("<iothreadpin iothread='{}' cpuset='{}'/>", NUMBER, SET)
)
NUMA = several(
    element("<cell cpus='{}' memory='{}' unit='GiB'/>", SET, NUMBER)
    | element("<cell id='{}' memory='{}'/>", NUMBER, NUMBER)
)
POLICIES = several(
    element("<memory mode='strict' nodeset='{}'/>", SET)
    | element("<memory mode='interleave' placement='{}'/>", st.sampled_from(("auto", "static")))
    | element("<memnode cellid='{}' mode='preferred' nodeset='{}'/>", NUMBER, SET)
)
PAGES = several(element("<page size='{}' unit='{}' nodeset='{}'/>", NUMBER, st.sampled_from("KMG"),
                        SET))  # fmt: skip
TOPOLOGY = element("<topology sockets='{}' cores='{}' threads='{}'/>",
                   *[st.integers(1, 5)] * 3)  # fmt: skip
DEVICES = several(
    st.builds(hostdev, st.sampled_from((CARD, "0000:ca:00.0", "0000:ca:00.1")),
              st.sampled_from((None, (0, 5, 0), (1, 0, 0), (2, 0, 1), (9, 1, 0))))
    | st.builds(root_port, st.integers(1, 3), st.integers(0, 9), st.integers(0, 3))
    | st.builds(expander, st.integers(1, 3), st.integers(0, 9), NUMBER, st.integers(0, 3))
    | element("<memory><target><size>{}</size><node>{}</node></target></memory>", NUMBER, NUMBER)
)  # fmt: skip
DOMAINS = st.builds(
    lambda tune, numa, policies, pages, topology, devices, vcpus, memory, threads: domain(
        f"<cputune>{tune}</cputune><cpu>{topology}<numa>{numa}</numa></cpu><numatune>{policies}"
        f"</numatune><memoryBacking><hugepages>{pages}</hugepages></memoryBacking>"
        f"<iothreads>{threads}</iothreads>",
        vcpus=vcpus, memory=memory, devices=devices,
    ),
    TUNE, NUMA, POLICIES, PAGES, TOPOLOGY | st.just(""), DEVICES, st.integers(1, 40), NUMBER,
    st.integers(0, 3),
)  # fmt: skip
CARDS = ((CARD, 1), ("0000:ca:00.0", -1))
ROUTE = "pci0000:00/0000:00:05.0"
MACHINES = (
    host(cards=CARDS), host(nodes=1, threads=1), tree(bus=guest_bus(ROUTE)), tree(sockets=4),
    tree(nodes={0: ((0, 1), 1 << 30), 3: ((), 1 << 30), 4: ((2, 3), 0)}), Captured({}),
    Captured(dict.fromkeys(tree().files, b"\xff")),
)  # fmt: skip
RUNNING = RunningDomain(name="gpu-vm", vcpus={0: (3,), 50: (1,)}, nodes=(0, 9))


@settings(max_examples=max(150, settings.default.max_examples))
@given(DOMAINS, st.sampled_from(MACHINES), st.sampled_from(("guest", "host")), st.booleans())
def test_is_judged_and_printed(xml, root, role, runs):
    try:
        known = parse_domain(xml)
    except InputError:
        return
    alive = RUNNING if runs else None
    judged = compare(xml, root, role, alive=alive, others=(RUNNING,), uuid=known.uuid)
    report = DomainReport(decision=stated(role), domain=known, judged=judged, vendor="AuthenticAMD")
    console = text_console()
    for line in domain_lines(report):
        console.print(line)
    assert console.file.getvalue()
    assert domain_document(report).endswith("}\n")
    for text in report.elements:
        assert fromstring(text).tag
    for finding in judged.findings:
        assert finding.found
        assert finding.why or finding.severity == "unknown"


def test_a_guest_by_itself_is_judged():
    for root in MACHINES:
        assert isinstance(judge_alone(Evidence(read_machine(root))), tuple)
