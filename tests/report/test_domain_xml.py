"""The elements to paste are well-formed, escaped, and keep what they do not concern."""

from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vm_kit import GIB, domain, told, tree

HOST = tree(guest=False, cores=8, threads=2, memory=64 * GIB, vendor="AuthenticAMD")


def printed(folder, body="", **more):
    found = told(folder, domain(body, vcpus=2, **more), HOST)["xml"]
    return {element.tag: element for element in map(fromstring, found)}


def test_what_stands_beside_the_pins_stays(tmp_path):
    sched = "<vcpusched vcpus='0' scheduler='fifo' priority='1'/>"
    own = f"<cputune><shares>9</shares><vcpupin vcpu='7' cpuset='3'/>{sched}</cputune>"
    tune = printed(tmp_path, f"<iothreads>1</iothreads>{own}")["cputune"]
    assert [child.tag for child in tune] == [
        "vcpupin", "vcpupin", "emulatorpin", "iothreadpin", "shares", "vcpusched",
    ]  # fmt: skip
    assert [pin.get("vcpu") for pin in tune.findall("vcpupin")] == ["0", "1"]


@pytest.mark.parametrize(("model", "has_threads"), [("Opteron_G5", False), ("EPYC", True)])
def test_the_cpu_keeps_its_model_and_features(tmp_path, model, has_threads):
    cpu = f"<cpu mode='custom'><model>{model}</model><feature policy='disable' name='x'/></cpu>"
    made = printed(tmp_path, cpu)["cpu"]
    assert [child.tag for child in made][:3] == ["model", "topology", "feature"]
    assert made.find("topology").attrib == {"sockets": "1", "cores": "1", "threads": "2"}
    added = [one.attrib for one in made.findall("feature")[1:]]
    assert added == ([] if has_threads else [{"policy": "require", "name": "topoext"}])


@pytest.mark.parametrize("more", ["", " placement='auto'"])
def test_a_domain_without_a_cpu_gets_the_hosts_and_numad_no_longer_chooses(tmp_path, more):
    xml = domain(vcpus=2).replace(b" placement='static'", more.encode())
    elements = map(fromstring, told(tmp_path, xml, HOST)["xml"])
    found = {element.tag: element for element in elements}
    assert found["cpu"].get("mode") == "host-passthrough"
    assert ("vcpu" in found) == bool(more)
    assert not more or found["vcpu"].attrib == {"placement": "static"}


@settings(max_examples=15)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20))
def test_no_text_breaks_out_of_its_place(tmp_path_factory, text):
    shown = "".join(c for c in text if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))
    quoted = "".join(f"&#{ord(c)};" for c in shown)
    folder = tmp_path_factory.mktemp("vm")
    xml = domain(f"<cputune><shares note='{quoted}'>{quoted}</shares></cputune>", vcpus=2)
    (tune,) = (one for one in told(folder, xml, HOST)["xml"] if one.startswith("<cputune"))
    shares = fromstring(tune).find("shares")
    assert (shares.get("note"), shares.text or "") == (shown, shown)
    assert all(c == "\n" or " " <= c <= "~" for c in tune)
