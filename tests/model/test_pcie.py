"""What a PCI Express link carries."""

import pytest

from linkgauge.model.hardware.pcie import SPEEDS, encoding, generation, link_rate


def test_generations_are_those_of_the_transfer_rates():
    assert [generation(speed) for speed in SPEEDS] == [1, 2, 3, 4, 5, 6, 7]
    assert generation(7.0) is None


# GB/s of 16 lanes, as the specification's introduction and every vendor's tables have them.
@pytest.mark.parametrize(
    ("speed", "name", "rate"),
    [
        *((2.5, "8b/10b", 4.0), (5.0, "8b/10b", 8.0), (8.0, "128b/130b", 15.754)),
        *((16.0, "128b/130b", 31.508), (32.0, "128b/130b", 63.015)),
        *((64.0, "FLIT 236/256", 118.0), (128.0, "FLIT 236/256", 236.0)),
    ],
)
def test_a_link_carries_its_transfers_less_the_encoding(speed, name, rate):
    assert encoding(speed).name == name
    assert link_rate(speed, 16) == pytest.approx(rate * 1e9, rel=1e-4)
    assert link_rate(speed, 4) == link_rate(speed, 16) / 4
