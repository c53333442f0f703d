"""A domain is read as libvirt means it, and a hostile one is one clear error."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from linkgauge.model.errors import InputError
from linkgauge.rooms.vm.domain_xml import MOST_XML, parse_domain, read_domain
from vm_kit import domain, expander, hostdev, root_port

MANY = settings(max_examples=max(100, settings.default.max_examples))


def read(body="", **more):
    return parse_domain(domain(body, **more))


MOST = 1 << 14
"""CPUs, at the most, of a set."""


class TestCpuSets:
    @pytest.mark.parametrize(
        ("text", "cpus"),
        [("0", (0,)), ("1-4,^3,8", (1, 2, 4, 8)), (" 2 , 0-1 ", (0, 1, 2)), ("3-3", (3,)),
         (f"{MOST - 1}", (MOST - 1,))],
    )  # fmt: skip
    def test_are_ranges_numbers_and_exceptions(self, text, cpus):
        assert read(more=f" cpuset='{text}'").pin_of(0) == cpus


class TestReads:
    def test_pins_of_vcpus_emulator_and_io_threads(self):
        found = read(
            "<iothreads>3</iothreads><iothreadids><iothread id='2'/></iothreadids><cputune>"
            "<vcpupin vcpu='1' cpuset='4-7,^5'/><emulatorpin cpuset='0'/>"
            "<iothreadpin iothread='2' cpuset='1'/></cputune>",
            more=" cpuset='8-9'",
        )
        assert found.vcpu_pins == {1: (4, 6, 7)}
        assert (found.pin_of(0), found.pin_of(1)) == ((8, 9), (4, 6, 7))
        assert (found.emulator_pin, found.iothread_pins) == ((0,), {2: (1,)})
        assert found.iothreads == (1, 2, 3)

    @pytest.mark.parametrize(
        ("text", "size"),
        [("unit='KiB'>4", 4 << 10), (">4", 4 << 10), ("unit='b'>1025", 1025),
         ("unit='KB'>1024", 1000 << 10), ("unit='M'>3", 3 << 20), ("unit='TiB'>1", 1 << 40)],
    )  # fmt: skip
    def test_sizes_in_libvirts_units_up_to_a_kibibyte(self, text, size):
        found = parse_domain(f"<domain><memory {text}</memory></domain>".encode())
        assert found.memory == -(-size // 1024) * 1024

    def test_host_devices_by_their_addresses_on_the_host(self):
        network = (
            "<interface type='hostdev' managed='yes'><source><address type='pci' domain='0' "
            "bus='59' slot='2' function='1'/></source></interface>"
        )
        usb = "<hostdev type='usb'><source><address bus='1' device='2'/></source></hostdev>"
        gone = hostdev("0000:05:00.0").replace("</source>", "</source><address type='unassigned'/>")
        found = read(
            devices=hostdev("0001:1b:00.0", (4, 0, 0), "no") + network + usb + gone
        ).devices
        assert [(one.source, one.managed) for one in found] == [
            ("0001:1b:00.0", False), ("0000:3b:02.1", True)
        ]  # fmt: skip
        assert astuple(found[0].guest) == (4, 0, 0, 0)
        assert found[1].guest is None


BOMB = "".join(
    f"<!ENTITY x{n} '{f'&x{n - 1};' * 10}'>" if n else "<!ENTITY x0 'ha'>" for n in range(9)
)
HOSTILE = {
    "empty": b"",
    "no XML": b"\x7fELF\0\0",
    "cut off": domain()[:100],
    "entity bomb": f"<!DOCTYPE domain [{BOMB}]><domain><name>&x8;</name></domain>".encode(),
    "external entity": b"<!DOCTYPE d [<!ENTITY f SYSTEM 'file:///etc/passwd'>]>"
    b"<domain><name>&f;</name></domain>",
    "external DTD": b"<!DOCTYPE domain SYSTEM 'http://192.0.2.1/x.dtd'><domain/>",
    "parameter entity": b"<!DOCTYPE d [<!ENTITY % p SYSTEM 'http://192.0.2.1/'> %p;]><domain/>",
    "unknown encoding": b"<?xml version='1.0' encoding='klingon'?><domain/>",
    "not its encoding": b"<domain><name>\xff\xfe</name></domain>",
    "nested too deeply": b"<domain>" + b"<a>" * 5000 + b"</a>" * 5000 + b"</domain>",
    "another root": b"<network><name>default</name></network>",
    "a root with escapes": "<d\u00e9\u4e00/>".encode(),
    "a control character": b"<domain><name>a&#27;[31m</name></domain>",
    "negative CPUs": domain(more=" cpuset='-1'"),
    "absurd CPUs": domain(more=" cpuset='0-999999999999'"),
    "no CPUs": domain("<cputune><vcpupin vcpu='0' cpuset=''/></cputune>"),
    "a pin of nothing": domain("<cputune><vcpupin cpuset='1'/></cputune>"),
    "a pin to nothing": domain("<cputune><emulatorpin/></cputune>"),
    "two pins": domain("<cputune><emulatorpin cpuset='1'/><emulatorpin cpuset='2'/></cputune>"),
    "no vCPUs": domain(vcpus=0),
    "absurd vCPUs": domain(vcpus=10**12),
    "vCPUs in words": domain(vcpus="four"),
    "more than there are": domain(more=" current='9'"),
    "absurd memory": domain(memory="9" * 30),
    "negative memory": domain(memory=-1),
    "an unknown unit": domain().replace(b"GiB", b"parsec"),
    "a topology of nothing": domain("<cpu><topology sockets='0' cores='1' threads='1'/></cpu>"),
    "two cells of a number": domain("<cpu><numa><cell id='1'/><cell id='1'/></numa></cpu>"),
    "no address": domain(devices="<hostdev type='pci'><source/></hostdev>"),
    "no such slot": domain(devices=hostdev("0000:01:ff.0")),
    "an address in words": domain(devices=hostdev("0000:zz:00.0")),
    "twice the same device": domain(devices=hostdev("0000:01:00.0") * 2),
    "lists without end": domain(
        "<cputune>"
        + "".join(f"<vcpupin vcpu='{n}' cpuset='0-{MOST - 1 - n}'/>" for n in range(300))
        + "</cputune>"
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_domain_is_one_clear_line(kind, tmp_path):
    path = tmp_path / "domain.xml"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(InputError) as caught:
        read_domain(path)
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith(str(path))
    assert len(text) < 300 + len(str(path))
    assert caught.value.exit_code == 2


def test_files_that_are_no_domains(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_domain(tmp_path / "gone.xml")
    with pytest.raises(InputError, match="directory"):
        read_domain(tmp_path)
    large = tmp_path / "large.xml"
    large.write_bytes(b"<domain>" + b" " * MOST_XML + b"</domain>")
    with pytest.raises(InputError, match=f"more than {MOST_XML} bytes"):
        read_domain(large)


PIECES = (
    "<cputune>", "</cputune>", "<vcpupin vcpu='0' cpuset='0-3'/>", "cpuset='", "'", "<", ">",
    "<numa>", "<cell id='0' cpus='0' memory='1'/>", "</numa>", "<cpu>", "</cpu>", "<vcpu>",
    "</vcpu>", "4", "-1", "99999999999", "0x", "<devices>", "</devices>", "&amp;", "<hugepages>",
    hostdev("0000:01:00.0", (1, 0, 0)), root_port(1, 2), expander(2, 3, 128, 0), "<memory unit='",
    "'>", "</memory>", "\u202e", "\0", "<page size='2' unit='M' nodeset='0'/>",
    "<topology sockets='2'/>", "<!DOCTYPE a>",
)  # fmt: skip


@MANY
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_whatever_is_in_it_is_read_or_refused_in_one_line(middle):
    for text in (f"<domain>{middle}</domain>", middle):
        try:
            parse_domain(text.encode(errors="surrogatepass"))
        except InputError as error:
            assert str(error).isprintable()
