"""The elements to paste are whole, well-formed, escaped, and keep what they do not concern."""

from xml.etree.ElementTree import fromstring

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.judge.vm.planner import Suited
from linkgauge.machine.domain_xml import parse_domain
from linkgauge.model.domain import Cell, Topology
from linkgauge.report.domain_xml import elements_of
from vm_kit import GIB, MIB, domain


def suited(**more):
    fields = {
        "pins": {0: (1,), 1: (2,)}, "emulator": (0,), "topology": None, "cells": (), "nodes": {},
        "device_cells": {},
    }  # fmt: skip
    return Suited(**fields | more)


def printed(xml, **more):
    found = elements_of(parse_domain(xml), suited(**more), "AuthenticAMD")
    return {element.tag: element for element in map(fromstring, found)}


def test_what_stands_beside_the_pins_stays():
    sched = "<vcpusched vcpus='0' scheduler='fifo' priority='1'/>"
    own = f"<cputune><shares>9</shares><vcpupin vcpu='7' cpuset='3'/>{sched}</cputune>"
    xml = domain(f"<iothreads>1</iothreads>{own}", vcpus=2)
    tune = printed(xml)["cputune"]
    assert [(child.tag, child.get("cpuset")) for child in tune] == [
        ("vcpupin", "1"), ("vcpupin", "2"), ("emulatorpin", "0"), ("iothreadpin", "0"),
        ("shares", None), ("vcpusched", None),
    ]  # fmt: skip


def test_the_cpu_keeps_its_model_and_features():
    cpu = "<cpu mode='custom'><model>EPYC</model><feature policy='disable' name='x'/></cpu>"
    more = {"topology": Topology(cores=1, threads=2), "cells": (Cell(0, (0, 1), GIB),)}
    made = printed(domain(cpu, vcpus=2), **more)["cpu"]
    assert [child.tag for child in made] == ["model", "topology", "feature", "feature", "numa"]
    topology = made.find("topology")
    assert [topology.get(name) for name in ("sockets", "dies", "cores", "threads")] == [*"1112"]
    assert made.findall("feature")[1].attrib == {"policy": "require", "name": "topoext"}
    assert made.find("numa/cell").get("memory") == str(1 << 20)


def test_a_domain_without_a_cpu_gets_the_hosts():
    made = printed(domain(vcpus=2), topology=Topology(cores=2))["cpu"]
    assert made.get("mode") == "host-passthrough"
    assert made.find("feature") is None


def test_huge_pages_beside_what_backs_the_memory():
    xml = domain("<memoryBacking><nosharepages/></memoryBacking>", vcpus=2)
    backing = printed(xml, page_size=2 * MIB)["memoryBacking"]
    assert [child.tag for child in backing] == ["hugepages", "nosharepages"]
    assert backing.find("hugepages/page").attrib == {"size": "2048", "unit": "KiB"}


def test_numad_no_longer_chooses():
    xml = domain(vcpus=2).replace(b"placement='static'", b"placement='auto'")
    assert printed(xml)["vcpu"].attrib == {"placement": "static"}


def test_what_is_as_it_should_be_is_not_printed():
    xml = domain("<cputune><vcpupin vcpu='0' cpuset='1'/><vcpupin vcpu='1' cpuset='2'/>"
                 "<emulatorpin cpuset='0'/></cputune>", vcpus=2)  # fmt: skip
    assert printed(xml) == {}


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20))
def test_no_text_breaks_out_of_its_place(text):
    shown = "".join(c for c in text if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))
    quoted = "".join(f"&#{ord(c)};" for c in shown)
    xml = domain(f"<cputune><shares note='{quoted}'>{quoted}</shares></cputune>", vcpus=2)
    (text,) = elements_of(parse_domain(xml), suited())
    shares = fromstring(text).find("shares")
    assert (shares.get("note"), shares.text or "") == (shown, shown)
    assert all(c == "\n" or " " <= c <= "~" for c in text)
