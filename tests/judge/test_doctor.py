"""Each check of the doctor, on evidence made by hand: what it finds, and that it finds nothing of
what is well or unknown. What it says is in tests/transcripts."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from command_kit import called
from doctor_kit import (
    FULL,
    GOOD,
    GPU,
    PORT,
    ROOT,
    card,
    found,
    gpu,
    inventory,
    machine,
    measured,
    reading,
    root,
    the,
    told,
)  # fmt: skip
from linkgauge.judge.doctor import FILES, diagnose, failed
from linkgauge.judge.findings import Evidence, Finding, Part, checks_in
from linkgauge.model.hardware.inventory import Inventory, PciFunction, PciLink
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import STAGED
from machine_kit import SWITCHED

SUBJECT = f"cuda:0 ({GPU})"
WELL = reading(link_speed=32.0, link_width=16)
SLOW, IDLE = replace(FULL, speed=8.0), replace(FULL, speed=2.5)


def joined(link, upper=None, **more):
    """The card's link, both ends of which are read in the same way unless the upper one is
    given."""
    return inventory(pci=(root(link=link if upper is None else upper), gpu(link=link)), **more)


def test_nothing_is_found_of_what_is_well_and_no_failure_of_what_is_unknown():
    assert found(inventory(), inventory(), measured(WELL)) == ()
    findings = diagnose(Evidence(replace(machine(Inventory()), inventory=None)))
    assert {finding.severity for finding in findings} == {"unknown"}
    for field in fields(PciFunction):
        if field.default is not NODEFAULT:
            bare = {field.name: field.default}
            assert not failed(found(inventory(pci=(root(**bare), gpu(**bare)))))


@pytest.mark.parametrize(
    ("link", "readings", "expected"),
    [
        (SLOW, [reading(link_speed=8.0, link_width=16)], ("link-speed", "fail")),
        (IDLE, [reading(link_speed=2.5), WELL], ("link-speed", "note")),
        (FULL, [WELL] * 4 + [reading(link_speed=8.0, link_width=16)] * 3, ("link-speed", "fail")),
        (IDLE, [], ("link-speed", "note")),
        (replace(FULL, width=4), [], ("link-width", "fail")),
    ],
    ids=["slow under load", "at rest while idle", "fell in mid-run", "may be idle", "few lanes"],
)
def test_a_link_is_judged_by_what_it_does_under_load(link, readings, expected):
    results = (measured(*readings),) if readings else ()
    (finding,) = found(joined(link), None, *results)
    assert (finding.check, finding.severity, finding.subject) == (*expected, SUBJECT)


def test_what_a_link_does_while_others_are_in_use_is_no_load():
    """A copy within a device leaves its link at rest."""
    load = measured(reading(link_speed=2.5))
    within = parse_transfers("cuda:0 -> cuda:0 by ce")
    load = replace(load, cells=tuple(replace(c, transfers=within) for c in load.cells))
    rests = the("link-speed", found(joined(IDLE), None, load))
    assert (rests.severity, rests.remedy[0][:13]) == ("note", "linkgauge run")


def test_a_slot_that_is_older_than_its_card_is_what_is_told_of():
    old = PciLink(speed=16.0, width=16, max_speed=16.0, max_width=16, target=16.0)
    one, card = joined(replace(FULL, speed=16.0), old), gpu(address=PORT)
    assert told(found(one)) == [("bridge", "warn")]
    two = replace(one, pci=(*one.pci, replace(card, link=one.pci[1].link)))  # as it is built
    assert told(found(two)) == [("bridge", "note")] * 2


def test_what_is_read_of_a_card_with_its_own_switch_is_of_its_slot():
    own = root(address=PORT, port="upstream port", parent=ROOT, link=IDLE, vendor=0x1002)
    below = inventory(pci=(root(), own, gpu(parent=PORT, vendor=0x1002)))
    assert told(found(below)) == [("link-speed", "note")]
    slow = measured(reading(link_speed=2.5, link_width=16))
    finding = found(below, None, slow)[0]
    assert (finding.severity, finding.subject) == ("fail", f"cuda:0 ({PORT})")


def test_without_the_upper_end_a_slow_link_is_a_warning():
    """A card of x16 in a slot of x8 that says nothing is as it should be."""
    load = measured(reading(link_speed=16.0, link_width=8))
    findings = found(joined(replace(FULL, width=8, speed=16.0), PciLink()), None, load)
    assert {each: the(each, findings).severity for each in ("link-width", "link-speed")} == {
        "link-width": "warn", "link-speed": "warn",
    }  # fmt: skip


def test_where_pci_shows_nothing_the_library_tells_of_the_link():
    here = inventory(pci=(), cards=(card(link=SLOW),))
    findings = found(here, None, measured(reading(link_speed=8.0, link_width=16)))
    assert ("link-speed", "fail") in told(findings)
    assert {finding.check for finding in findings} == {"link-speed", "payload"}


@pytest.mark.parametrize(
    ("card_link", "port_link", "number"),
    [
        (replace(IDLE, target=2.5), replace(IDLE, target=2.5, max_speed=16.0), 4),
        (PciLink(8.0, 16, 128.0, 16, 8.0), PciLink(8.0, 16, 128.0, 16, 8.0), 7),
    ],
)
def test_a_pinned_target_is_lifted_at_the_port_to_what_both_ends_support(
    card_link, port_link, number
):
    remedy = "\n".join(the("target-speed", found(joined(card_link, port_link))).remedy)
    assert f"setpci -s {ROOT} CAP_EXP+30.w={number}:f" in remedy
    assert f"setpci -s {GPU}" not in remedy
    assert remedy.index("+30.w") < remedy.index("CAP_EXP+10.w=20:20")


def test_a_link_that_its_port_holds_down_is_explained_by_that():
    held = replace(IDLE, target=2.5)
    findings = found(joined(held), None, measured(reading(link_speed=2.5)))
    cause, effect = the("target-speed", findings), the("link-speed", findings)
    assert effect.explained_by == (cause.name,)
    assert findings.index(cause) < findings.index(effect)


class TestInVirtualMachines:
    QEMU = replace(GOOD, hypervisor="QEMU")

    def test_addresses_are_not_those_of_the_host(self):
        held = replace(IDLE, target=2.5)
        remedy = "\n".join(the("target-speed", found(joined(held, host=self.QEMU))).remedy)
        assert remedy.index("DEVICE=") < remedy.index("PORT=") < remedy.index("sudo setpci")
        assert ROOT not in remedy
        assert GPU not in remedy

    @pytest.mark.parametrize(
        ("speed", "width", "checks"),
        [(32.0, 16, [("payload", "unknown")]),
         (8.0, 16, [("link-speed", "warn"), ("payload", "unknown")])],
    )  # fmt: skip
    def test_bridges_that_are_made_up_neither_explain_nor_excuse(self, speed, width, checks):
        oldest = PciLink(speed=2.5, width=1, max_speed=2.5, max_width=1, target=2.5)
        made_up = root(link=oldest, max_payload=128, acs=("request redirect",))
        worse = replace(made_up, errors={"correctable": 5, "fatal": 0})
        before, after = (inventory(host=self.QEMU, pci=(port, gpu())) for port in (made_up, worse))
        load = measured(reading(link_speed=speed, link_width=width))
        assert told(found(before, after, load)) == checks


PCI = {
    "payload": (root(max_payload=128), gpu()),
    "read-request": (root(), gpu(max_read_request=128)),
}


@pytest.mark.parametrize(("check", "severity"), [("payload", "fail"), ("read-request", "warn")])
def test_packets_of_the_wrong_size(check, severity):
    assert the(check, found(inventory(pci=PCI[check]))).severity == severity


def redirecting(*cards):
    """Cards below a switch, of which one port redirects."""
    ports = [
        PciFunction(address=address, class_code=0x060400, port="downstream port", parent=PORT,
                    link=FULL, max_payload=256, acs=acs)
        for address, acs in (("0000:01:01.0", ("request redirect",)), ("0000:01:02.0", ()))
    ]  # fmt: skip
    switch = PciFunction(address=PORT, class_code=0x060400, port="upstream port", parent=ROOT,
                         link=FULL, max_payload=256)  # fmt: skip
    below = gpu(parent="0000:01:01.0"), gpu(address="0000:03:00.0", parent="0000:01:02.0")
    functions = (root(), switch, *ports, *below[: len(cards)])
    return inventory(pci=functions, cards=cards)


def test_redirection_matters_on_a_path_between_two_devices():
    both = card(), card(memory="cuda:1", pci="0000:03:00.0")
    assert the("acs", found(redirecting(*both))).subject == "0000:01:01.0"
    assert "acs" not in {finding.check for finding in found(redirecting(card()))}


def test_redirection_explains_the_slow_copies_that_it_sends_up(tmp_path):
    """Public reports of NVIDIA/nccl#1086 and nccl-tests#112: nothing of the switch is broken."""
    described = SWITCHED.replace("cpus: 4,", "cpus: 4, rate: 200 GB/s,")
    described = described.replace("iommu: translating,", "peers: {passthrough: 9 GB/s},")
    (tmp_path / "m.yml").write_text(described)
    copies = ("device_to_device_memcpy_read_ce", "host_to_device_memcpy_ce")
    called("run", *copies, "--machine", tmp_path / "m.yml", "--label", "a", cwd=tmp_path)
    done = called("doctor", "a", "--json", cwd=tmp_path)
    first, *others = json.loads(done.stdout)["findings"]
    (slow,) = (one for one in others if one["check"] == "slow")
    assert first["check"] == "acs"
    assert slow["explained_by"][0] == f"acs of {first['subject']}"


