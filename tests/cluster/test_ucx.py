"""What UCX is told before it is used."""

import os

import pytest

from linkgauge.cluster import ucx
from net_ranks import without_ucx

pytestmark = pytest.mark.skipif(bool(without_ucx()), reason=without_ucx())
CHECK = "UCX_UD_VERBS_ETH_DGID_CHECK"


@pytest.fixture
def loaded(monkeypatch):
    """Loads it as if versions before this one took packets over IPv4 for others."""

    def load(first_able):
        monkeypatch.setattr(ucx, "_TELLS_IPV4", first_able)
        ucx.library.__wrapped__()
        return os.environ.get(CHECK)

    monkeypatch.setenv(CHECK, "n")  # so that it is restored
    monkeypatch.delenv(CHECK)
    return load


def test_versions_that_drop_packets_over_ipv4_compare_no_destinations(loaded):
    own = ucx._numbers(ucx.library())
    assert f"{own[0]}.{own[1]}." in ucx.version()
    assert loaded(own) is None
    assert loaded((own[0], own[1] + 1)) == "n"


def test_what_is_set_is_left_alone(loaded, monkeypatch):
    monkeypatch.setenv(CHECK, "y")
    assert loaded((99, 0)) == "y"
