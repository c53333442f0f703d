"""Configuration space tells what its registers hold, and never fails on what it should not hold."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from linkgauge.model.hardware.inventory import PciLink
from linkgauge.model.hardware.pcie import SPEEDS, WIDTHS
from pci_kit import AER, CARD, Bus, acs, config, read, why

PORTS = {
    0: "endpoint", 1: "endpoint", 4: "root port", 5: "upstream port", 6: "downstream port",
    7: "bridge", 8: "bridge", 9: "integrated endpoint", 10: None,
}  # fmt: skip


def decode(space):
    """The function with this configuration space; what sysfs tells of links is not there."""
    bus = Bus()
    bus.add(CARD, space)
    return read(bus)[0]["0000:01:00.0"]


def known(decoded):
    """Names of the PCI Express fields that are not null."""
    fields = ["port", "max_payload", "max_payload_supported", "max_read_request"]
    links = [name for name in PciLink.__struct_fields__ if getattr(decoded.link, name) is not None]
    return {name for name in fields if getattr(decoded, name) is not None} | set(links)


LINK = ("speed", "width", "max_speed", "max_width", "target")
ALL = {"port", "max_payload", "max_payload_supported", "max_read_request", *LINK}


@given(
    st.sampled_from(list(PORTS)),
    st.integers(0, 15),
    st.integers(0, 63),
    st.integers(0, 15),
    st.integers(0, 7),
    st.integers(0, 7),
    st.integers(0, 7),
)
def test_each_code_has_its_meaning_or_none(port, speed, width, target, payload, supported, request):
    assume(speed or width or payload or request)
    decoded = decode(
        config(
            port=port,
            speed=speed,
            width=width,
            target=target,
            payload=payload,
            payload_supported=supported,
            request=request,
        )
    )
    sizes = {code: 128 * 2**code for code in range(6)}
    speeds = dict(enumerate(SPEEDS, start=1))
    assert decoded.port == PORTS[port]
    assert decoded.link.speed == speeds.get(speed)
    assert decoded.link.width == (width if width in WIDTHS else None)
    assert decoded.link.target == speeds.get(target)
    assert decoded.max_payload == sizes.get(payload)
    assert decoded.max_payload_supported == sizes.get(supported)
    assert decoded.max_read_request == sizes.get(request)
    if known(decoded) != ALL:
        assert any("its value has no meaning in PCI Express" in one for one in decoded.unknown)


def test_the_vector_of_supported_speeds_goes_before_the_older_field():
    assert decode(config(max_speed=3, speeds=0b11111)).link.max_speed == 32.0
    assert decode(config(max_speed=3, speeds=0)).link.max_speed == 8.0


def test_version_1_has_no_second_set_of_link_registers():
    # What follows the shorter capability must not be taken for them.
    space = config(
        version=1, max_speed=2, capabilities=((0x10, None), (0x09, b"\xff" * 0x30)), speed=2
    )
    link = decode(space).link
    assert link == PciLink(5.0, 16, 5.0, 16, None)


@pytest.mark.parametrize(
    ("control", "redirections"),
    [(0, ()), (0b10011, ()), (0b100, ("request redirect",)), (0b1000, ("completion redirect",))],
)
def test_only_redirections_of_acs_count(control, redirections):
    assert decode(config(extended=[acs(control)])).acs == redirections


def test_a_space_cut_anywhere_tells_what_lies_before_the_cut():
    full = decode(config(extended=[AER, acs(0b100)]))
    for size in range(1, 0x180):
        cut = decode(config(size=size, extended=[AER, acs(0b100)]))
        for name in ("revision", "port", "acs"):
            assert getattr(cut, name) in (getattr(full, name), None)
        assert known(cut) <= known(full)
        for field in known(full) - known(cut):
            assert str(size) in why(cut, f"link.{field}" if field in LINK else field)
        if cut.acs is None:
            assert str(size) in why(cut, "acs")


def test_functions_without_the_capability_say_so():
    for space in (
        config(capabilities=()),
        config(capabilities=((0x01, b"\x03\x00"),)),
        config(capabilities=(), size=64),  # enough to know that there is none
    ):
        decoded = decode(space)
        assert why(decoded, "port") == "the function has no PCI Express capability"
        assert known(decoded) == set()
        assert not any("acs" in line.partition(":")[0] for line in decoded.unknown)


def test_what_does_not_answer_is_unknown():
    decoded = decode(b"\xff" * 4096)
    assert (decoded.silent, known(decoded), decoded.acs) == (True, set(), None)
    assert "does not answer" in why(decoded, "port")
    assert why(decode(None), "port") == why(decode(b""), "port")
    assert why(decode(None), "port") == "config space is not readable"


def test_garbled_lists_end():
    looped = bytearray(config(capabilities=((0x01, b"\x03\x00"), (0x05, b""))))
    looped[0x45] = 0x40
    assert "garbled" in why(decode(bytes(looped)), "port")
    inside = bytearray(config())
    inside[0x34] = 0x20
    assert "garbled" in why(decode(bytes(inside)), "port")
    extended = bytearray(config(extended=[AER, (0x0003, bytes(8))]))
    extended[0x100 + 2 : 0x104] = (0x100 << 4 | 1).to_bytes(2, "little")
    decoded = decode(bytes(extended))
    assert decoded.acs is None
    assert "the function has AER" in why(decoded, "errors")
    assert "garbled" in why(decoded, "acs")
    low = bytearray(config(extended=[(0x0003, bytes(8))]))
    low[0x102:0x104] = (0x0F0 << 4 | 1).to_bytes(2, "little")
    assert "garbled" in why(decode(bytes(low)), "acs")


def consistent(decoded):
    """Whatever is null has its reason."""
    return all(
        why(decoded, f"link.{field}" if field in LINK else field) for field in ALL - known(decoded)
    )


@given(st.data())
def test_damaged_spaces_never_raise(data):
    space = bytearray(config(extended=[AER, acs(0b100)]))
    interesting = st.one_of(st.integers(0, 0x120), st.integers(0, 4095))
    for offset, value in data.draw(
        st.lists(st.tuples(interesting, st.integers(0, 255)), max_size=8)
    ):
        space[offset] = value
    assert consistent(decode(bytes(space[: data.draw(st.integers(0, 4096))])))


@pytest.mark.parametrize(
    ("fastest", "speeds", "target"), [(1, 1, 2.5), (1, 0, 2.5), (5, None, None)]
)
def test_a_target_of_0_is_the_only_speed_there_is(fastest, speeds, target):
    assert decode(config(max_speed=fastest, speeds=speeds, target=0)).link.target == target