@pytest.mark.parametrize(
    ("engine", "rate", "said"),
    [
        ("local: 1.1 TB/s", "4.8 TB/s", ("copy-engines", "note", "copy engines")),
        ("local: 0.7 TB/s", "4.8 TB/s", ("slow", "warn", "copy engines")),
        ("startup: 3 us", "1 TB/s", ("slow", "fail", "sim:0")),
    ],
)
def test_what_kernels_drive_well_is_not_slow_by_copy_engines(tmp_path, engine, rate, said):
    """H20-3e: 1.1 TB/s by cudaMemcpy of a memory of 4.8 TB/s (NVIDIA/nvbandwidth#48)."""
    card = f"ce: {{{engine}}}, memory_rate: {rate}, memory_rate_reported: 4.8 TB/s"
    described = SWITCHED.replace("model: Card", f"model: Card, {card}")
    (tmp_path / "m.yml").write_text(described)
    copies = ("device_local_copy", "device_memory_copy")
    called("run", *copies, "--machine", tmp_path / "m.yml", "--label", "a", cwd=tmp_path)
    found = json.loads(called("doctor", "a", "--json", cwd=tmp_path).stdout)["findings"]
    of = [(one["check"], one["severity"], one["subject"]) for one in found]
    of = [one for one in of if one[0] in ("slow", "copy-engines")]
    assert said in of
    assert len(of) == 1 or said[-1] == "sim:0"


