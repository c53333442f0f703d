"""What the doctor says of what joins several links, and of what a known failure explains."""

import pytest
from msgspec.structs import replace

from doctor_kit import (
    FULL,
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
)
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.model.inventory import PciFunction


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


def test_a_switch_all_of_whose_links_are_slow_is_to_blame():
    load = measured(*(reading(memory, link_speed=8.0) for memory in ("cuda:1", "cuda:2")))
    findings = found(switched(8.0, 2.5, 2.5), None, load)
    assert (findings[0].check, findings[0].subject) == ("switch", f"PCIe switch {PORT}")
    assert "(3): " in findings[0].found
    assert "switch" not in {each.check for each in found(switched(32.0, 2.5, 2.5), None, load)}
    idle = found(switched(8.0, 2.5, 2.5))
    assert "switch" not in {each.check for each in idle}


def with_errors(before, *addresses):
    """The same, after these functions counted errors."""
    return replace(before, pci=tuple(
        replace(each, errors={"correctable": 9 if each.address in addresses else 0})
        for each in before.pci
    ))  # fmt: skip


def test_a_switch_each_of_whose_links_is_slow_or_counted_errors_is_to_blame():
    before = with_errors(switched(32.0, 32.0, 32.0))
    links = [PORT, *(device.pci for device in before.accelerators)]
    found_of = {each.check: each for each in found(before, with_errors(before, *links))}
    assert found_of["switch"].subject == f"PCIe switch {PORT}"
    assert "(3): " in found_of["switch"].found
    assert "switch" not in {f.check for f in found(before, with_errors(before, *links[1:]))}


def test_two_links_with_errors_may_be_two_faults():
    before = with_errors(switched(32.0, 32.0))
    after = with_errors(before, PORT, *(device.pci for device in before.accelerators))
    assert "switch" not in {each.check for each in found(before, after)}


def inferred(check, subject):
    return lambda _: iter((Finding(check, "fail", subject, "found"),))


@pytest.mark.parametrize(
    ("severity", "subject", "of", "said"),
    [
        ("fail", "cuda:0 (0000:02:00.0)", "PCIe link of cuda:0", "warn"),
        ("warn", "cuda:0 (0000:02:00.0)", "PCIe link of cuda:0", "fail"),
        ("fail", "cuda:1 (0000:03:00.0)", "PCIe link of cuda:0", "fail"),
    ],
)
def test_what_a_known_failure_explains_is_a_warning(severity, subject, of, said):
    known = Finding("link-speed", severity, subject, "found")
    checks = (inferred("slow", of), lambda _: iter((known,)))
    findings = diagnose(Evidence(machine(inventory())), checks)
    (slow,) = (each for each in findings if each.check == "slow")
    assert slow.severity == said
    assert (slow.why == "") == (subject.startswith("cuda:1"))


def test_a_switch_in_trouble_explains_what_its_links_slow():
    switch = Finding("switch", "fail", f"PCIe switch {PORT}", "found")
    checks = (inferred("slow", "PCIe link of cuda:1"), lambda _: iter((switch,)))
    findings = diagnose(Evidence(machine(switched(32.0, 32.0, 32.0))), checks)
    assert [(each.check, each.severity) for each in findings] == [
        ("switch", "fail"),
        ("slow", "warn"),
    ]
    assert f"switch of PCIe switch {PORT}" in findings[1].why
