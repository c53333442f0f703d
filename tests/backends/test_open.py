"""Backends are opened by name."""

import pytest

from linkgauge.backends import open_backend
from linkgauge.model.errors import InputError


def test_an_unknown_backend_is_refused():
    with pytest.raises(InputError, match="unknown backend 'abacus'"):
        open_backend("abacus")