@pytest.mark.parametrize(
    ("before", "after", "severity"),
    [
        (inventory(), inventory(pci=(root(), gpu(errors={"correctable": 12}))), "warn"),
        (inventory(), inventory(pci=(root(), gpu(errors={"fatal": 1}))), "fail"),
        (*(inventory(cards=(card(pcie_replays=n),)) for n in (5, 7)), "warn"),
    ],
)
def test_counters_that_rose_are_told(before, after, severity):
    assert the("link-errors", found(before, after)).severity == severity
    assert found(after, after) == ()


@pytest.mark.parametrize(
    ("check", "status", "kind"),
    [
        ("imex", "error", "imex"), ("hang", "timeout", "timeout"),
        ("crash", "error", "crash"), ("lost", "error", "lost"),
        ("out-of-memory", "error", "memory"), ("wrong-bytes", "fail", "wrong-bytes"),
    ],
)  # fmt: skip
def test_cells_that_were_not_measured(check, status, kind):
    one = measured(status=status, reason="in whatever words", kind=kind)
    many = tuple(replace(one.cells[0], column=str(column)) for column in range(28))
    finding = the(check, found(inventory(), None, replace(one, cells=many)))
    assert (finding.severity, len(finding.cells)) == ("fail", 28)


def test_devices_that_refuse_each_other_s_memory():
    """None reaches another's, and no fabric joins them: that is how the product is."""
    one = measured(status="skip", reason="no peer access", kind="peer")
    cells = tuple(replace(one.cells[0], column=str(column)) for column in range(28))
    finding = the("peer-access", found(inventory(), None, replace(one, cells=cells)))
    assert (finding.severity, len(finding.cells)) == ("note", 28)
    peers = parse_transfers("cuda:0 -> cuda:1 by ce")
    there = replace(measured().cells[0], column="28", transfers=peers)
    refused = found(inventory(), None, replace(one, cells=(*cells, there)))
    assert the("peer-access", refused).severity == "fail"
    staged = replace(there, notes=(STAGED,))
    refused = found(inventory(), None, replace(one, cells=(*cells, staged)))
    assert the("peer-access", refused).severity == "note"


def test_every_finding_has_a_row_in_the_documentation():
    here = Path(__file__).parents[2]
    for folder, pages, patterns, own in (
        ("judge", "doctor*", (r'(?:[Ff]inding|_unmeasured|_outcome|_bent)\(\s*"([a-z-]+)"',),
         {"fail", "warn", "note", "unknown", "waived"}),
        ("rooms/vm/checks", "vm*",
         (r'(?:Finding|_refusal)\(\s*"([a-z-]+)"', r'_sized\(case, "([a-z-]+)"'), set()),
    ):  # fmt: skip
        paths = (here / "src/linkgauge" / folder).rglob("*.py")
        sources = [path.read_text() for path in paths]
        names = {n for text in sources for pattern in patterns for n in re.findall(pattern, text)}
        texts = "".join(page.read_text() for page in (here / "docs").glob(f"{pages}.md"))
        rows = re.findall(r"^\| (`[a-z-`, ]+) \|", texts, re.MULTILINE)
        assert names == {name for row in rows for name in re.findall("[a-z-]+", row)} - own
        assert len(names) > 35
    checks = checks_in(*map(import_module, FILES))
    assert len(set(checks)) == len(checks)


def switched(*speeds):
    """A switch whose links (its own first) have these speeds, with a card on each of the others."""
    links = [replace(FULL, speed=speed) for speed in speeds]
    functions = [root(link=links[0]), PciFunction(
        address=PORT, class_code=0x060400, port="upstream port", parent=ROOT, link=links[0],
        max_payload=256)]  # fmt: skip
    cards = []
    for number, link in enumerate(links[1:], start=1):
        port, below = f"0000:09:0{number}.0", f"0000:0{9 + number:x}:00.0"
        functions.append(PciFunction(
            address=port, class_code=0x060400, port="downstream port", parent=PORT, link=link,
            max_payload=256))  # fmt: skip
        functions.append(gpu(address=below, parent=port, link=link))
        cards.append(card(memory=f"cuda:{number}", pci=below))
    return inventory(pci=tuple(functions), cards=tuple(cards))


def with_errors(before, *addresses):
    """The same, after these functions counted errors."""
    return replace(before, pci=tuple(
        replace(each, errors={"correctable": 9 if each.address in addresses else 0})
        for each in before.pci
    ))  # fmt: skip


class TestSwitches:
    """A switch all of whose links are in trouble is to blame."""

    LOAD = measured(*(reading(memory, link_speed=8.0) for memory in ("cuda:1", "cuda:2")))

    @pytest.mark.parametrize(
        ("speeds", "results", "blamed"),
        [((8.0, 2.5, 2.5), (LOAD,), True), ((32.0, 2.5, 2.5), (LOAD,), False),
         ((8.0, 2.5, 2.5), (), False)],
    )  # fmt: skip
    def test_that_are_slow_under_load(self, speeds, results, blamed):
        first = found(switched(*speeds), None, *results)[0]
        assert ((first.check, first.subject) == ("switch", f"PCIe switch {PORT}")) is blamed

    @pytest.mark.parametrize(
        ("links", "but", "blamed"), [(3, (), True), (3, (PORT,), False), (2, (), False)]
    )
    def test_that_counted_errors(self, links, but, blamed):
        """Two links with errors may be two faults."""
        before = with_errors(switched(*[32.0] * links))
        ends = {PORT, *(device.pci for device in before.accelerators)} - set(but)
        checks = {each.check for each in found(before, with_errors(before, *ends))}
        assert ("switch" in checks) is blamed


@pytest.mark.parametrize(
    ("check", "severity", "about", "said"),
    [
        ("link-speed", "fail", Part.device("cuda:1", "0000:0a:00.0"), "warn"),
        ("link-speed", "warn", Part.device("cuda:1", "0000:0a:00.0"), "fail"),
        ("link-speed", "fail", Part.device("cuda:2", "0000:0b:00.0"), "fail"),
        ("switch", "fail", Part.pcie_switch(PORT), "warn"),
    ],
)
def test_what_a_known_failure_explains_is_a_warning(check, severity, about, said):
    known = Finding(check, severity, about, "found")
    inferred = Finding("slow", "fail", Part.pcie_link("cuda:1"), "found")
    checks = (lambda _: iter((inferred,)), lambda _: iter((known,)))
    findings = diagnose(Evidence(machine(switched(32.0, 32.0, 32.0))), checks)
    slow = the("slow", [replace(each, remedy=("# so:",)) for each in findings], reasons=False)
    assert slow.severity == said
    assert (known.name in slow.explained_by) == (str(about) != "cuda:2 (0000:0b:00.0)")
